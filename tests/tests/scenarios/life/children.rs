//! Children without exec, which go on with a copy of the process: for them the tap is off, and to its books they are
//! nothing. Children with exec, in which nothing is left of it. (`fork.rs` has those that launch and exit.)

use gputap_reader::session::NoSink;
use gputap_ringbuf::control::Command;
use gputap_ringbuf::discover::{FindError, discover, find};
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::State;
use gputap_tests::artifact;

use super::distant::{Distant, reap};
use crate::app::App;
use crate::reading::{
    command, is_unknown, read_to_the_end, read_until_delivered, step_until, total_lost, wait_for, wait_for_state,
};

/// `CODE MILLISECONDS` of a child.
fn parts(answer: &str) -> (i32, u64) {
    let (code, took_ms) = answer.split_once(' ').expect("two numbers");
    (code.parse().expect("a number"), took_ms.parse().expect("a number"))
}

fn code(answer: &str) -> i32 {
    parts(answer).0
}

/// Has children until one has left in less than an exit waits for the timer, if it is to wait: on a busy machine not every
/// one does.
fn leaves_at_once(app: &mut App, words: &str) {
    const SOON_MS: u64 = 100;
    let mut took_ms = u64::MAX;
    wait_for(
        "a child that waits for nobody",
        || words.into(),
        || {
            let (code, this_ms) = parts(&app.ask(words));
            assert_eq!(code, 7, "{words}");
            took_ms = took_ms.min(this_ms);
            (took_ms < SOON_MS).then_some(())
        },
    );
}

/// For children that call the driver: they have its lock as it was, and CUPTI's worker holds it for a moment in a flush.
/// (NVIDIA's driver refuses its calls in a forked child, and takes no lock for it.)
const NO_FLUSH: (&str, &str) = ("GPUTAP_FLUSH_MS", "60000");

fn has_no_tap(pid: u32) {
    assert!(matches!(find(pid), Err(FindError::NoTap { .. })), "{pid}: {:?}", find(pid));
}

/// As multiprocessing and a DataLoader have them: forked from some thread, alive beside the job, gone by `_exit`.
#[test]
fn workers_are_untapped_while_the_job_goes_on() {
    for backing in ["shm", "memfd"] {
        let mut app = App::start(&[("GPUTAP_BACKING", backing), ("GPUTAP_START", "blackbox"), NO_FLUSH]);
        let tap = app.attached();
        let mut session = app.session(BASIC_KINDS);
        (1..=4).for_each(|seed| app.load(seed));
        let answer = app.ask("workers 4");
        let workers: Vec<u32> = answer.split(' ').map(|pid| pid.parse().expect("a pid")).collect();
        app.launch(2_000);
        workers.iter().for_each(|&worker| has_no_tap(worker));
        assert!(discover().iter().all(|found| !workers.contains(&found.pid)), "a reader is shown a worker");
        assert_eq!(app.ask("dismiss"), "7 7 7 7", "the workers' own exit codes");
        app.launch(500);
        assert_eq!(tap.counters().get(Counter::ModuleLoads), 4, "the workers' modules are not the job's");
        app.end("exit");
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (2_504, 2_504), "{:?}", snapshot.counts);
        assert_eq!(tap.status().state, Some(State::Exited));
    }
}

/// They have its memory and its descriptors, and are not it.
#[test]
fn workers_that_outlive_a_killed_job_do_not_keep_its_tap_alive() {
    for backing in ["shm", "memfd"] {
        let mut app = App::start(&[("GPUTAP_BACKING", backing), ("GPUTAP_START", "blackbox"), NO_FLUSH]);
        let (found, mut session) = (app.found(), app.session(BASIC_KINDS));
        (1..=4).for_each(|seed| app.load(seed));
        command(&found, Command::Flush);
        read_until_delivered(&mut session, 4);
        let answer = app.ask("workers 2");
        let workers: Vec<u32> = answer.split(' ').map(|pid| pid.parse().expect("a pid")).collect();
        app.kill();
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (4, 4), "{:?}", snapshot.counts);
        assert!(is_unknown(&snapshot, "held_by_cupti"), "{:?}", snapshot.counts);
        let alive =
            |worker: &u32| std::fs::read_to_string(format!("/proc/{worker}/stat")).is_ok_and(|s| !s.contains(") Z"));
        // The pipe that they wait at ended with the job: they may be on their way out.
        workers.iter().filter(|worker| alive(worker)).for_each(|&worker| assert!(find(worker).is_err()));
        assert!(discover().iter().all(|other| !other.alive || other.segment != found.segment), "the dead are alive");
    }
}

/// However it is made and however it leaves.
#[test]
fn a_child_leaves_as_it_wants() {
    let mut app = App::start(&[("GPUTAP_START", "blackbox"), NO_FLUSH]);
    let tap = app.attached();
    let mut session = app.session(BASIC_KINDS);
    (1..=4).for_each(|seed| app.load(seed));
    for how in ["fork", "clone"] {
        for (leave, expected) in [("exit", 7), ("_exit", 7), ("abort", -libc::SIGABRT), ("kill", -libc::SIGKILL)] {
            for launch in ["", " launch"] {
                let answer = app.ask(&format!("child {how} {leave}{launch}"));
                assert_eq!(code(&answer), expected, "{how} {leave}{launch}");
            }
        }
    }
    app.launch(96);
    assert_eq!(tap.counters().get(Counter::ModuleLoads), 4, "the children's modules are not the parent's");
    app.end("exit");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (100, 100), "{:?}", snapshot.counts);
}

/// A thread is stopped in the middle of a callback, the driver's lock in its hands. The child has neither thread nor
/// tap: it leaves at once.
#[test]
fn a_child_made_while_another_thread_is_inside_a_callback_leaves_at_once() {
    let preload = artifact("malloc_watch").expect("built");
    let env = [("LD_PRELOAD", preload.to_str().expect("UTF-8")), ("GPUTAP_START", "blackbox")];
    let mut app = App::start(&env);
    let tap = app.attached();
    let mut session = app.session(BASIC_KINDS);
    app.ask("freeze");
    for words in ["child fork exit", "child fork _exit", "child clone exit", "child clone _exit"] {
        leaves_at_once(&mut app, words);
    }
    app.ask("thaw");
    app.load(1);
    assert!(tap.counters().get(Counter::ModuleLoads) >= 2);
    let written = app.did().records_written;
    app.end("exit");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!(snapshot.counts.attempted, written);
    assert_eq!((snapshot.counts.delivered, total_lost(&snapshot)), (written, 0), "{:?}", snapshot.counts);
}

/// The timer is in a flush that never returns: its exit, which would wait for the timer, is the parent's alone.
#[test]
fn a_child_made_while_the_timer_flushes_leaves_at_once() {
    let env = [("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "1"), ("FAKE_CUPTI_FAULTS", "flush_hang=1")];
    let mut app = App::start(&env);
    let tap = app.attached();
    wait_for("a flush", || format!("{:?}", tap.status()), || (app.did().flushes > 0).then_some(()));
    for words in ["child fork exit launch", "child clone exit launch", "child fork exit", "child clone exit"] {
        leaves_at_once(&mut app, words);
    }
    assert_eq!(tap.counters().get(Counter::ModuleLoads), 0, "the children's modules are not the parent's");
}

/// Many, at any moment of a timer that flushes all the time and of threads that load and launch.
#[test]
fn children_made_at_any_moment_change_nothing() {
    let mut app = App::start(&[("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "1")]);
    let tap = app.attached();
    let mut session = app.session(BASIC_KINDS);
    app.ask("busy 2");
    for round in 0..40 {
        // After a raw clone among threads that allocate, only `_exit` is safe: the C library's locks stay as they were.
        let words = ["child fork exit", "child fork _exit", "child clone _exit"][round % 3];
        assert_eq!(code(&app.ask(words)), 7, "{words}");
    }
    app.end("exit");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert!(snapshot.counts.delivered > 400, "{:?}", snapshot.counts);
    assert!(total_lost(&snapshot) == 0 || snapshot.counts.lost.iter().all(|lost| lost.reason == "overwritten"));
    assert_eq!(tap.counters().get(Counter::Nested), 0, "somebody else wrote into the lane");
}

const WAYS: [&str; 4] = ["fork", "clone", "vfork", "spawn"];

/// What a child that executes a program looks like from within.
fn portrait(app: &mut App, way: &str) -> String {
    let mut distant = Distant::new();
    app.ask(&format!("run {way} {}", distant.folder()));
    distant.meet();
    let portrait = distant.ask("portrait");
    distant.tell("exit");
    assert_eq!(reap(app, distant), "0");
    portrait
}

/// Descriptors, signals, mask, folder: as of an application without a tap.
#[test]
fn a_program_that_is_executed_finds_nothing_of_the_tap() {
    let untapped = |command: &mut std::process::Command| _ = command.env_remove("CUDA_INJECTION64_PATH");
    let mut bare = App::start_prepared("gputap_shim", &[], untapped);
    bare.ask("init");
    bare.load(1);
    assert!(find(bare.pid()).is_err());
    for backing in ["shm", "memfd"] {
        let mut app = App::start(&[("GPUTAP_BACKING", backing), ("GPUTAP_START", "blackbox")]);
        app.load(1);
        wait_for_state(&app.attached(), State::BlackBox);
        for way in WAYS {
            assert_eq!(portrait(&mut app, way), portrait(&mut bare, way), "{way}");
        }
        let (own, of_bare) = (app.ask("portrait"), bare.ask("portrait"));
        let not_ours: Vec<_> =
            own.split(' ').filter(|word| !word.contains("=gputap-") && !word.contains("=memfd:")).collect();
        assert_eq!(not_ours.join(" "), of_bare, "the application itself");
    }
}

/// It has a tap of its own, and the parent's goes on.
#[test]
fn a_program_that_is_executed_has_its_own_tap() {
    for way in WAYS {
        let mut app = App::start(&[("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "5")]);
        let mut session = app.session(BASIC_KINDS);
        app.load(1);
        let mut distant = Distant::new();
        app.ask(&format!("run {way} {}", distant.folder()));
        has_no_tap(distant.meet());
        distant.ask("init");
        assert_ne!(distant.found().segment, app.found().segment);
        let mut of_child = crate::reading::session(&distant.found(), BASIC_KINDS);
        distant.ask("load 2");
        distant.ask("launch 199");
        app.launch(99);
        distant.tell("exit");
        let snapshot = read_to_the_end(&mut of_child, &mut NoSink);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (200, 200), "{way}: {:?}", snapshot.counts);
        assert_eq!(reap(&mut app, distant), "0");
        app.end("exit");
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (100, 100), "{way}: {:?}", snapshot.counts);
    }
}

/// Whose reader never meets what a child did.
#[test]
fn a_parent_is_read_on_after_its_children_have_gone() {
    let mut app = App::start(&[("GPUTAP_START", "blackbox"), NO_FLUSH]);
    let found = app.found();
    let mut session = app.session(BASIC_KINDS);
    (1..=4).for_each(|seed| app.load(seed));
    assert_eq!(code(&app.ask("child fork exit launch")), 7);
    let mut delivered = 0;
    app.launch(96);
    command(&found, Command::Flush);
    step_until(&mut session, &mut NoSink, "events", |_, progress| {
        delivered += progress.delivered;
        delivered >= 100
    });
    assert_eq!(delivered, 100);
}
