//! Keeps the descriptors of a memfd open whatever the job does with its own.
//!
//! Readers find a memfd through /proc, by a descriptor; a job that closes all of its descriptors (a daemon, a launcher)
//! would take the tap from everybody's sight. So one thread of ours leaves the process' table of descriptors for one of
//! its own, in which only our two are, and then does nothing for ever. The timer cannot be that thread: it calls into
//! CUPTI, which needs the process' descriptors.
//!
//! Everything else in the new table is closed at once: a copy of the job's pipe would keep its reader from ever seeing
//! the end. Closing them takes nothing from the job: POSIX locks belong to a table, and the new one never held any.
//!
//! The thread is a bare one, not Rust's: it must come to its end without the loader's lock, which the thread that starts
//! us may hold and Rust's thread-locals take, since its start is waited for.

use crate::sync::{AtomicU64, Ordering};
use std::{ffi::c_void, fs, io, os::fd::RawFd, ptr::null_mut};

/// What becomes of the descriptors when the job closes all that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A named segment: found by its name.
    ByName,
    /// A thread has them in a table of its own.
    ByKeeper,
    /// Gone with the job's: the kernel, or a seccomp filter, allows no table of our own (the error number is in it).
    ByJob { error: i32 },
}

/// What readers look for in /proc/PID/task/TID/comm.
pub(crate) const THREAD_NAME: &str = "gputap-keep";
/// The start of the thread is waited for, so that no reader finds the descriptors in the job's table first; not longer.
const PATIENCE_MS: i64 = 500;

/// Between the starter and the thread. Never freed: the starter may have gone on when the thread comes to it.
struct Start {
    keep: [RawFd; 2],
    /// 0 until the thread knows, then 1 + the error number.
    outcome: AtomicU64,
    known: libc::sem_t,
    /// Nobody writes or wakes it.
    never: u32,
}

/// Starts the thread, with every signal blocked in it.
pub(super) fn start(mut keep: [RawFd; 2]) -> Held {
    keep.sort_unstable();
    // SAFETY: zero is a valid sem_t, and sem_init fills it.
    let known: libc::sem_t = unsafe { std::mem::zeroed() };
    let start = Box::leak(Box::new(Start { keep, outcome: AtomicU64::new(0), known, never: 0 }));
    let start: *mut Start = start;
    // SAFETY: leaked just now, so it is there for ever; nobody else has it yet.
    unsafe { libc::sem_init(&raw mut (*start).known, 0, 0) };
    if let Err(error) = with_signals_blocked(|| spawn(start)) {
        return Held::ByJob { error };
    }
    // SAFETY: as above; the thread only posts the semaphore and stores the outcome, which is atomic.
    let outcome = unsafe {
        wait(&raw mut (*start).known);
        // SYNC: pairs with the Release store in `run`.
        (*start).outcome.load(Ordering::Acquire)
    };
    match outcome {
        1 => Held::ByKeeper,
        0 => Held::ByJob { error: libc::ETIMEDOUT },
        known => Held::ByJob { error: (known - 1) as i32 },
    }
}

/// # Safety
/// `known` is an initialised semaphore.
unsafe fn wait(known: *mut libc::sem_t) {
    let deadline_ns = crate::process::realtime_ns() as i64 + PATIENCE_MS * 1_000_000;
    let deadline = libc::timespec { tv_sec: deadline_ns / 1_000_000_000, tv_nsec: deadline_ns % 1_000_000_000 };
    // A handler of the job's may interrupt the wait; it cannot do so for ever.
    for _ in 0..1000 {
        // SAFETY: the caller's promise; `deadline` is a whole timespec.
        if unsafe { libc::sem_timedwait(known, &deadline) } == 0
            || io::Error::last_os_error().raw_os_error() != Some(libc::EINTR)
        {
            return;
        }
    }
}

fn with_signals_blocked<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: zero is a valid sigset_t, and sigfillset fills it.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut before = all;
    // SAFETY: both sets may be written. The C library leaves out the signals that it needs itself (for setuid).
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let result = body();
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, null_mut()) };
    result
}

/// The error is a number.
fn spawn(start: *mut Start) -> Result<(), i32> {
    // The least that any libc takes is not enough where libraries have much thread-local data.
    const STACK_BYTES: [usize; 3] = [64 << 10, 256 << 10, 2 << 20];
    let mut failed = 0;
    for stack_bytes in STACK_BYTES {
        // SAFETY: zero is a valid pthread_attr_t to initialise; it is destroyed below. The thread gets a pointer that
        // stays valid for ever.
        failed = unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            libc::pthread_attr_init(&mut attributes);
            libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
            libc::pthread_attr_setstacksize(&mut attributes, stack_bytes);
            let mut thread = std::mem::zeroed();
            let failed = libc::pthread_create(&mut thread, &attributes, run, start.cast());
            libc::pthread_attr_destroy(&mut attributes);
            failed
        };
        if failed != libc::EINVAL {
            break;
        }
    }
    if failed == 0 { Ok(()) } else { Err(failed) }
}

extern "C" fn run(start: *mut c_void) -> *mut c_void {
    let start: *mut Start = start.cast();
    let name = c"gputap-keep";
    debug_assert_eq!(name.to_bytes(), THREAD_NAME.as_bytes());
    // SAFETY: the name is NUL-terminated.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    // SAFETY: `start` was leaked by the starter.
    let kept = take_own_table(unsafe { (*start).keep });
    let outcome = 1 + kept.err().map_or(0, |error| error as u64);
    // SAFETY: as above; the starter reads it atomically and waits for the semaphore.
    unsafe {
        // SYNC: pairs with the Acquire load in `start`.
        (*start).outcome.store(outcome, Ordering::Release);
        libc::sem_post(&raw mut (*start).known);
    }
    if kept.is_ok() {
        // SAFETY: as above: the word is there for ever.
        unsafe { rest(&raw const (*start).never) };
    }
    null_mut()
}

/// Waits for what never comes. On a futex, which whoever lets threads run has to allow: a job may forbid `pause` to all
/// its threads at any time, and one that was waiting in it meets the filter when it goes on after SIGSTOP. Where even
/// this is refused, the descriptors are given up: a loop would take a core.
///
/// # Safety
/// `never` stays readable, and what it points to stays 0.
unsafe fn rest(never: *const u32) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let without_end = std::ptr::null::<libc::timespec>();
    loop {
        // SAFETY: the caller's promise; the kernel only reads the word.
        let failed = unsafe { libc::syscall(libc::SYS_futex, never, operation, 0, without_end) } != 0;
        // The C library interrupts every thread for setuid and the like.
        if failed && last_error() != libc::EINTR {
            return;
        }
    }
}

/// Leaves the process' table for one that has only `keep`, which is ordered; the error is a number. After an error the
/// thread must end: it may have a table with descriptors of the job's.
fn take_own_table(keep: [RawFd; 2]) -> Result<(), i32> {
    let [low, high] = keep.map(|fd| fd as libc::c_uint);
    // With the numbers below ours first, new kernels do not even copy them.
    let first = if low > 0 { close_range(0, low - 1, libc::CLOSE_RANGE_UNSHARE) } else { Err(libc::EINVAL) };
    if first.is_err() {
        // Linux before 5.9, or a filter that forbids the one call and not the other.
        // SAFETY: no memory is passed; it concerns this thread alone, which uses no descriptor of the job's.
        if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
            return first;
        }
        return close_others(keep);
    }
    if high - low > 1 {
        close_range(low + 1, high - 1, 0)?;
    }
    close_range(high + 1, libc::c_uint::MAX, 0)
}

fn close_range(first: libc::c_uint, last: libc::c_uint, flags: libc::c_uint) -> Result<(), i32> {
    // SAFETY: no memory is passed; what is closed is in this thread's own table (of which UNSHARE makes sure first).
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// One by one, as /proc lists them.
fn close_others(keep: [RawFd; 2]) -> Result<(), i32> {
    let listed = fs::read_dir("/proc/thread-self/fd").map_err(|e| e.raw_os_error().unwrap_or(libc::EIO))?;
    let numbers: Vec<RawFd> = listed.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for fd in numbers.into_iter().filter(|fd| !keep.contains(fd)) {
        // SAFETY: no memory is passed; the table is this thread's own. The list's own descriptor is closed already.
        unsafe { libc::close(fd) };
    }
    Ok(())
}

fn last_error() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

impl Held {
    /// What a person has to know; empty where all is well.
    pub fn complaint(self) -> String {
        match self {
            Held::ByName | Held::ByKeeper => String::new(),
            Held::ByJob { error } => format!(
                "no reader can find this tap once the job closes descriptors that it does not know, since none of our \
                 threads could have a table of its own ({}); GPUTAP_BACKING=shm does not need one. ",
                io::Error::from_raw_os_error(error)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs::File, os::fd::AsRawFd, thread};

    /// What an old kernel leaves us: the one-by-one way has the same end.
    #[test]
    fn both_ways_leave_only_what_is_kept() {
        let (a, b) = (File::open("/dev/null").unwrap(), File::open("/dev/null").unwrap());
        let mut keep = [a.as_raw_fd(), b.as_raw_fd()];
        keep.sort_unstable();
        for with_close_range in [true, false] {
            let open: Vec<RawFd> = thread::spawn(move || {
                if with_close_range {
                    take_own_table(keep).unwrap();
                } else {
                    // SAFETY: no memory is passed; it concerns this thread alone.
                    assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
                    close_others(keep).unwrap();
                }
                // SAFETY: no memory is passed.
                (0..4096).filter(|&fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0).collect()
            })
            .join()
            .unwrap();
            assert_eq!(open, keep);
        }
        // SAFETY: no memory is passed.
        assert!(unsafe { libc::fcntl(2, libc::F_GETFD) } >= 0, "the process has its own still");
    }
}
