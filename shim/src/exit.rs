//! The end of the process: the exit handler asks the timer for a last flush and waits a bounded time, no longer.

use gputap_callbacks::tapped;
use std::{
    sync::{Condvar, Mutex, MutexGuard, OnceLock},
    time::Duration,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Ending,
    Ended,
}

/// Between the exit handler and the timer thread. No callback touches it.
static PHASE: Mutex<Phase> = Mutex::new(Phase::Running);
static CHANGED: Condvar = Condvar::new();

/// The longest that our exit handler waits, unless the settings say otherwise. An exit may become 200 ms longer and no
/// more, whatever CUPTI does; what is left of them is for waking up on a busy machine, and for the kernel, which takes 100 MB
/// of reserved memory down in some 10 ms. A last flush takes a few milliseconds, tens where CUPTI holds the whole pool; one
/// that is not back by then waits for what this process may never give it (a lock of the driver that the exiting thread
/// holds), or for a processor. What it would have brought is unknown: the state stays what it was, and readers say so.
pub const PATIENCE: Duration = Duration::from_millis(150);

/// What the settings say.
static WAIT: OnceLock<Duration> = OnceLock::new();

/// Start-up: arranges for the last flush. `_exit`, `quick_exit`, abort and SIGKILL pass it by.
pub fn arrange(patience: Duration) -> bool {
    let _ = WAIT.set(patience);
    // SAFETY: the handler is a plain function of this library, which is never unloaded.
    unsafe { libc::atexit(at_exit) == 0 }
}

extern "C" fn at_exit() {
    // A forked child that exits is not ours to end.
    if tapped::current().is_none() {
        return;
    }
    let mut phase = lock();
    if *phase == Phase::Ended {
        return; // There is no timer, or it has failed.
    }
    *phase = Phase::Ending;
    CHANGED.notify_all();
    let patience = *WAIT.get().unwrap_or(&PATIENCE);
    let _ = CHANGED.wait_timeout_while(phase, patience, |p| *p != Phase::Ended);
}

/// The timer's rest: at most `rest`, less if the process ends. Gives true when it ends.
pub fn rest(rest: Duration) -> bool {
    let waited = CHANGED.wait_timeout_while(lock(), rest, |p| *p == Phase::Running);
    waited.is_ok_and(|(phase, _)| *phase != Phase::Running)
}

/// The timer has done its last work, or there is none.
pub fn ended() {
    *lock() = Phase::Ended;
    CHANGED.notify_all();
}

fn lock() -> MutexGuard<'static, Phase> {
    PHASE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
