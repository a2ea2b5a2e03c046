//! How a tapped process ends.

use std::time::Duration;

use gputap_reader::session::NoSink;
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::status::State;

use crate::app::App;
use crate::job::{Job, ORDINARY_PATIENCE, generated, spec};
use crate::reading::{is_unknown, read_to_the_end, read_until_delivered, wait_for_state};

/// No end of a process takes longer on a machine that is busy with other tests; life/exit_time.rs measures.
const BOUND: Duration = Duration::from_secs(5);
/// So long that no flush of the timer's comes between: all is with CUPTI when the process ends.
const NO_FLUSH: (&str, &str) = ("GPUTAP_FLUSH_MS", "60000");

#[test]
fn an_ordinary_exit_delivers_the_last_records() {
    let mut job = Job::start(&spec(), &[("GPUTAP_START", "blackbox"), NO_FLUSH]);
    let tap = job.attached();
    let mut session = job.session(0);
    job.wait_for_progress(100);
    let ended = job.end();
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!(
        (snapshot.counts.delivered, snapshot.counts.attempted),
        (generated(&ended.report), generated(&ended.report))
    );
    assert!(ended.exit_took < BOUND, "{:?}", ended.exit_took);
    assert!(!is_unknown(&snapshot, "held_by_cupti"), "{:?}", snapshot.counts);
    assert_eq!(tap.status().state, Some(State::Exited));
}

/// It hangs from the first flush on: the records are with CUPTI, and the timer is in the flush.
#[test]
fn a_flush_that_hangs_does_not_keep_the_process() {
    let env = [
        ("GPUTAP_START", "blackbox"),
        ("GPUTAP_FLUSH_MS", "1"),
        ("FAKE_CUPTI_FAULTS", "flush_hang=1"),
        ORDINARY_PATIENCE,
    ];
    let mut app = App::start(&env);
    let tap = app.attached();
    let mut session = app.session(0);
    while app.did().flushes == 0 {
        app.load(1);
        app.launch(100);
    }
    assert_eq!(tap.status().state, Some(State::BlackBox));
    let (took, status) = app.end("exit");
    assert!(status.success() && took < BOUND, "{status} after {took:?}");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert!(is_unknown(&snapshot, "held_by_cupti"), "{:?}", snapshot.counts);
    assert_ne!(tap.status().state, Some(State::Exited));
}

/// The same where the first flush is the one that a lease's end or the exit asks for.
#[test]
fn a_last_flush_that_hangs_does_not_keep_the_process() {
    let mut app = App::start(&[NO_FLUSH, ("FAKE_CUPTI_FAULTS", "flush_hang=1"), ORDINARY_PATIENCE]);
    let session = app.session(BASIC_KINDS);
    wait_for_state(&app.attached(), State::Recording);
    app.load(1);
    app.launch(100);
    let (took, status) = app.end("exit");
    assert!(status.success() && took < BOUND, "{status} after {took:?}");
    drop(session);
}

#[test]
fn an_exit_that_skips_the_handlers_loses_only_what_cupti_held() {
    for words in ["_exit", "abort"] {
        let mut app = App::start(&[("GPUTAP_FLUSH_MS", "60000")]);
        let found = app.found();
        let mut session = app.session(BASIC_KINDS);
        wait_for_state(&app.attached(), State::Recording);
        app.load(1);
        app.launch(499);
        crate::reading::command(&found, gputap_ringbuf::control::Command::Flush);
        read_until_delivered(&mut session, 500);
        app.launch(300);
        assert_eq!(app.did().records_written, 800);
        let (took, _) = app.end(words);
        assert!(took < BOUND, "{took:?}");
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (500, 500), "all that reached the shim");
        assert!(is_unknown(&snapshot, "held_by_cupti"), "what CUPTI held is unknown, not zero: {:?}", snapshot.counts);
    }
}

/// The flush at a lease's end leaves what is not finished with CUPTI: the exit asks for it, whoever wants it by then.
#[test]
fn an_exit_after_the_last_lease_delivers_what_was_still_running_at_its_end() {
    let mut app = App::start(&[NO_FLUSH, ("FAKE_CUDA_QUEUE_MS", "2000")]);
    let (found, tap) = (app.found(), app.attached());
    let session = app.session(BASIC_KINDS);
    wait_for_state(&tap, State::Recording);
    app.load(1);
    app.queue(100_000);
    drop(session);
    wait_for_state(&tap, State::Idle);
    let written = app.did().records_written;
    let mut late = crate::reading::session(&found, 0);
    app.end("exit");
    let snapshot = read_to_the_end(&mut late, &mut NoSink);
    assert_eq!(snapshot.counts.attempted, written);
}
