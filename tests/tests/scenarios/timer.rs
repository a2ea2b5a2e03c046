//! The tap's thread is a guest in the process: it takes no signals and changes no handlers.

use std::fs;
use std::path::PathBuf;

use gputap_ringbuf::header::status::State;

use crate::app::App;
use crate::reading::{wait_for, wait_for_state};

/// A line of a `status` file in /proc, as a mask of signals; bit 0 is signal 1.
fn mask(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
    u64::from_str_radix(line.trim(), 16).unwrap_or_else(|error| panic!("{name} {line}: {error}"))
}

fn status(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs")
}

fn thread_named(pid: u32, name: &str) -> Option<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten().map(|task| task.path());
    tasks.into_iter().find(|task| fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name))
}

#[test]
fn takes_no_signals_and_replaces_no_handlers() {
    let mut app = App::start_without_driver("gputap_shim", &[("GPUTAP_START", "blackbox")]);
    let pid = app.pid();
    // It has answered, so it runs.
    app.ask("counters");
    let before = status(pid);
    let application = thread_named(pid, "app::app").expect("it answers");
    app.ask("init");
    wait_for_state(&app.attached(), State::BlackBox);
    app.load(1);
    let timer = wait_for("the timer thread", || status(pid), || thread_named(pid, "gputap-timer"));
    let of_timer = fs::read_to_string(timer.join("status")).expect("it runs");
    // SIGKILL and SIGSTOP cannot be blocked; 32 and 33 belong to the C library.
    let can_be_blocked = |signal: u32| !matches!(signal, 9 | 19 | 32 | 33);
    let expected = (1..=64).filter(|&signal| can_be_blocked(signal)).fold(0, |mask, signal| mask | 1 << (signal - 1));
    let blocked = mask(&of_timer, "SigBlk:");
    assert_eq!(blocked & expected, expected, "{blocked:016x}");

    let after = status(pid);
    for name in ["SigCgt:", "SigIgn:"] {
        assert_eq!(mask(&after, name), mask(&before, name), "{name}");
    }
    // The thread whose cuInit started the tap has its signals back.
    let of_application = fs::read_to_string(application.join("status")).expect("it runs");
    assert_eq!(mask(&of_application, "SigBlk:"), 0);
}
