//! A thread that inherits a dead thread's pointer inherits its lane: real threads, whose stacks, and with them their
//! pointers, the C library gives out again. Also where the thread before it ended inside a write, at every store of it.
#![cfg(not(loom))]

#[path = "write_path/ending.rs"]
mod ending;
#[path = "write_path/told_apart.rs"]
mod told_apart;

use ending::{Ending, end_thread_before_store};
use gputap_ringbuf::{
    attach::Attached,
    backing::create::{BackingChoice, create},
    header::identity::Backing,
    housekeeping::{Ahead, Housekeeper, Step},
    lane::reader::LaneReader,
    layout::{CHUNK_WORDS, Sizes},
    process,
    tap::TapWriter,
    words::MappedWords,
};
use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use told_apart::{LaneTally, fill};

const SIZES: Sizes = Sizes { lanes: 6, lane_words: 4 * CHUNK_WORDS, ..Sizes::STATUS_ONLY };
/// How often a new thread may get another pointer than the one before it.
const TRIES: u64 = 100;
const DEADLINE: Duration = Duration::from_secs(30);
const MAKER: u64 = 1;
const MOST_WORDS: u64 = 30;
/// More than the longest write has, leaving the lane included: then the thread ends outside.
const MOST_STORES: u64 = MOST_WORDS + 20;

/// Threads of one test would take the pointers of another's.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

struct Tap {
    writer: TapWriter<Ending>,
    housekeeper: Housekeeper,
    attached: Attached,
    /// What the next record gets as its number; one that never began leaves a gap.
    next: AtomicU64,
}

/// What a thread saw of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    pointer: u64,
    tid: u64,
    lane: Option<usize>,
}

fn tap() -> Tap {
    let created = create(SIZES, BackingChoice::Only(Backing::Memfd)).unwrap();
    let writer = TapWriter::seen_through(&created, Ending);
    let mut housekeeper = Housekeeper::new(created.reserver, Ahead { lanes: SIZES.lanes, ..Ahead::DEFAULT });
    while let Step::Reserved = housekeeper.step(&writer) {}
    writer.publish();
    let attached = writer.as_reader().unwrap();
    Tap { writer, housekeeper, attached, next: AtomicU64::new(0) }
}

impl Tap {
    /// One record by the calling thread; `seen` knows the lane before it is written.
    fn write(&self, seen: &mut Seen) {
        // SAFETY: no preconditions.
        (seen.pointer, seen.tid) = unsafe { (libc::pthread_self() as u64, libc::gettid() as u64) };
        let lane = self.writer.enter_lane(seen.pointer, seen.tid).unwrap();
        seen.lane = Some(lane.index());
        let mut payload = [0; MOST_WORDS as usize + 2];
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lane.write(MAKER as u16, fill(&mut payload, MAKER, number, MOST_WORDS)).unwrap();
    }

    fn readers(&self) -> Vec<(LaneReader<MappedWords>, LaneTally)> {
        (0..SIZES.lanes).map(|lane| (self.attached.lane(lane), LaneTally::default())).collect()
    }
}

/// Records that the readers can account for, and how many of them were abandoned.
fn accounted_for(readers: &mut [(LaneReader<MappedWords>, LaneTally)]) -> (u64, u64) {
    readers.iter_mut().for_each(|(reader, tally)| while tally.drain(reader) {});
    let sum = |of: fn(&LaneTally) -> u64| readers.iter().map(|(_, tally)| of(tally)).sum::<u64>();
    assert_eq!(sum(|tally| tally.sums.unreadable), 0);
    (sum(|tally| tally.sums.accounted()), sum(|tally| tally.sums.abandoned))
}

/// A thread of the C library's own making, since Rust's cannot be joined when it ends inside a function.
fn run_thread(mut body: impl FnMut() + Send) {
    extern "C" fn start<F: FnMut()>(body: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: `run_thread` passes a live F and waits until we are done with it.
        unsafe { (*body.cast::<F>())() };
        std::ptr::null_mut()
    }
    fn start_of<F: FnMut()>(_: &F) -> extern "C" fn(*mut libc::c_void) -> *mut libc::c_void {
        start::<F>
    }
    let mut thread = 0;
    // SAFETY: `thread` may be written; `body` outlives the thread, which is joined here.
    unsafe {
        let failed = libc::pthread_create(&mut thread, std::ptr::null(), start_of(&body), (&raw mut body).cast());
        assert_eq!(failed, 0);
        assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
    }
}

/// Threads write a record each, one after the other, until one has the pointer of `ended`; gives it, and how many.
fn heir_of(tap: &Tap, ended: Seen) -> (Seen, u64) {
    for threads in 1..=TRIES {
        let mut seen = Seen::default();
        run_thread(|| tap.write(&mut seen));
        if seen.pointer == ended.pointer {
            return (seen, threads);
        }
    }
    panic!("the C library did not give pointer {:#x} to any of the {TRIES} threads after its owner", ended.pointer);
}

#[test]
fn an_heir_goes_on_in_the_lane_of_the_thread_before_it() {
    let _turn = turn();
    let mut tap = tap();
    let mut readers = tap.readers();
    let mut first = Seen::default();
    run_thread(|| tap.write(&mut first));
    let (heir, threads) = heir_of(&tap, first);
    assert_ne!(heir.tid, first.tid);
    assert_eq!(heir.lane, first.lane);
    assert_eq!(accounted_for(&mut readers), (1 + threads, 0));
    assert_eq!(tap.attached.counters().attempted, 1 + threads);
    // The heir has ended too; the kernel forgets it a moment after it woke who waited for it.
    let used = (0..SIZES.lanes).filter(|lane| tap.attached.lane_is_used(*lane)).count();
    let mut freed = 0;
    let start = Instant::now();
    while freed < used {
        freed += tap.housekeeper.free_lanes(&tap.writer, process::has_no_thread);
        assert!(start.elapsed() < DEADLINE, "{freed} of {used} lanes came free");
        thread::yield_now();
    }
    assert_eq!((freed, tap.housekeeper.free_lanes(&tap.writer, |_| true)), (used, 0));
}

#[test]
fn an_heir_mends_the_lane_of_a_thread_that_ended_at_any_store_of_its_write() {
    let _turn = turn();
    let tap = tap();
    let mut readers = tap.readers();
    let (mut records, mut abandoned) = (0, 0);
    let mut ends = [0; 3];
    for stores in 0..MOST_STORES {
        let mut first = Seen::default();
        run_thread(|| {
            tap.write(&mut first);
            end_thread_before_store(stores);
            tap.write(&mut Seen::default());
            end_thread_before_store(u64::MAX);
        });
        let (heir, threads) = heir_of(&tap, first);
        assert_eq!(heir.lane, first.lane, "ended before store {stores}");
        let now = accounted_for(&mut readers);
        let (second, second_abandoned) = (now.0 - records - 1 - threads, now.1 - abandoned);
        assert!(second <= 1 && second_abandoned <= second, "ended before store {stores}: {second} {second_abandoned}");
        ends[(second + second_abandoned) as usize] += 1;
        (records, abandoned) = now;
        assert_eq!(tap.attached.counters().attempted, records);
    }
    let [not_begun, finished, inside] = ends;
    println!("ended {not_begun} times before it began, {inside} times inside, {finished} times after its end");
    // Taking the lane, noting the id and INTENT come before the record has begun, and leaving after it.
    assert!(not_begun == 3 && inside > 10 && finished > 1);
    // For who comes late, the lane has been lapped: some of those are gone like all else.
    assert_eq!(accounted_for(&mut tap.readers()).0, records);
}
