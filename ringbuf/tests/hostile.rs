//! Segments that lie: whatever any word says, a reader ends, does not panic, and never hands out a wrong record for
//! one wrong byte of the head.
#![cfg(not(loom))]

mod pattern;

use gputap_ringbuf::{
    attach::Attached,
    backing::{create::Created, reserve::Reserver},
    control::{CONTROL_BYTES, server::ControlServer},
    header::{
        identity::{Backing, Identity},
        status::{ClockPoint, Reason, State},
    },
    housekeeping::{Ahead, Housekeeper, Step},
    lane::{
        CHUNK_HEADER_WORDS, chunk_check, header,
        reader::{Drained, LaneReader},
        writer::LaneWriter,
    },
    layout::{CHUNK_WORDS, LANE_HEADER_WORDS, Layout, PAGE_BYTES, SLOT_WORDS, STORE_CONTROL_WORDS, Sizes},
    store::reader::{BadEntry, StoreReader},
    sync::Ordering,
    tap::{ModuleLoad, TapWriter},
    words::{MappedWords, ReadWords, Words, heap_words},
};
use proptest::prelude::*;
use std::sync::{Arc, atomic::AtomicU64};

const SIZES: Sizes = Sizes {
    lanes: 2,
    lane_words: 4 * CHUNK_WORDS,
    cubin_slots: 8,
    cubin_bytes: PAGE_BYTES,
    definition_slots: 8,
    definition_bytes: PAGE_BYTES,
};
const RECORDS: u64 = 5000;
/// Drains after which a lane that nobody writes has to be at its end.
const MAX_DRAINS: usize = 1000;

/// A whole tap in private memory: two lanes, one of them lapped, cubins, names, texts and clock points.
fn segment() -> MappedWords {
    let layout = Layout::new(SIZES.checked().unwrap());
    let words = heap_words(layout.total_words);
    let identity = Identity::current(std::process::id(), Backing::Shm, 1, 2);
    identity.write(&words, &SIZES);
    let reserver = Reserver::new(words.clone(), None, false, u64::MAX);
    let control = ControlServer::new(heap_words(CONTROL_BYTES / 8), 1, 2);
    let tap = TapWriter::new(&Created { words: words.clone(), layout, identity, reserver, control });
    let unreserved = Reserver::new(page_aligned(layout), None, false, u64::MAX);
    let mut housekeeper = Housekeeper::new(unreserved, Ahead::DEFAULT);
    while let Step::Reserved = housekeeper.step(&tap) {}
    tap.status().set_state(State::Off, Reason::NoRoom, "a detail");
    tap.status().set_cupti(130_001, "/usr/lib/libcupti.so.13");
    (0..70).for_each(|n| tap.status().add_clock_point(ClockPoint { monotonic_ns: n, realtime_ns: n, error_ns: n }));
    write_records(&tap, 100, RECORDS);
    write_records(&tap, 200, 50);
    for n in 1..5u8 {
        let image = vec![n; 100 * usize::from(n)];
        // SAFETY: `image` can be read and does not change.
        unsafe { tap.store_cubin(image.as_ptr(), image.len(), ModuleLoad { module_id: 7, context: 9 }) };
        tap.store_kernel_name(&image, 0).unwrap();
    }
    tap.publish();
    words
}

/// Memory that can be populated, of the size of the segment: heap words do not begin at a page.
fn page_aligned(layout: Layout) -> MappedWords {
    let map = memmap2::MmapMut::map_anon(layout.total_words * 8).unwrap();
    let base = std::ptr::NonNull::new(map.as_ptr().cast_mut()).unwrap();
    // SAFETY: an anonymous map of that size, aligned to pages, kept by the Arc.
    unsafe { MappedWords::new(base, layout.total_words, Some(std::sync::Arc::new(map))) }
}

fn write_records(tap: &TapWriter, thread: u64, count: u64) {
    let lane = tap.enter_lane(thread, thread).unwrap();
    for seq in 0..count {
        let mut payload = [0; 16];
        let payload = &mut payload[..(seq % 16) as usize];
        pattern::fill(payload, seq);
        lane.write(pattern::kind(seq), payload).unwrap();
    }
}

/// Reads everything there is, as a reader does; `each_record` may check what comes.
fn read_all(attached: &Attached, mut each_record: impl FnMut(gputap_ringbuf::lane::reader::Record<'_>)) {
    let _ = (attached.status(), attached.counters(), attached.clock_points());
    for lane in 0..attached.lane_count() {
        let mut reader = attached.lane(lane);
        let mut drains = 0;
        while reader.drain(1000, &mut each_record).more {
            drains += 1;
            assert!(drains < MAX_DRAINS, "lane {lane} does not come to an end");
        }
    }
    read_store(attached.cubins());
    read_store(attached.definitions());
}

/// Every entry that a reader takes is one that was stored; the others are counted.
fn read_store(mut store: StoreReader) {
    let mut entries = 0;
    while let Some(entry) = store.next_entry() {
        if let Ok(bytes) = store.read(&entry) {
            assert!(bytes.len() == 100 * usize::from(bytes[0]) && bytes.iter().all(|b| *b == bytes[0]), "{entry:?}");
            assert!((entry.kind == 1) == (entry.a == 7) && entry.kind <= 2, "{entry:?}");
        }
        entries += 1;
    }
    assert!(entries <= 8 && store.unfinished() <= 8);
}

fn attach(words: &MappedWords) -> Option<Attached> {
    Attached::new(words.clone(), words.len() as u64 * 8).ok()
}

#[test]
fn the_untouched_segment_is_read_whole() {
    let words = segment();
    let mut count = 0;
    read_all(&attach(&words).unwrap(), |record| {
        pattern::check(record);
        count += 1;
    });
    assert!(count > 3000 && count < RECORDS + 50, "one lane is lapped: {count}");
}

const ALL_BYTES: std::ops::Range<usize> = 0..8;

/// Reads the segment with each of these bits of word `at` wrong.
fn flip(words: &MappedWords, at: usize, bytes: impl Iterator<Item = usize>) {
    let right = words.load(at, Ordering::Relaxed);
    for wrong in bytes.flat_map(|byte| [0x01u64, 0x80, 0xff].map(|bits| bits << (8 * byte))) {
        words.store(at, right ^ wrong, Ordering::Relaxed);
        if let Some(attached) = attach(words) {
            read_all(&attached, pattern::check);
        }
    }
    words.store(at, right, Ordering::Relaxed);
}

#[test]
fn any_one_wrong_byte_of_the_head_is_an_error_or_harmless() {
    let words = segment();
    let layout = Layout::new(SIZES);
    let used = layout.definition_control + STORE_CONTROL_WORDS + SIZES.definition_slots * SLOT_WORDS;
    (0..used).for_each(|at| flip(&words, at, ALL_BYTES));
}

#[test]
fn any_one_wrong_byte_of_the_identity_is_an_error() {
    let words = segment();
    for at in 0..gputap_ringbuf::layout::ident::WORDS {
        let right = words.load(at, Ordering::Relaxed);
        for byte in ALL_BYTES {
            words.store(at, right ^ 1 << (8 * byte), Ordering::Relaxed);
            assert!(attach(&words).is_none(), "word {at}, byte {byte}");
        }
        words.store(at, right, Ordering::Relaxed);
    }
}

/// Of the lanes every seventeenth word, a byte each, in both halves of chunks and of records.
#[test]
fn any_one_wrong_byte_of_the_lanes_and_stores_costs_records_or_entries_and_makes_none_wrong() {
    let words = segment();
    let layout = Layout::new(SIZES);
    (layout.lanes..layout.cubins).step_by(17).for_each(|at| flip(&words, at, at % 8..at % 8 + 1));
    let entries_words = 4 * 512 / 8;
    let areas = [layout.cubins, layout.definitions].into_iter().flat_map(|start| start..start + entries_words);
    areas.for_each(|at| flip(&words, at, ALL_BYTES));
}

#[test]
fn a_wrong_byte_in_an_entry_is_told_from_the_entry() {
    let words = segment();
    let attached = attach(&words).unwrap();
    let at = attached.layout().cubins + 1;
    words.store(at, words.load(at, Ordering::Relaxed) ^ 0x100, Ordering::Relaxed);
    let mut store = attached.cubins();
    let read = std::iter::from_fn(|| store.next_entry()).collect::<Vec<_>>();
    let changed = read.iter().filter(|entry| store.read(entry) == Err(BadEntry::Changed)).count();
    assert_eq!((read.len(), changed), (4, 1));
}

#[test]
fn a_segment_of_another_machine_or_version_is_refused_with_a_word() {
    let words = segment();
    let refused = |index: usize, value: u64| {
        let right = words.load(index, Ordering::Relaxed);
        words.store(index, value, Ordering::Relaxed);
        let error = Attached::new(words.clone(), words.len() as u64 * 8).err().map(|e| e.to_string());
        words.store(index, right, Ordering::Relaxed);
        error.unwrap()
    };
    let magic = words.load(0, Ordering::Relaxed);
    assert!(refused(0, magic.swap_bytes()).contains("other byte order"));
    assert!(refused(0, 0).contains("not a gputap segment"));
    let abi = words.load(1, Ordering::Relaxed);
    assert!(refused(1, abi + (1 << 32)).contains("use the gputap that the job was started with"));
    assert!(refused(11, 1).contains("check word"));
}

#[test]
fn a_lane_whose_head_was_wrong_for_a_while_is_read_on() {
    let words = segment();
    let attached = attach(&words).unwrap();
    for word in 0..2 {
        for value in [0, 1, 77, 1 << 40, 1 << 61, u64::MAX - 1, u64::MAX] {
            let at = attached.layout().lane_header(1) + word;
            let mut reader = attached.lane(1);
            let right = words.load(at, Ordering::Relaxed);
            words.store(at, value, Ordering::Relaxed);
            let mut count = reader.drain(u64::MAX, pattern::check).delivered;
            words.store(at, right, Ordering::Relaxed);
            count += reader.drain(u64::MAX, pattern::check).delivered;
            assert_eq!(count, 50, "word {word} was {value:#x}");
        }
    }
}

#[test]
fn a_broken_chunk_costs_its_own_records_and_no_others() {
    let words = segment();
    let attached = attach(&words).unwrap();
    let lane = attached.layout().lane_data(0);
    let whole = attached.lane(0).drain(u64::MAX, pattern::check);
    // The number, the first seq, and the first record's number of each chunk.
    let places = [(0, 1u64 << 8), (1, 1 << 8), (4, 1 << 40)];
    for (chunk, (word, flip)) in (0..4).flat_map(|chunk| places.map(|place| (chunk, place))) {
        let at = lane + chunk * CHUNK_WORDS + word;
        let right = words.load(at, Ordering::Relaxed);
        words.store(at, right ^ flip, Ordering::Relaxed);
        let mut reader = attached.lane(0);
        let done = reader.drain(u64::MAX, pattern::check);
        words.store(at, right, Ordering::Relaxed);
        assert!(done.delivered >= whole.delivered / 2 && done.delivered < whole.delivered, "{done:?}");
        assert!(done.delivered + done.unreadable + done.before_attach <= RECORDS, "{done:?}");
    }
}

/// No record is in it: so it costs none, however few a chunk has. A lane of one record a chunk was lost for ever.
#[test]
fn a_wrong_byte_in_the_filling_of_a_chunk_costs_nothing() {
    for (record_words, records) in [(5000, 12), (1000, 80)] {
        let capacity = 16 * CHUNK_WORDS;
        let (header, data) = (heap_words(LANE_HEADER_WORDS), heap_words(capacity));
        let writer = LaneWriter::new(header.clone(), data.clone(), capacity);
        (0..records).for_each(|n| writer.write(1, &vec![n; record_words]).unwrap());
        let per_chunk = (CHUNK_WORDS - CHUNK_HEADER_WORDS) / (1 + record_words);
        let filling = CHUNK_HEADER_WORDS + per_chunk * (1 + record_words);
        data.store(filling, data.load(filling, Ordering::Relaxed) ^ 1 << 8, Ordering::Relaxed);
        let done =
            LaneReader::new(header, data, capacity).drain(u64::MAX, |r| assert!(r.words.iter().all(|w| *w == r.seq)));
        assert_eq!(done, Drained { delivered: records, ..Drained::default() }, "{per_chunk} a chunk");
    }
}

#[test]
fn entries_outside_the_store_or_larger_than_any_are_refused() {
    let words = segment();
    let attached = attach(&words).unwrap();
    let slots = attached.layout().cubin_control + STORE_CONTROL_WORDS;
    for (word, value) in
        [(2, PAGE_BYTES as u64 + 1), (2, u64::MAX), (3, PAGE_BYTES as u64 + 1), (3, u64::MAX), (3, 1 << 40)]
    {
        let right = words.load(slots + word, Ordering::Relaxed);
        words.store(slots + word, value, Ordering::Relaxed);
        let mut store = attached.cubins();
        let entries = std::iter::from_fn(|| store.next_entry()).count();
        words.store(slots + word, right, Ordering::Relaxed);
        assert_eq!((entries, store.invalid), (3, 1));
    }
}

/// An invalid entry that became ready late hid the good ones behind it until the next call.
#[test]
fn a_bad_entry_among_those_waited_for_does_not_hide_the_good_ones() {
    let words = segment();
    let attached = attach(&words).unwrap();
    let slots = attached.layout().cubin_control + STORE_CONTROL_WORDS;
    (0..4).for_each(|slot| words.store(slots + 8 * slot, 1, Ordering::Relaxed));
    let mut store = attached.cubins();
    assert_eq!(store.next_entry(), None);
    words.store(slots + 3, u64::MAX, Ordering::Relaxed);
    (0..4).for_each(|slot| words.store(slots + 8 * slot, 2, Ordering::Relaxed));
    assert_eq!(std::iter::from_fn(|| store.next_entry()).count(), 3);
}

fn any_value() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..9u64,
        any::<u64>(),
        (0..64u32).prop_map(|b| 1 << b),
        Just(u64::MAX),
        8180..8200u64,
        32_700..32_800u64
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_words_anywhere_are_read_to_an_end(
        changes in prop::collection::vec((prop_oneof![64..4096usize, 64..70_000usize], any_value()), 1..40),
        lane_heads in prop::collection::vec((0..2usize, 0..3usize, any_value()), 0..6),
    ) {
        let words = segment();
        let layout = Layout::new(SIZES);
        for (at, value) in changes {
            words.store(at, value, Ordering::Relaxed);
        }
        for (lane, word, value) in lane_heads {
            words.store(layout.lane_header(lane) + word, value, Ordering::Relaxed);
        }
        if let Some(attached) = attach(&words) {
            read_all(&attached, pattern::check);
        }
    }
}

/// A lane whose writer shows a tail far away for an instant, then stays one chunk ahead of the reader, and writes nothing
/// but filling.
#[derive(Clone, Default)]
struct NothingButPadding {
    looks: Arc<AtomicU64>,
    chunks: Arc<AtomicU64>,
}

impl ReadWords for NothingButPadding {
    /// The header.
    fn load(&self, index: usize, _: Ordering) -> u64 {
        let first = self.looks.fetch_add(1, Ordering::Relaxed) < 2;
        let ahead = (self.chunks.load(Ordering::Relaxed) + 1) * CHUNK_WORDS as u64;
        match index {
            header::INTENT | header::TAIL if first => 1 << 48,
            header::INTENT | header::TAIL => ahead,
            _ => 0,
        }
    }

    /// The data, a chunk at a time.
    fn load_all(&self, _: usize, to: &mut [u64]) {
        let chunk = self.chunks.fetch_add(1, Ordering::Relaxed);
        assert!(chunk < 1_000, "one drain reads without end");
        to.fill(0);
        to[0] = chunk;
        to[2] = chunk_check(chunk, 0);
        // Kind 0 and the length; the check of what has no number and no payload is the same half again.
        let low = ((CHUNK_WORDS - CHUNK_HEADER_WORDS - 1) as u64) << 16;
        to[CHUNK_HEADER_WORDS] = low | low << 32;
    }
}

#[test]
fn a_lane_of_filling_without_end_does_not_keep_a_drain() {
    let lane = NothingButPadding::default();
    let mut reader = LaneReader::new(lane.clone(), lane.clone(), 4 * CHUNK_WORDS);
    let drained = reader.drain(u64::MAX, |record| panic!("there is no record: {record:?}"));
    assert!(drained.more && lane.chunks.load(Ordering::Relaxed) > 1, "{drained:?}");
}
