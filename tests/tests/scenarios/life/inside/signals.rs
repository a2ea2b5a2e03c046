//! The application's own signals.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

static HANDLED: [AtomicU64; 65] = [const { AtomicU64::new(0) }; 65];
/// On threads of the tap's.
static ON_OURS: AtomicU64 = AtomicU64::new(0);

/// Signals that a program handles for itself: not the two that cannot be caught, the C library's own, nor those that a
/// fault raises.
fn all() -> impl Iterator<Item = c_int> {
    let others = [libc::SIGKILL, libc::SIGSTOP, 32, 33, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];
    (1..=64).filter(move |signal| !others.contains(signal))
}

extern "C" fn count(signal: c_int) {
    let mut name = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    if name.starts_with(b"gputap") {
        ON_OURS.fetch_add(1, Ordering::Relaxed);
    }
    HANDLED[signal as usize].fetch_add(1, Ordering::Relaxed);
}

fn install(signal: c_int, handler: extern "C" fn(c_int)) {
    // SAFETY: zero is a valid sigaction; the handler is of its type and calls what a handler may call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &raw const action, std::ptr::null_mut()), 0, "{signal}");
    }
}

/// Handles every signal; their numbers.
pub fn handle() -> String {
    all().for_each(|signal| install(signal, count));
    all().map(|signal| signal.to_string()).collect::<Vec<_>>().join(" ")
}

/// `SIGNALS ON_OURS REPLACED`: how many different signals were handled, how often on a thread of the tap's, and how many
/// handlers are not the application's any more.
pub fn handled() -> String {
    let handled = all().filter(|&signal| HANDLED[signal as usize].load(Ordering::Relaxed) > 0).count();
    let replaced = all().filter(|&signal| {
        // SAFETY: zero is a valid sigaction, and it may be written.
        let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        assert_eq!(unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) }, 0);
        now.sa_sigaction != count as extern "C" fn(c_int) as usize
    });
    format!("{handled} {} {}", ON_OURS.load(Ordering::Relaxed), replaced.count())
}

/// From now on this signal is an ordinary exit, in its handler.
pub fn exit_at(signal: u64) -> String {
    extern "C" fn exit(_: c_int) {
        // SAFETY: runs the exit handlers; programs do it in signal handlers, whatever the manual says.
        unsafe { libc::exit(3) };
    }
    install(signal as c_int, exit);
    String::from("ok")
}

/// Waits for the next signal of any kind, in a process that blocks all of them.
pub fn wait() -> String {
    // SAFETY: zero is a valid sigset_t, which sigfillset fills; the number may be written.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        let mut signal = 0;
        assert_eq!(libc::sigwait(&raw const set, &raw mut signal), 0);
        signal.to_string()
    }
}
