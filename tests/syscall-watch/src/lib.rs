//! Preloaded into a process (`LD_PRELOAD`), counts the callbacks of a CUPTI client that make a system call.
//!
//! The fake CUPTI says when a callback begins and ends. In between the kernel sends the thread SIGSYS instead of doing
//! what it asks (system call user dispatch, Linux 5.11); the handler counts, lets the rest of the callback pass, and
//! does the call. So at most one call of a callback is seen, which is one too many. Reading a clock is none where the
//! vDSO can. For x86_64, as the fakes.
#![cfg(target_arch = "x86_64")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

static CALLBACKS: AtomicU64 = AtomicU64::new(0);
static CALLS: AtomicU64 = AtomicU64::new(0);
/// Threads that could not be watched.
static UNWATCHED: AtomicU64 = AtomicU64::new(0);
/// The number of the last call that was seen.
static LAST: AtomicI64 = AtomicI64::new(-1);

const ALLOW: u8 = 0;
const BLOCK: u8 = 1;
const PR_SET_SYSCALL_USER_DISPATCH: c_int = 59;
const PR_SYS_DISPATCH_ON: usize = 1;

thread_local! {
    // This library is loaded with the process, so its thread-locals are made with the thread; none has a destructor.
    /// What the kernel looks at before each call of this thread.
    static SELECTOR: Cell<u8> = const { Cell::new(ALLOW) };
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_enter() {
    CALLBACKS.fetch_add(1, Ordering::Relaxed);
    if !IS_WATCHED.replace(true) && !watch_this_thread() {
        UNWATCHED.fetch_add(1, Ordering::Relaxed);
    }
    DEPTH.set(DEPTH.get() + 1);
    SELECTOR.set(BLOCK);
}

#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_leave() {
    DEPTH.set(DEPTH.get() - 1);
    if DEPTH.get() == 0 {
        SELECTOR.set(ALLOW);
    }
}

/// Callbacks that made a system call.
#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// Callbacks that were watched.
#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_callbacks() -> u64 {
    CALLBACKS.load(Ordering::Relaxed)
}

/// Threads whose callbacks could not be watched.
#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_unwatched() -> u64 {
    UNWATCHED.load(Ordering::Relaxed)
}

/// The number of the last system call that was seen, modulo 2^64; all ones for none.
#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_last() -> u64 {
    LAST.load(Ordering::Relaxed).cast_unsigned()
}

fn watch_this_thread() -> bool {
    // SAFETY: zero is a valid sigaction and a valid set, whose fields are then set; the handler is of the type that
    // SA_SIGINFO calls for. The selector lives as long as its thread, which is as long as the kernel looks at it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_call as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        let mut only: libc::sigset_t = std::mem::zeroed();
        libc::sigaddset(&raw mut only, libc::SIGSYS);
        let selector = SELECTOR.with(Cell::as_ptr);
        libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) == 0
            && libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, std::ptr::null_mut()) == 0
            && libc::prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, selector) == 0
    }
}

/// The call was not made: it is made here, and its result put where it belongs.
///
/// # Safety
/// The kernel calls it with what it says of the signal and of the interrupted thread.
unsafe extern "C" fn on_call(_signal: c_int, _info: *mut libc::siginfo_t, context: *mut c_void) {
    SELECTOR.set(ALLOW);
    // SAFETY: the kernel's promise.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let number = registers[libc::REG_RAX as usize];
    CALLS.fetch_add(1, Ordering::Relaxed);
    LAST.store(number, Ordering::Relaxed);
    let [a, b, c, d, e, f] = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
        .map(|register| registers[register as usize]);
    // SAFETY: the very call that the thread wanted to make.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    // SAFETY: no preconditions; what it gives is this thread's own.
    let error = unsafe { *libc::__errno_location() };
    registers[libc::REG_RAX as usize] = if result == -1 { -i64::from(error) } else { result };
}
