//! CUPTI's worker thread, and what waits for it.
//!
//! Guarantees: every completed-callback runs on this thread or on a completer, without a lock of ours; before each pass it takes the
//! driver lock for a moment; a flush returns only after a pass that began after the flush was asked for.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use crate::buffers::{self, Take};
use crate::completers;
use crate::driver;
use crate::ids::realtime_ns;
use crate::watch;

struct Desk {
    /// Passes asked for, and the last one that is over.
    asked: u64,
    done: u64,
    forced: bool,
    partial: bool,
    /// A buffer became full.
    poked: bool,
}

static DESK: Mutex<Desk> = Mutex::new(Desk { asked: 0, done: 0, forced: false, partial: false, poked: false });
static WORK: Condvar = Condvar::new();
static DONE: Condvar = Condvar::new();
static THREAD: OnceLock<Option<ThreadId>> = OnceLock::new();

/// Starts the worker at the first call; false if there is none.
pub fn start() -> bool {
    let started = THREAD.get_or_init(|| {
        let thread = std::thread::Builder::new().name("cupti-worker".into()).spawn(run).ok()?;
        Some(thread.thread().id())
    });
    started.is_some()
}

/// A buffer may be ready.
pub fn poke() {
    desk().poked = true;
    WORK.notify_one();
}

/// Waits for a pass of the worker that gives back what `take` allows. False where that would wait for itself.
pub fn pass(take: Take) -> bool {
    if !start() || THREAD.get().is_some_and(|id| *id == Some(std::thread::current().id())) {
        return false;
    }
    watch::before_a_wait();
    let mut desk = desk();
    desk.asked += 1;
    desk.forced |= take == Take::Forced;
    desk.partial |= take == Take::Partial;
    let ticket = desk.asked;
    WORK.notify_one();
    while desk.done < ticket {
        desk = DONE.wait(desk).unwrap_or_else(PoisonError::into_inner);
    }
    true
}

fn desk() -> MutexGuard<'static, Desk> {
    DESK.lock().unwrap_or_else(PoisonError::into_inner)
}

fn run() {
    loop {
        let (ticket, take) = wait_for_work();
        driver::pass_the_lock();
        let (client, taken) = buffers::take(take);
        if let Some(client) = client {
            completers::complete(client, taken);
        }
        let mut desk = desk();
        if desk.done < ticket {
            desk.done = ticket;
            DONE.notify_all();
        }
    }
}

/// Waits until a pass is asked for or a full buffer is finished: the tickets that the pass will serve, and its reach.
fn wait_for_work() -> (u64, Take) {
    let mut desk = desk();
    loop {
        if desk.asked > desk.done {
            let take = match (desk.forced, desk.partial) {
                (true, _) => Take::Forced,
                (false, true) => Take::Partial,
                (false, false) => Take::Full,
            };
            (desk.forced, desk.partial, desk.poked) = (false, false, false);
            return (desk.asked, take);
        }
        desk.poked = false;
        drop(desk);
        let finish = buffers::lock().next_finish_ns();
        let left = finish.map(|finish| finish.saturating_sub(realtime_ns()));
        if left == Some(0) {
            return (0, Take::Full);
        }
        desk = self::desk();
        if desk.poked || desk.asked > desk.done {
            continue;
        }
        desk = match left {
            Some(ns) => WORK.wait_timeout(desk, Duration::from_nanos(ns)).map_or_else(|e| e.into_inner().0, |w| w.0),
            None => WORK.wait(desk).unwrap_or_else(PoisonError::into_inner),
        };
    }
}
