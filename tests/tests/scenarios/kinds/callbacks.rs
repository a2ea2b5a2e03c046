//! With every kind on and launches told, a callback still allocates nothing, asks nothing of the kernel, and waits for
//! nobody. (`faults::a_flush_that_never_returns` shows it, too: the one thread that calls CUPTI never comes back, and
//! callbacks go on.)

use gputap_ringbuf::event::ALL_KINDS;
use gputap_ringbuf::header::counters::Counter;
use gputap_tests::artifact;

use super::actor::{Actor, Front};
use super::run::Run;
use crate::reading::wait_for;

const ENVIRONMENT: [(&str, &str); 5] = [
    ("GPUTAP_START", "blackbox"),
    ("GPUTAP_KINDS", "all"),
    ("GPUTAP_LAUNCHES", "1"),
    ("GPUTAP_FLUSH_MS", "1"),
    ("FAKE_CUPTI_NULL_NAME_EVERY", "50"),
];

/// An application whose callbacks `watcher` looks into, that does everything and a good deal of it.
fn watched(shim: &str, watcher: &str) -> Actor {
    let preload = artifact(watcher).expect("built");
    let env = [&ENVIRONMENT[..], &[("LD_PRELOAD", preload.to_str().expect("UTF-8"))]].concat();
    let mut actor = Actor::start_without_driver(shim, Front::Fake, &env);
    actor.act("init");
    (0..24).for_each(|seed| actor.act(&format!("load {seed}")));
    for _ in 0..3 {
        actor.act("all");
        actor.act("launch 2000");
    }
    // The same bytes again.
    (0..8).for_each(|seed| actor.act(&format!("load {seed}")));
    actor
}

/// The same under gputap; also waits until records of all of it have come.
fn watched_under_gputap(watcher: &str) -> Actor {
    let mut run = Run::of(watched("gputap_shim", watcher));
    assert_eq!(run.tap.status().kinds, ALL_KINDS);
    let all = || run.tap.counters().attempted;
    let launches = run.actor.tally()["kernel"];
    wait_for("records", || all().to_string(), || (all() > 3 * launches).then_some(()));
    assert_eq!((run.count(Counter::Panics), run.count(Counter::Nested)), (0, 0));
    run.actor
}

#[test]
fn gputap_allocates_nothing_in_any_of_them() {
    let mut actor = watched_under_gputap("malloc_watch");
    let callbacks = actor.watched("callback_watch_callbacks");
    assert_eq!(actor.watched("callback_watch_calls"), 0, "in {callbacks} callbacks");
    // Two at each launch.
    assert!(callbacks > 2 * 6_000, "{callbacks}");
}

#[test]
fn gputap_makes_no_system_call_in_any_of_them() {
    let mut actor = watched_under_gputap("syscall_watch");
    let callbacks = actor.watched("callback_watch_callbacks");
    let (calls, last) = (actor.watched("callback_watch_calls"), actor.watched("callback_watch_last"));
    assert_eq!(calls, 0, "in {callbacks} callbacks; the last was number {last}");
    assert_eq!(actor.watched("callback_watch_unwatched"), 0, "threads that the kernel cannot watch");
    assert!(callbacks > 2 * 6_000, "{callbacks}");
}

/// The control: large vectors come from the kernel.
#[test]
fn a_callback_that_makes_a_system_call_is_seen() {
    let mut actor = watched("locking_shim", "syscall_watch");
    assert!(actor.watched("callback_watch_calls") > 0);
    assert_eq!(actor.watched("callback_watch_unwatched"), 0);
}

/// Modules are loaded, contexts come and go, and everything is launched while the tap flushes all the time.
#[test]
fn nothing_hangs_while_the_tap_flushes_all_the_time() {
    let mut run = Run::of(Actor::start(Front::Fake, &ENVIRONMENT));
    for seed in 0.. {
        run.actor.act(&format!("load {}", seed % 20));
        run.actor.act("all");
        if seed >= 20 && run.count(Counter::Flushes) > 20 {
            break;
        }
    }
    run.end();
}
