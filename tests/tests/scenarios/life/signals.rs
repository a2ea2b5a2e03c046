//! Signals are the application's: each arrives where it would without a tap.

use std::os::unix::process::{CommandExt, ExitStatusExt};

use gputap_reader::session::NoSink;
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::status::State;

use crate::app::App;
use crate::reading::{is_unknown, read_to_the_end, read_until_delivered, wait_for, wait_for_state, wait_for_status};

fn send(pid: u32, signal: i32) {
    // SAFETY: no memory is passed.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, signal) }, 0);
}

/// All of them, from before the driver is there.
#[test]
fn every_signal_reaches_the_applications_own_handler() {
    let mut app = App::start_without_driver("gputap_shim", &[("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "1")]);
    let signals: Vec<i32> = app.ask("handle").split(' ').map(|signal| signal.parse().expect("a number")).collect();
    app.ask("init");
    let mut session = app.session(BASIC_KINDS);
    app.load(1);
    for (sent, &signal) in signals.iter().enumerate() {
        send(app.pid(), signal);
        let expected = format!("{} 0 0", sent + 1);
        let mut handled = String::new();
        wait_for(
            "a signal",
            || format!("{signal}, {expected}"),
            || {
                handled = app.ask("handled");
                (handled == expected).then_some(())
            },
        );
    }
    app.launch(99);
    app.end("exit");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (100, 100), "{:?}", snapshot.counts);
}

/// A process that blocks all signals and fetches them with sigwait: a thread that did not block them would take them, and
/// end the process.
#[test]
fn a_process_that_waits_for_its_signals_gets_every_one() {
    let blocked = |command: &mut std::process::Command| {
        let block = || {
            // SAFETY: zero is a valid sigset_t, which sigfillset fills; both calls may be made between fork and exec.
            unsafe {
                let mut all: libc::sigset_t = std::mem::zeroed();
                libc::sigfillset(&raw mut all);
                libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
            }
            Ok(())
        };
        // SAFETY: as the closure says.
        unsafe { command.pre_exec(block) };
    };
    for backing in ["shm", "memfd"] {
        let env = [("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "1"), ("GPUTAP_BACKING", backing)];
        let mut app = App::start_prepared("gputap_shim", &env, blocked);
        app.ask("init");
        wait_for_state(&app.attached(), State::BlackBox);
        app.load(1);
        for round in 0..60 {
            let signal =
                [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1, libc::SIGALRM, libc::SIGRTMIN()][round % 6];
            // Half of them while it waits, half before.
            if round % 2 == 0 {
                send(app.pid(), signal);
                app.tell("sigwait");
            } else {
                app.tell("sigwait");
                send(app.pid(), signal);
            }
            assert_eq!(app.hear("sigwait"), signal.to_string());
        }
        let (_, status) = app.end("exit");
        assert!(status.success(), "{status}");
    }
}

/// An application with 300 records of its own that CUPTI holds, and 100 that were delivered.
fn holding() -> (App, gputap_reader::session::Session) {
    let mut app = App::start(&[("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "60000")]);
    let found = app.found();
    let mut session = app.session(BASIC_KINDS);
    app.load(1);
    app.launch(99);
    crate::reading::command(&found, gputap_ringbuf::control::Command::Flush);
    read_until_delivered(&mut session, 100);
    app.launch(300);
    (app, session)
}

#[test]
fn a_signal_without_a_handler_ends_the_process_as_ever() {
    for signal in [libc::SIGTERM, libc::SIGKILL, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1] {
        let (app, mut session) = holding();
        let tap = app.attached();
        send(app.pid(), signal);
        let (_, status) = app.over("a signal");
        assert_eq!(status.signal(), Some(signal), "{status}");
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (100, 100), "{:?}", snapshot.counts);
        assert!(is_unknown(&snapshot, "held_by_cupti"), "what CUPTI held is unknown, not zero: {:?}", snapshot.counts);
        assert_ne!(tap.status().state, Some(State::Exited));
        assert_eq!(snapshot.target.state, "exited");
    }
}

#[test]
fn a_handler_that_exits_is_an_ordinary_exit() {
    let (mut app, mut session) = holding();
    let tap = app.attached();
    app.ask(&format!("exit-at {}", libc::SIGTERM));
    send(app.pid(), libc::SIGTERM);
    let (_, status) = app.over("a signal");
    assert_eq!(status.code(), Some(3), "{status}");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (400, 400), "{:?}", snapshot.counts);
    assert!(!is_unknown(&snapshot, "held_by_cupti"));
    assert_eq!(tap.status().state, Some(State::Exited));
}

/// Nobody is told that it stopped; its reader waits, and finds it where it was.
#[test]
fn a_process_that_is_stopped_goes_on_where_it_was() {
    let mut app = App::start(&[("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "5")]);
    let tap = app.attached();
    let mut session = app.session(BASIC_KINDS);
    app.load(1);
    app.queue(999);
    send(app.pid(), libc::SIGSTOP);
    let stopped =
        || std::fs::read_to_string(format!("/proc/{}/stat", app.pid())).is_ok_and(|stat| stat.contains(") T"));
    wait_for("the stop", String::new, || stopped().then_some(()));
    let age_ns = |snapshot: gputap_reader::model::snapshot::Snapshot| snapshot.target.heartbeat_age_ns;
    crate::reading::step_until(&mut session, &mut NoSink, "an old heartbeat", |session, progress| {
        assert!(!progress.ended, "it is only stopped");
        age_ns(session.snapshot(gputap_reader::clock::Now::read())) > 1_500_000_000
    });
    let heartbeat_ns = tap.status().heartbeat_ns;
    send(app.pid(), libc::SIGCONT);
    wait_for_status(&tap, "a heartbeat", |status| status.heartbeat_ns > heartbeat_ns);
    app.launch(1_000);
    app.end("exit");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (2_000, 2_000), "{:?}", snapshot.counts);
}
