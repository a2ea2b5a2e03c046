//! Real signal handlers: a thread writes at full speed, and a handler on the same thread writes too. What came inside a
//! write is refused and counted, what came in between is written, and the outer write is never harmed.
#![cfg(not(loom))]

#[path = "write_path/told_apart.rs"]
mod told_apart;

use gputap_ringbuf::{
    backing::create::{BackingChoice, create},
    header::{counters::Counter, identity::Backing},
    housekeeping::{Ahead, Housekeeper, Step},
    lane::directory::Refused,
    layout::{CHUNK_WORDS, Sizes},
    tap::TapWriter,
};
use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use told_apart::{LaneTally, fill};

const SIZES: Sizes = Sizes { lanes: 2, lane_words: 4 * CHUNK_WORDS, ..Sizes::STATUS_ONLY };
const SIGNAL: libc::c_int = libc::SIGUSR2;
const DEADLINE: Duration = Duration::from_secs(30);
/// Of each kind, so that the handler has met the write at many of its instructions.
const ENOUGH: u64 = 500;

/// Who made a record.
const THREAD: u64 = 1;
const HANDLER: u64 = 2;
/// The longest of a run of lengths; every chunk is opened in between.
const MOST_WORDS: u64 = 50;

static TAP: OnceLock<TapWriter> = OnceLock::new();
/// The handler runs on the writing thread and on no other.
static TID: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);
static WRITTEN: AtomicU64 = AtomicU64::new(0);
static NESTED: AtomicU64 = AtomicU64::new(0);
static OTHERWISE: AtomicU64 = AtomicU64::new(0);

/// As a callback that an application's handler comes to: nothing here allocates or takes a lock.
extern "C" fn on_signal(_: libc::c_int) {
    let Some(tap) = TAP.get() else { return };
    let number = HANDLED.fetch_add(1, Ordering::Relaxed);
    match tap.enter_lane(this_thread(), TID.load(Ordering::Relaxed)) {
        Ok(lane) => {
            let mut payload = [0; MOST_WORDS as usize + 2];
            let payload = fill(&mut payload, HANDLER, number, MOST_WORDS);
            let written = lane.write(HANDLER as u16, payload).is_ok();
            (if written { &WRITTEN } else { &OTHERWISE }).fetch_add(1, Ordering::Relaxed);
        }
        Err(Refused::Nested) => {
            tap.count(Counter::Nested, 1);
            NESTED.fetch_add(1, Ordering::Relaxed);
        }
        Err(Refused::NoLane) => _ = OTHERWISE.fetch_add(1, Ordering::Relaxed),
    }
}

fn this_thread() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as u64 }
}

fn handle_signals() {
    // SAFETY: zero is a valid sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is whole, and its handler is safe to run at any instruction.
    assert_eq!(unsafe { libc::sigaction(SIGNAL, &action, std::ptr::null_mut()) }, 0);
}

/// Sends the signal to the writing thread, if it runs already.
fn send() {
    let tid = TID.load(Ordering::Relaxed) as libc::pid_t;
    // SAFETY: no memory is passed; the thread runs until it is told to end.
    let sent = tid == 0 || unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, SIGNAL) } == 0;
    assert!(sent, "{}", std::io::Error::last_os_error());
}

/// Writes until told to end; gives how many records that made. No write of the thread itself is ever refused.
fn write(tap: &TapWriter, ended: &AtomicBool) -> u64 {
    // SAFETY: no preconditions.
    TID.store(unsafe { libc::gettid() } as u64, Ordering::Relaxed);
    let mut payload = [0; MOST_WORDS as usize + 2];
    for number in 0.. {
        if ended.load(Ordering::Relaxed) {
            return number;
        }
        let payload = fill(&mut payload, THREAD, number, MOST_WORDS);
        tap.enter_lane(this_thread(), TID.load(Ordering::Relaxed)).unwrap().write(THREAD as u16, payload).unwrap();
    }
    unreachable!("the numbers do not run out")
}

#[test]
fn a_handler_that_writes_inside_a_write_is_refused_and_in_between_it_is_not() {
    let created = create(SIZES, BackingChoice::Only(Backing::Memfd)).unwrap();
    let tap = TAP.get_or_init(|| TapWriter::new(&created));
    let mut housekeeper = Housekeeper::new(created.reserver, Ahead::DEFAULT);
    while let Step::Reserved = housekeeper.step(tap) {}
    tap.publish();
    handle_signals();
    let ended = AtomicBool::new(false);
    let attached = tap.as_reader().unwrap();
    let mut live: Vec<_> = (0..SIZES.lanes).map(|lane| (attached.lane(lane), LaneTally::default())).collect();
    let of_the_thread = thread::scope(|scope| {
        let writer = scope.spawn(|| write(tap, &ended));
        let start = Instant::now();
        let enough = || NESTED.load(Ordering::Relaxed) >= ENOUGH && WRITTEN.load(Ordering::Relaxed) >= ENOUGH;
        while !enough() && start.elapsed() < DEADLINE {
            send();
            live.iter_mut().for_each(|(reader, tally)| _ = tally.drain(reader));
        }
        // Whatever fails from here on, nobody waits for the writer.
        ended.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    let [handled, written, nested, otherwise] =
        [&HANDLED, &WRITTEN, &NESTED, &OTHERWISE].map(|count| count.load(Ordering::Relaxed));
    println!("{of_the_thread} written by the thread; of {handled} in handlers {written} written, {nested} refused");
    assert!(written >= ENOUGH && nested >= ENOUGH, "not {ENOUGH} of each within {DEADLINE:?}");
    assert_eq!((handled, otherwise), (written + nested, 0));
    let counters = attached.counters();
    assert_eq!((counters.attempted, counters.get(Counter::Nested)), (of_the_thread + handled, nested));
    let mut late: Vec<_> = (0..SIZES.lanes).map(|lane| (attached.lane(lane), LaneTally::default())).collect();
    for (readers, name) in [(&mut live, "live"), (&mut late, "late")] {
        readers.iter_mut().for_each(|(reader, tally)| while tally.drain(reader) {});
        let total: u64 = readers.iter().map(|(_, tally)| tally.sums.accounted()).sum();
        assert_eq!(total, of_the_thread + written, "{name}");
        assert!(readers.iter().all(|(_, tally)| tally.sums.abandoned == 0 && tally.sums.unreadable == 0), "{name}");
    }
    assert!(live.iter().any(|(_, tally)| tally.sums.delivered > ENOUGH));
}
