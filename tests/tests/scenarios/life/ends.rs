//! Ends of a process in the middle of something.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use gputap_reader::session::{NoSink, Session};
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::State;
use gputap_tests::artifact;

use crate::app::App;
use crate::job::ORDINARY_PATIENCE;
use crate::reading::{is_unknown, read_to_the_end, total_lost, wait_for_state, wait_until_recording};

/// On a machine that is busy with other tests; `exit_time.rs` measures.
const BOUND: Duration = Duration::from_secs(5);
const BLACK_BOX: (&str, &str) = ("GPUTAP_START", "blackbox");

/// Records of 100 launches are with CUPTI when it ends.
fn holding(env: &[(&str, &str)]) -> (App, Session) {
    let env: Vec<_> = env.iter().copied().chain([BLACK_BOX, ("GPUTAP_FLUSH_MS", "60000")]).collect();
    let mut app = App::start(&env);
    let session = app.session(BASIC_KINDS);
    app.load(1);
    app.launch(99);
    (app, session)
}

/// Which runs no handler of `atexit`: as `_exit`, it loses what CUPTI held, and says so.
#[test]
fn quick_exit_loses_what_cupti_held() {
    let (app, mut session) = holding(&[]);
    let (took, status) = app.end("quick_exit");
    assert!(status.success() && took < BOUND, "{status} after {took:?}");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!(snapshot.counts.attempted, 0);
    assert!(is_unknown(&snapshot, "held_by_cupti"), "{:?}", snapshot.counts);
}

#[test]
fn abort_is_an_abort() {
    let (app, _session) = holding(&[]);
    let (_, status) = app.end("abort");
    assert_eq!(status.signal(), Some(libc::SIGABRT), "{status}");
}

/// Nothing waits for the kernels; their records come without an end, and count.
#[test]
fn exit_while_kernels_run_brings_their_records_and_does_not_wait_for_them() {
    let (mut app, mut session) = holding(&[("FAKE_CUDA_QUEUE_MS", "3600000")]);
    let tap = app.attached();
    (0..3).for_each(|_| assert_eq!(app.ask("long 600"), "ok"));
    let (took, status) = app.end("exit");
    assert!(status.success() && took < BOUND, "{status} after {took:?}");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    let counts = &snapshot.counts;
    assert_eq!((counts.attempted, counts.delivered, counts.flagged_times), (103, 103, 3), "{counts:?}");
    assert_eq!(tap.status().state, Some(State::Exited));
}

fn with_watch(app: impl FnOnce(&[(&str, &str)])) {
    let preload = artifact("malloc_watch").expect("built");
    app(&[
        ("LD_PRELOAD", preload.to_str().expect("UTF-8")),
        BLACK_BOX,
        ("GPUTAP_FLUSH_MS", "60000"),
        ORDINARY_PATIENCE,
    ]);
}

/// What a bounded exit gives up: all that was with CUPTI.
fn ends_without_a_flush(app: App, words: &str, code: i32, mut session: Session) {
    let tap = app.attached();
    let (took, status) = app.end(words);
    assert!(status.code() == Some(code) && took < BOUND, "{words}: {status} after {took:?}");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert!(is_unknown(&snapshot, "held_by_cupti"), "{words}: {:?}", snapshot.counts);
    assert_ne!(tap.status().state, Some(State::Exited), "{words}: not all was delivered");
}

/// The loading thread is stopped inside our callback, and has the driver's lock: the last flush cannot come back.
#[test]
fn exit_while_another_thread_loads_a_module() {
    with_watch(|env| {
        let mut app = App::start(env);
        let session = app.session(BASIC_KINDS);
        app.ask("freeze");
        ends_without_a_flush(app, "exit", 0, session);
    });
}

/// By a handler of the application's that has interrupted our callback: the exiting thread is the one that the flush waits
/// for.
#[test]
fn exit_from_inside_a_callback() {
    with_watch(|env| {
        let app = App::start(env);
        let session = app.session(BASIC_KINDS);
        ends_without_a_flush(app, "exit-in-callback", 4, session);
    });
}

#[test]
fn exit_from_a_thread_that_is_inside_the_driver() {
    let mut app =
        App::start_without_driver("gputap_shim", &[BLACK_BOX, ("GPUTAP_FLUSH_MS", "60000"), ORDINARY_PATIENCE]);
    app.ask("door");
    app.ask("init");
    let session = app.session(BASIC_KINDS);
    app.load(1);
    app.launch(99);
    assert_eq!(app.did().records_written, 100);
    ends_without_a_flush(app, "exit-with-lock", 5, session);
}

/// What was still running when the last lease ended stayed with CUPTI, although nobody records by then.
#[test]
fn what_cupti_held_is_unknown_of_an_idle_tap_too() {
    for words in ["exit-with-lock", "_exit"] {
        let env = [("GPUTAP_FLUSH_MS", "60000"), ("FAKE_CUDA_QUEUE_MS", "3600000"), ORDINARY_PATIENCE];
        let mut app = App::start_without_driver("gputap_shim", &env);
        app.ask("door");
        app.ask("init");
        let (found, tap) = (app.found(), app.attached());
        let session = app.session(BASIC_KINDS);
        wait_until_recording(&tap);
        app.ask("long 600");
        drop(session);
        wait_for_state(&tap, State::Idle);
        let mut late = crate::reading::session(&found, 0);
        app.end(words);
        let snapshot = read_to_the_end(&mut late, &mut NoSink);
        assert_eq!(snapshot.counts.attempted, 0, "{words}");
        assert!(is_unknown(&snapshot, "held_by_cupti"), "{words}: {:?}", snapshot.counts);
    }
}

/// The main thread returns, as most programs end.
#[test]
fn the_end_of_main_is_an_ordinary_exit() {
    let (app, mut session) = holding(&[]);
    let tap = app.attached();
    let (took, status) = app.end_of_input();
    assert!(status.success() && took < BOUND, "{status} after {took:?}");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (100, 100), "{:?}", snapshot.counts);
    assert!(!is_unknown(&snapshot, "held_by_cupti"));
    assert_eq!(tap.status().state, Some(State::Exited));
}

/// Exit at any moment of threads that load, launch and unload, and of buffers that are being completed.
#[test]
fn exit_among_busy_threads_ends_well_and_the_books_add_up() {
    for round in 0..12 {
        let flush_ms = ["1", "60000"][round % 2];
        let mut app = App::start(&[BLACK_BOX, ("GPUTAP_FLUSH_MS", flush_ms)]);
        let mut session = app.session(BASIC_KINDS);
        app.ask("busy 3");
        let (took, status) = app.end("exit");
        assert!(status.success() && took < BOUND, "{status} after {took:?}");
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert!(snapshot.counts.delivered > 0, "{:?}", snapshot.counts);
        let named = ["overwritten", "before_attach", "unfinished", "held_by_cupti"];
        assert!(snapshot.counts.lost.iter().all(|l| named.contains(&l.reason.as_str())), "{:?}", snapshot.counts);
    }
}

/// The tap is never taken down: callbacks that come after its exit handler, while the application's own handlers still
/// work, find all that they use.
#[test]
fn callbacks_after_the_exit_handler_find_the_tap() {
    let env = [BLACK_BOX, ("GPUTAP_FLUSH_MS", "60000")];
    let mut app = App::start_without_driver("gputap_shim", &env);
    app.ask("late-handler 300");
    app.ask("init");
    let tap = app.attached();
    let mut session = app.session(BASIC_KINDS);
    app.ask("busy 3");
    let (loads, attempted) = (tap.counters().get(Counter::ModuleLoads), tap.counters().attempted);
    let (took, status) = app.end("exit");
    assert!(status.success() && took < BOUND, "{status} after {took:?}");
    let after = tap.counters();
    assert!(after.get(Counter::ModuleLoads) > loads + 10 && after.attempted > attempted, "{after:?}");
    assert_eq!((after.get(Counter::Panics), tap.status().state), (0, Some(State::Exited)));
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!(snapshot.counts.delivered + total_lost(&snapshot), snapshot.counts.attempted);
}
