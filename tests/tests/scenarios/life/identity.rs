//! Applications that give up being root, and readers who are somebody else.

use std::io::Write;

use gputap_reader::session::NoSink;
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::find;
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::State;
use gputap_tests::{child_command, is_child, run_under_watchdog};

use crate::app::App;
use crate::reading::{LIMIT, read_to_the_end, wait_for_status};

pub const NOBODY: u32 = 65534;

/// Whether these tests may become somebody else; says so where they may not.
pub fn is_root(what: &str) -> bool {
    // SAFETY: no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        // On the real standard error, which the test harness does not keep for itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED {what}: only root may");
    }
    root
}

/// The tap goes on in the process that it started in, whoever that is by now, and root reads it.
#[test]
fn a_process_that_gives_up_being_root_keeps_its_tap() {
    if !is_root("another user") {
        return;
    }
    for backing in ["shm", "memfd"] {
        let mut app =
            App::start(&[("GPUTAP_BACKING", backing), ("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "5")]);
        let tap = app.attached();
        let mut early = app.session(BASIC_KINDS);
        app.load(1);
        app.ask(&format!("user {NOBODY}"));
        let heartbeat_ns = tap.status().heartbeat_ns;
        (2..=20).for_each(|seed| app.load(seed));
        app.launch(80);
        wait_for_status(&tap, "turns", |status| status.heartbeat_ns > heartbeat_ns + 1_200_000_000);
        // One who comes later finds it as well.
        let mut late = app.session(BASIC_KINDS);
        assert_eq!(tap.counters().get(Counter::ModuleLoads), 20);
        let (_, exit) = app.end("exit");
        assert!(exit.success(), "{exit}");
        for session in [&mut early, &mut late] {
            let snapshot = read_to_the_end(session, &mut NoSink);
            assert_eq!((snapshot.counts.attempted, snapshot.module_counts.stored), (100, 20), "{:?}", snapshot.counts);
        }
        assert_eq!(tap.status().state, Some(State::Exited));
    }
}

const READER: &str = "life::identity::a_reader_who_is_somebody_else_is_told_so";

/// In a child process that is nobody: what a reader of the process in the environment is told.
fn read_as_nobody() {
    // SAFETY: no memory is passed.
    let refused = unsafe { libc::setgroups(0, std::ptr::null()) | libc::setgid(NOBODY) | libc::setuid(NOBODY) };
    assert_eq!(refused, 0);
    let pid = std::env::var("GPUTAP_TEST_PID").expect("given").parse().expect("a number");
    let told = match find(pid) {
        Ok(found) => Attached::open(&found).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    println!("\ntold: {}", told.unwrap_or_else(|| "nothing, and read it".into()));
}

#[test]
fn a_reader_who_is_somebody_else_is_told_so() {
    if is_child(READER) {
        return read_as_nobody();
    }
    if !is_root("another user") {
        return;
    }
    for (backing, after_setuid) in [("shm", false), ("memfd", false), ("shm", true), ("memfd", true)] {
        let mut app = App::start(&[("GPUTAP_BACKING", backing)]);
        app.attached();
        if after_setuid {
            app.ask(&format!("user {NOBODY}"));
        }
        let mut command = child_command(READER);
        command.env("GPUTAP_TEST_PID", app.pid().to_string());
        let reader = run_under_watchdog(&mut command, LIMIT).unwrap_or_else(|error| panic!("{error}"));
        let told = reader.stdout.lines().find(|line| line.starts_with("told: ")).unwrap_or(&reader.stderr);
        println!("{backing}, after setuid: {after_setuid}: {told}");
        assert!(told.contains("another user") || told.to_lowercase().contains("permission"), "{backing}: {told}");
        app.end("exit");
    }
}
