//! No loop without a bound: whatever the words of a segment hold, and however they change under a call, each call of
//! the write path ends within so many accesses, and without a panic.
//!
//! The bytes of store entries are not words of the protocol: besides the accesses counted here, a load reads its image
//! at most once for its check, and compares it with the first ready entry of the same size and with those of its check.
#![cfg(not(loom))]

#[path = "write_path/lying.rs"]
mod lying;

use gputap_ringbuf::{
    backing::{create::Created, reserve::Reserver},
    control::{CONTROL_BYTES, server::ControlServer},
    header::{
        counters::Counter,
        identity::{Backing, Identity},
    },
    housekeeping::{Ahead, Housekeeper, Step},
    lane::{CHUNK_HEADER_WORDS, MAX_PAYLOAD_WORDS, header},
    layout::{CHUNK_WORDS, LANE_HEADER_WORDS, LANE_HEADERS, Layout, PAGE_BYTES, Sizes},
    sync::Ordering,
    tap::{ModuleLoad, TapWriter},
    words::{MappedWords, ReadWords, Words, heap_words},
};
use lying::{Account, Exchange, Lies, Lying};
use proptest::prelude::*;
use std::{ptr::NonNull, rc::Rc, sync::Arc};

const SIZES: Sizes = Sizes {
    lanes: 4,
    lane_words: 4 * CHUNK_WORDS,
    cubin_slots: 24,
    cubin_bytes: 2 * PAGE_BYTES,
    definition_slots: 24,
    definition_bytes: PAGE_BYTES,
};

const LANES: u64 = SIZES.lanes as u64;
const SLOTS: u64 = SIZES.cubin_slots as u64;
/// Of an allocation: writer.rs.
const MAX_TRIES: u64 = 64;

/// Owner, busy, its exchange, that of the owner, and giving up busy.
const LOOK_AT_A_LANE: u64 = 5;
/// Once over all lanes for one's own and once for a free one; two exchanges to take over what a dead thread left; the
/// owner and busy again, the id, and the way out.
const ENTER: u64 = 2 * LANES * LOOK_AT_A_LANE + 7;
/// INTENT, TAIL, INTENT again; every record of the chunk that ends at TAIL and that chunk's number; at most three
/// chunks given up, each with its header and a filling before and after; NEXT_SEQ and TAIL.
const RECOVER: u64 = 3 + 1 + CHUNK_WORDS as u64 + 3 * (3 + 2) + 2;
/// TAIL, NEXT_SEQ, INTENT; filling and a chunk's header; the record's head; NEXT_SEQ and TAIL. Then its words.
const WRITE: u64 = 3 + 1 + CHUNK_HEADER_WORDS as u64 + 1 + 2;
/// NEXT_SLOT, then state, kind, length and offset of each slot.
const FIND: u64 = 1 + 4 * SLOTS;
/// A look at NEXT_SLOT and its addition; offset, length, state.
const TAKE_SLOT: u64 = 2 + 3;
/// RESERVED_BYTES, CURSOR_BYTES, and an exchange a try.
const ALLOCATE_BYTES: u64 = 2 + MAX_TRIES;
const PUBLISH: u64 = 6;
const PUT: u64 = 1 + ALLOCATE_BYTES + TAKE_SLOT + PUBLISH;
/// The load and what became of it are counted; a refusal is looked for and, if new, noted.
const STORE_CUBIN: u64 = 2 + FIND + PUT + FIND + TAKE_SLOT + PUBLISH + 1;
const STORE_NAME: u64 = PUT + 1;
/// State, offset and length.
const IS_NAME: u64 = 3;

/// One call of a callback.
#[derive(Clone, Debug)]
enum Call {
    /// With a thread pointer and an id; two records, so that a lane that was mended is written as well.
    Write(u64, u64, usize),
    /// The thread ends in its lane; what it was to write there is up to the words.
    EndInside(u64, u64),
    StoreCubin(usize),
    StoreName(usize),
    IsName(u32, usize),
    Count,
}

fn call() -> impl Strategy<Value = Call> {
    let words = prop_oneof![0..20usize, 0..=MAX_PAYLOAD_WORDS + 2];
    let len = || prop_oneof![0..100usize, 0..3 * PAGE_BYTES];
    prop_oneof![
        4 => (1000..1003u64, 0..4u64, words).prop_map(|(thread, tid, words)| Call::Write(thread, tid, words)),
        2 => (1000..1003u64, 1..4u64).prop_map(|(thread, tid)| Call::EndInside(thread, tid)),
        2 => len().prop_map(Call::StoreCubin),
        1 => len().prop_map(Call::StoreName),
        1 => (any::<u32>(), 0..100usize).prop_map(|(slot, len)| Call::IsName(slot % 30, len)),
        1 => Just(Call::Count),
    ]
}

/// A tap seen through lies, all lanes reserved.
fn tap(account: &Rc<Account>) -> (MappedWords, TapWriter<Lying>) {
    let layout = Layout::new(SIZES.checked().unwrap());
    let words = heap_words(layout.total_words);
    let identity = Identity::current(std::process::id(), Backing::Shm, 1, 2);
    identity.write(&words, &SIZES);
    let reserver = Reserver::new(words.clone(), None, false, 0);
    let control = ControlServer::new(heap_words(CONTROL_BYTES / 8), 1, 2);
    let created = Created { words: words.clone(), layout, identity, reserver, control };
    let tap = TapWriter::seen_through(&created, |words| Lying::new(words, account));
    let ahead = Ahead { lanes: SIZES.lanes, cubin_bytes: 1 << 30, definition_bytes: 1 << 30, step_bytes: 1 << 30 };
    let mut housekeeper = Housekeeper::new(Reserver::new(pages(layout), None, false, u64::MAX), ahead);
    while let Step::Reserved = housekeeper.step(&tap) {}
    (words, tap)
}

/// Memory that can be populated, of the size of the segment: heap words do not begin at a page.
fn pages(layout: Layout) -> MappedWords {
    let map = memmap2::MmapMut::map_anon(layout.total_words * 8).unwrap();
    let base = NonNull::new(map.as_ptr().cast_mut()).unwrap();
    // SAFETY: an anonymous map of that size, aligned to pages, kept by the Arc.
    unsafe { MappedWords::new(base, layout.total_words, Some(Arc::new(map))) }
}

fn perform(tap: &TapWriter<Lying>, account: &Account, call: &Call, bytes: &[u8], payload: &[u64]) -> u64 {
    match *call {
        Call::Write(thread, tid, words) => {
            let limit = ENTER + RECOVER + 2 * (WRITE + words as u64);
            account.within(limit, || {
                if let Ok(lane) = tap.enter_lane(thread, tid) {
                    let _ = (lane.write(1, &payload[..words]), lane.write(2, &payload[..words]));
                }
            })
        }
        Call::EndInside(thread, tid) => account.within(ENTER + RECOVER, || {
            tap.enter_lane(thread, tid).into_iter().for_each(std::mem::forget);
        }),
        // SAFETY: the bytes can be read and do not change.
        Call::StoreCubin(len) => account.within(STORE_CUBIN, || unsafe {
            tap.store_cubin(bytes.as_ptr(), len, ModuleLoad::default());
        }),
        Call::StoreName(len) => account.within(STORE_NAME, || _ = tap.store_kernel_name(&bytes[..len], 0)),
        Call::IsName(slot, len) => account.within(IS_NAME, || _ = tap.is_name(slot, &bytes[..len])),
        Call::Count => account.within(3, || {
            tap.count(Counter::Nested, u64::MAX);
            tap.raise_to(Counter::FlushMaxNs, 7);
        }),
    }
}

/// Of any word of the head, most often of a lane's header.
fn contents() -> impl Strategy<Value = Vec<(usize, u64)>> {
    let header = (0..SIZES.lanes, 0..3usize).prop_map(|(lane, word)| LANE_HEADERS + lane * LANE_HEADER_WORDS + word);
    let value = prop_oneof![any::<u64>(), 0..10 * CHUNK_WORDS as u64, u64::MAX - 10 * CHUNK_WORDS as u64..=u64::MAX];
    prop::collection::vec((prop_oneof![header, any::<usize>()], value), 0..100)
}

fn check(lies: Lies, contents: &[(usize, u64)], calls: &[Call]) {
    let account = Account::new();
    let (words, tap) = tap(&account);
    account.lie(lies);
    contents.iter().for_each(|(at, word)| words.store(at % tap.layout().fixed_words, *word, Ordering::Relaxed));
    let (bytes, payload) = (vec![1; 3 * PAGE_BYTES], vec![2; MAX_PAYLOAD_WORDS + 2]);
    calls.iter().for_each(|call| _ = perform(&tap, &account, call, &bytes, &payload));
}

fn exchange() -> impl Strategy<Value = Exchange> {
    prop_oneof![Just(Exchange::Honest), Just(Exchange::Fails), Just(Exchange::Succeeds)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_words_say_each_call_ends(
        seed: u64, percent in prop_oneof![Just(0u64), 1..20u64, 0..=100u64], exchange in exchange(),
        contents in contents(), calls in prop::collection::vec(call(), 1..40),
    ) {
        check(Lies { seed, percent, exchange }, &contents, &calls);
    }
}

/// The bounds are those of the calls, not some large number: an honest tap comes near them.
#[test]
fn an_honest_tap_needs_nearly_what_it_may() {
    let account = Account::new();
    let (words, tap) = tap(&account);
    let (bytes, payload) = (vec![1; 3 * PAGE_BYTES], vec![2; MAX_PAYLOAD_WORDS + 2]);
    let perform = |call| perform(&tap, &account, &call, &bytes, &payload);
    // A thread with the third lane ends inside the last write that fits into a chunk, having written its smallest.
    (1000..1003u64).for_each(|thread| _ = perform(Call::Write(thread, thread, 0)));
    let in_chunk = (CHUNK_WORDS - CHUNK_HEADER_WORDS) / 2 - 2;
    (0..in_chunk).for_each(|_| _ = perform(Call::Write(1002, 1002, 0)));
    std::mem::forget(tap.enter_lane(1002, 1002).unwrap());
    let header = tap.layout().lane_header(2);
    let tail = words.load(header + header::TAIL, Ordering::Relaxed);
    words.store(header + header::INTENT, 2 * CHUNK_WORDS as u64, Ordering::Relaxed);
    let heir = perform(Call::Write(1002, 1, 0));
    assert!(tail > CHUNK_WORDS as u64 - 8 && heir > CHUNK_WORDS as u64 && heir <= ENTER + RECOVER + 2 * WRITE);
    // The store's slots are looked at twice by a load that is refused.
    (0..SLOTS as usize).for_each(|len| _ = perform(Call::StoreCubin(len)));
    let refused = perform(Call::StoreCubin(3 * PAGE_BYTES));
    assert!(refused > 5 * SLOTS && refused <= STORE_CUBIN, "{refused} of {STORE_CUBIN}");
}

#[test]
fn an_exchange_that_always_fails_is_given_up_and_counted() {
    let account = Account::new();
    let (words, tap) = tap(&account);
    account.lie(Lies { seed: 1, percent: 0, exchange: Exchange::Fails });
    let accesses = perform(&tap, &account, &Call::StoreCubin(100), &[1; 100], &[]);
    assert!(accesses > MAX_TRIES && Counter::ModulesContended.read(&words) == 1);
    assert_eq!(tap.store_kernel_name(b"kernel", 0), None);
    assert!(tap.enter_lane(1000, 1).is_err());
}

#[test]
#[should_panic(expected = "more than 8 accesses")]
fn one_access_too_many_is_seen() {
    let account = Account::new();
    let (_words, tap) = tap(&account);
    account.within(8, || _ = tap.store_kernel_name(b"kernel", 0));
}
