//! The write path makes no system call: everything that a callback may do is done where the kernel kills whoever makes
//! one. A filter of seccomp, stricter than its strict mode: that one forbids the x86 instruction that reads the clock,
//! too, which is no system call.
#![cfg(not(loom))]

#[path = "write_path/calls.rs"]
mod calls;

use calls::{CALLS, Prepared};
use gputap_ringbuf::process;
use std::{
    io::{PipeWriter, Read, pipe},
    os::fd::AsRawFd,
};

/// How a process that may make no system call came to its end.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// It came to the end of what it was to do.
    Done,
    /// The call of that number did not do what it should.
    Wrong(usize),
    /// The kernel killed it inside the call of that number.
    Killed(usize),
}

const CODE_DONE: u8 = 0;
const CODE_WRONG: u8 = 1;
const CODE_NO_SECCOMP: u8 = 2;

/// Runs the calls in a child of fork, one thread, under the filter. It shares the segment with us, and nothing else.
fn without_system_calls(count: usize, call: impl Fn(usize) -> bool) -> End {
    let (mut begun, mut say) = pipe().unwrap();
    // SAFETY: the child takes no lock and allocates nothing, which is tested; it ends by SYS_exit.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = strictly(count, call, &mut say);
        // SAFETY: no memory is passed. The call that exit(3) makes is not allowed.
        unsafe { libc::syscall(libc::SYS_exit, libc::c_int::from(code)) };
    }
    assert!(pid > 0, "fork: {}", std::io::Error::last_os_error());
    drop(say);
    let mut calls_begun = Vec::new();
    begun.read_to_end(&mut calls_begun).unwrap();
    let mut status = 0;
    // SAFETY: `status` may be written.
    assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
    let last = calls_begun.len().wrapping_sub(1);
    if libc::WIFSIGNALED(status) {
        assert_eq!(libc::WTERMSIG(status), libc::SIGSYS, "in call {last}");
        return End::Killed(last);
    }
    match libc::WEXITSTATUS(status) as u8 {
        CODE_DONE => End::Done,
        CODE_NO_SECCOMP => panic!("the kernel has no filters of seccomp: it cannot be told whether calls are made"),
        _ => End::Wrong(last),
    }
}

fn strictly(count: usize, call: impl Fn(usize) -> bool, say: &mut PipeWriter) -> u8 {
    if !forbid_system_calls() {
        return CODE_NO_SECCOMP;
    }
    for index in 0..count {
        // SAFETY: one byte of a live variable; write is allowed.
        unsafe { libc::write(say.as_raw_fd(), (&raw const index).cast(), 1) };
        if !call(index) {
            return CODE_WRONG;
        }
    }
    CODE_DONE
}

/// From now on, whatever this thread asks of the kernel but write and exit ends the process with SIGSYS.
fn forbid_system_calls() -> bool {
    const NUMBER_OFFSET: u32 = 0; // In struct seccomp_data.
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let allow_at = |call: libc::c_long, ahead: u8| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: ahead,
        jf: 0,
        k: call as u32,
    };
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, NUMBER_OFFSET),
        allow_at(libc::SYS_write, 2),
        allow_at(libc::SYS_exit, 1),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_KILL_PROCESS),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: `program` and the filter it points to are whole and live; the other call passes no memory.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    }
}

fn get_parent_pid() -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::syscall(libc::SYS_getppid) > 0 }
}

/// The clock is read in user space (vDSO) if the kernel's clock source allows it, as on every machine with a GPU that
/// was seen. Otherwise each entry of a store costs a system call.
fn check_clock() {
    let source = || std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    if without_system_calls(1, |_| process::monotonic_ns() > 0) != End::Done {
        let source = source().unwrap_or_default();
        panic!(
            "on this machine reading the clock is a system call (clock source {}), so storing a cubin or name makes \
             one; the rest cannot be judged here",
            source.trim()
        );
    }
}

#[test]
fn nothing_that_a_callback_does_makes_a_system_call() {
    check_clock();
    let prepared = Prepared::new();
    let end = without_system_calls(CALLS.len(), |index| CALLS[index].1(&prepared));
    if let End::Wrong(index) | End::Killed(index) = end {
        panic!("{end:?}: {}", CALLS[index].0);
    }
    prepared.check_segment();
}

#[test]
fn each_call_does_what_it_says_without_seccomp_too() {
    let prepared = Prepared::new();
    CALLS.iter().for_each(|(name, call)| assert!(call(&prepared), "{name}"));
    prepared.check_segment();
}

#[test]
fn one_system_call_is_seen() {
    assert_eq!(without_system_calls(1, |_| true), End::Done);
    assert_eq!(without_system_calls(3, |index| index < 1 || get_parent_pid()), End::Killed(1));
    assert_eq!(without_system_calls(3, |index| index < 2), End::Wrong(2));
}
