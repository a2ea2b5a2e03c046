//! Preloaded into a process (`LD_PRELOAD`), reports the locks that are taken, or waited for, while a callback of a CUPTI
//! client runs on the calling thread, and the lock order that ends in a deadlock sooner or later.
//!
//! The fake CUPTI says when a callback begins and ends, which locks of the driver's and its own are held then, and when a
//! thread waits for CUPTI's worker. A lock that is **held across such a wait**, and **taken in a callback**, closes a
//! cycle: whoever holds it waits for the worker, the worker for the driver lock (or for the end of its own callback), and
//! the callback for the holder. It is reported whether or not the threads met this time.
//!
//! Seen are the C library's mutexes, read-write locks, condition variables and semaphores, and waits on a futex by
//! `syscall`. A lock that is made of atomics is seen only where a thread has to wait for it.
//!
//! On stderr, at once: `lock-watch: taken KIND ADDRESS while MASK is held` for each lock's first time, and
//! `lock-watch: cycle ADDRESS`. When the process exits: `lock-watch: C callbacks, T taken, W waits, O cycles`.

mod interposed;
mod report;
mod sets;

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use sets::{AddressSet, Held};

static CALLBACKS: AtomicU64 = AtomicU64::new(0);
static TAKEN: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicU64 = AtomicU64::new(0);
static CYCLES: AtomicU64 = AtomicU64::new(0);

static TAKEN_IN_CALLBACKS: AddressSet = AddressSet::new();
static HELD_ACROSS_WAITS: AddressSet = AddressSet::new();
static IN_CYCLES: AddressSet = AddressSet::new();

thread_local! {
    // This library is loaded with the process, so its thread-locals are made with the thread; none has a destructor.
    /// Callbacks that run on this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Which of the driver's and CUPTI's locks the innermost callback runs under.
    static MASK: Cell<u32> = const { Cell::new(0) };
    /// The locks of the process that this thread holds.
    static HELD: Cell<Held> = const { Cell::new(Held::NONE) };
}

#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_enter() {
    CALLBACKS.fetch_add(1, Ordering::Relaxed);
    DEPTH.set(DEPTH.get() + 1);
}

#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_leave() {
    DEPTH.set(DEPTH.get() - 1);
}

/// Told before a callback begins: 1 for the driver lock, 2 for that of CUPTI's buffers.
#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_held(mask: u32) {
    MASK.set(mask);
}

/// The calling thread is about to wait for CUPTI's worker.
#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_wait() {
    WAITS.fetch_add(1, Ordering::Relaxed);
    for lock in HELD.get().locks() {
        HELD_ACROSS_WAITS.insert(lock);
        report_a_cycle(lock);
    }
}

/// Locks taken, or waited for, in callbacks so far.
#[unsafe(no_mangle)]
pub extern "C" fn lock_watch_taken() -> u64 {
    TAKEN.load(Ordering::Relaxed)
}

/// Different locks that close a cycle so far.
#[unsafe(no_mangle)]
pub extern "C" fn lock_watch_cycles() -> u64 {
    CYCLES.load(Ordering::Relaxed)
}

/// The thread is about to take, or to wait for, something of this kind.
fn about_to_take(kind: &str, lock: usize) {
    if DEPTH.get() == 0 {
        return;
    }
    TAKEN.fetch_add(1, Ordering::Relaxed);
    if TAKEN_IN_CALLBACKS.insert(lock) {
        report::taken(kind, lock, MASK.get());
    }
    report_a_cycle(lock);
}

fn took(lock: usize) {
    HELD.set(HELD.get().with(lock));
}

fn gave_back(lock: usize) {
    HELD.set(HELD.get().without(lock));
}

fn report_a_cycle(lock: usize) {
    if TAKEN_IN_CALLBACKS.contains(lock) && HELD_ACROSS_WAITS.contains(lock) && IN_CYCLES.insert(lock) {
        CYCLES.fetch_add(1, Ordering::Relaxed);
        report::cycle(lock);
    }
}

/// At the process's exit.
extern "C" fn sum_up() {
    let [callbacks, taken, waits, cycles] = [&CALLBACKS, &TAKEN, &WAITS, &CYCLES].map(|n| n.load(Ordering::Relaxed));
    report::sum(callbacks, taken, waits, cycles);
}
