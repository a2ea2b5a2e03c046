//! What a thread of the writer does at a place that was armed, and what is done to it at random times. Nothing here
//! allocates or takes a lock: it may run in any instant of a write, and in a signal handler.

use std::{cell::Cell, ffi::CString, sync::OnceLock, time::Duration};

use super::{
    generator,
    plan::{Action, Arm, Number, Plan},
};

thread_local! {
    /// Whether this thread writes records: only such a thread may end. No destructor, so no registration.
    static WRITES: Cell<bool> = const { Cell::new(false) };
}

/// What the process becomes when it is replaced, made ready beforehand.
static SELF_AGAIN: OnceLock<[CString; 3]> = OnceLock::new();

/// To end a thread.
const END: libc::c_int = libc::SIGUSR1;
/// To let a thread write from inside a signal handler.
const NEST: libc::c_int = libc::SIGUSR2;

pub fn is_a_writer() {
    WRITES.set(true);
}

/// Whether this thread can end without its process.
pub fn may_end() -> bool {
    WRITES.get()
}

/// Makes the process ready to be struck. `arguments` are those that start this program as this writer again.
pub fn prepare(arguments: [CString; 3]) {
    let _ = SELF_AGAIN.set(arguments);
    for (signal, handler) in [(END, on_end as extern "C" fn(libc::c_int)), (NEST, on_nest)] {
        // SAFETY: zero is a valid sigaction: no flags, no signal blocked meanwhile; a handler is set below.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: `action` is whole; the handlers only do what may be done in one (module comment).
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
    // Forked children are reaped by the kernel.
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Ends a thread of process `pid` at whatever it does now. False where it has none such.
pub fn end_thread(pid: u32, tid: u64) -> bool {
    send(pid, tid, END)
}

pub fn nest_in_thread(pid: u32, tid: u64) -> bool {
    send(pid, tid, NEST)
}

fn send(pid: u32, tid: u64, signal: libc::c_int) -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_tgkill, pid as libc::pid_t, tid as libc::pid_t, signal) == 0 }
}

pub fn kill(pid: u32, signal: libc::c_int) {
    // SAFETY: no memory is passed.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

extern "C" fn on_end(_: libc::c_int) {
    if WRITES.get() {
        end_this_thread();
    }
}

extern "C" fn on_nest(_: libc::c_int) {
    if WRITES.get() {
        generator::write_from_a_handler();
    }
}

fn end_this_thread() -> ! {
    // SAFETY: ends this thread alone: no destructor runs, no lock of the C library is held here (module comment).
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the thread has ended");
}

fn kill_this_process() -> ! {
    kill(std::process::id(), libc::SIGKILL);
    loop {
        // SAFETY: no preconditions.
        unsafe { libc::pause() };
    }
}

/// Carries out what `arm` says.
pub fn act(plan: &Plan, arm: Arm) {
    match arm.action {
        Action::End if WRITES.get() => end_this_thread(),
        Action::End | Action::Kill => kill_this_process(),
        Action::Stop => kill(std::process::id(), libc::SIGSTOP),
        Action::Park => park(plan, arm.serial),
        Action::Nest if WRITES.get() => _ = nest_in_thread(std::process::id(), own_tid()),
        // The housekeeping thread writes no records: nothing to wait for.
        Action::Nest => _ = plan.add(Number::NestedDone),
        Action::Fork => fork(plan),
        Action::Exec => become_self_again(),
    }
}

/// As the protocol sees it: a lane that was left inside a write has been taken over.
pub fn mends(plan: &Plan, by_housekeeping: bool) {
    plan.add(if by_housekeeping { Number::HousekeepingMended } else { Number::HeirMended });
}

pub fn own_tid() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::gettid() as u64 }
}

/// No deadline of its own: the parent has one, and kills.
fn park(plan: &Plan, serial: u64) {
    while plan.number(Number::Released) < serial {
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn fork(plan: &Plan) {
    let executes = plan.add(Number::Forked) % 2 == 1;
    // SAFETY: the child makes only calls that may be made after a fork with threads, and ends.
    match unsafe { libc::fork() } {
        0 if executes => {
            let arguments = [c"/bin/true".as_ptr(), std::ptr::null()];
            // SAFETY: the arguments are NUL-terminated and so is their list; `_exit` where there is no such program.
            unsafe {
                libc::execv(arguments[0], arguments.as_ptr());
                libc::_exit(0);
            }
        }
        0 => {
            // It keeps the mapping for longer than its parent may live.
            std::thread::sleep(Duration::from_millis(20));
            // SAFETY: ends this child, without clean-up.
            unsafe { libc::_exit(0) };
        }
        _ => {}
    }
}

fn become_self_again() {
    let Some([program, role, fd]) = SELF_AGAIN.get() else { return };
    let arguments = [program.as_ptr(), role.as_ptr(), fd.as_ptr(), std::ptr::null()];
    // SAFETY: the arguments are NUL-terminated, and so is their list.
    unsafe { libc::execv(arguments[0], arguments.as_ptr()) };
    // Nothing of this process can go on as if nothing had happened.
    kill_this_process();
}
