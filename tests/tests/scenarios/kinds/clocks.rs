//! Times are those of CLOCK_MONOTONIC, whatever CUPTI's clock is and whatever becomes of it; what CUPTI has no time for
//! is delivered as it is, and counted.

use gputap_ringbuf::control::{Answer, Command};
use gputap_ringbuf::event::{Event, EventKind};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::ClockSource;
use gputap_ringbuf::process::{monotonic_ns, realtime_ns};
use gputap_tests::artifact;

use super::run::Run;
use super::told::Told;
use super::wishes::RECORDS;
use crate::reading::wait_for_status;

/// How well two clocks are compared on a busy machine.
const SLACK_NS: u64 = 1_000_000;
const HOUR_MS: i64 = 3_600_000;

/// All that was done between two instants has its times between them.
fn assert_between(told: &[Told], from_ns: u64, to_ns: u64) {
    for told in told {
        let is_inside = |time: &u64| (from_ns - SLACK_NS..=to_ns + SLACK_NS).contains(time);
        assert!(told.times().iter().all(is_inside), "{told:?} is not in {from_ns}..{to_ns}");
    }
}

fn times_are_monotonic(clock: &str, source: ClockSource, env: &[(&str, &str)]) {
    let env = [&[("GPUTAP_CLOCK", clock), ("GPUTAP_LAUNCHES", "1")], env].concat();
    let mut run = Run::start(&env);
    let from_ns = monotonic_ns();
    let _wish = run.wish(RECORDS | EventKind::Launch.bit());
    run.actor.act("all");
    // The first flush becomes a record.
    run.flush();
    run.catch_up();
    assert_between(&run.got.told, from_ns, monotonic_ns());
    let ahead_ns = run.compare(RECORDS);
    let expected_ns = match source {
        ClockSource::Realtime => realtime_ns() - monotonic_ns(),
        ClockSource::Monotonic => 0,
    };
    assert!(ahead_ns.abs_diff(expected_ns) <= SLACK_NS, "{ahead_ns} is not {expected_ns}");
    assert_eq!(run.tap.status().clock_source, source);
    assert_eq!((run.count(Counter::ClockSteps), run.count(Counter::ClockDoubtful)), (0, 0));
}

#[test]
fn from_the_wall_clock() {
    times_are_monotonic("wall", ClockSource::Realtime, &[]);
}

#[test]
fn from_the_clock_that_cupti_was_given() {
    times_are_monotonic("monotonic", ClockSource::Monotonic, &[]);
}

/// CUPTI's own clock is set, and ours is what it reads.
#[test]
fn from_the_clock_that_cupti_was_given_while_its_own_is_set() {
    times_are_monotonic("monotonic", ClockSource::Monotonic, &[("FAKE_CUPTI_CLOCK_STEP_MS", "-3600000@20")]);
}

#[test]
fn from_the_wall_clock_where_cupti_takes_no_other() {
    times_are_monotonic("monotonic", ClockSource::Realtime, &[("FAKE_CUPTI_FAULTS", "timestamp_callback=1")]);
}

#[test]
fn from_the_wall_clock_where_cupti_takes_another_and_does_not_say_that_it_reads_it() {
    times_are_monotonic("monotonic", ClockSource::Realtime, &[("FAKE_CUPTI_FAULTS", "timestamp=1")]);
}

/// An application whose wall clock can be set.
fn with_a_clock() -> Run {
    let preload = artifact("wall_clock").expect("built");
    let mut run = Run::start(&[("LD_PRELOAD", preload.to_str().expect("UTF-8"))]);
    run.actor.act("load 1");
    run
}

#[test]
fn set_forward_the_wall_clock_moves_no_event() {
    let mut run = with_a_clock();
    let _wish = run.wish(EventKind::Kernel.bit());
    let from_ns = monotonic_ns();
    run.actor.act("launch 20");
    let before_ns = monotonic_ns();
    // Recorded under the old time, delivered under the new one.
    run.actor.act(&format!("set-clock {HOUR_MS}"));
    run.turn();
    let after_ns = monotonic_ns();
    run.actor.act("launch 10");
    run.catch_up();
    let to_ns = monotonic_ns();
    assert_eq!((run.got.told.len(), run.count(Counter::ClockSteps)), (30, 1));
    assert_between(&run.got.told[..20], from_ns, before_ns);
    assert_between(&run.got.told[20..], after_ns, to_ns);
    // All were so near to the step that CUPTI may not have followed it yet, unless this machine was very slow.
    let doubtful = run.count(Counter::ClockDoubtful);
    assert!(doubtful <= 30 && (doubtful == 30 || to_ns - from_ns > 900_000_000), "{doubtful}");

    wait_for_status(&run.tap, "a second", |status| status.heartbeat_ns > after_ns + 1_100_000_000);
    let from_ns = monotonic_ns();
    run.actor.act("launch 5");
    run.catch_up();
    assert_between(&run.got.told[30..], from_ns, monotonic_ns());
    assert_eq!((run.got.told.len(), run.count(Counter::ClockDoubtful)), (35, doubtful), "beyond doubt");
}

#[test]
fn set_back_the_wall_clock_moves_no_event() {
    let mut run = with_a_clock();
    let _wish = run.wish(EventKind::Kernel.bit());
    for (number, step_ms) in (1..).zip([-HOUR_MS, -200, 3 * HOUR_MS, -HOUR_MS]) {
        run.actor.act(&format!("set-clock {step_ms}"));
        run.turn();
        // The fake GPU's old streams are free only at times that have yet to come again.
        run.actor.act("stream");
        let (from_ns, had) = (monotonic_ns(), run.got.told.len());
        run.actor.act("launch 10");
        run.catch_up();
        assert_between(&run.got.told[had..], from_ns, monotonic_ns());
        assert_eq!((run.got.told.len(), run.count(Counter::ClockSteps)), (had + 10, number));
    }
}

/// The counters of flaws, as CUPTI's records have them.
fn flaws(shown: &[Told]) -> [u64; 3] {
    let mut flaws = [0; 3];
    for told in shown {
        let times = told.times();
        match times[..] {
            [_, 0] => flaws[0] += 1,
            [0, _] | [0] => flaws[1] += 1,
            [start, end] if end < start => flaws[2] += 1,
            _ => {}
        }
    }
    flaws
}

fn counted(run: &Run) -> [u64; 3] {
    [Counter::Unfinished, Counter::ZeroTimes, Counter::NegativeTimes].map(|counter| run.count(counter))
}

fn flawed(env: &[(&str, &str)], clock: &str) -> [u64; 3] {
    let mut run = Run::start(&[env, &[("GPUTAP_CLOCK", clock)]].concat());
    let _wish = run.wish(RECORDS);
    run.actor.act("all");
    run.catch_up();
    run.actor.act("shown");
    let expected = flaws(&run.actor.shown);
    assert_eq!(counted(&run), expected);
    // As they are: not mended.
    run.compare(RECORDS);
    run.assert_books();
    expected
}

#[test]
fn times_that_are_missing_are_counted_and_stay_missing() {
    let [unfinished, zero, negative] = flawed(&[("FAKE_CUPTI_ZERO_TIMES_EVERY", "2")], "wall");
    assert!(unfinished > 10 && zero > 1 && negative == 0);
}

#[test]
fn times_that_are_reversed_are_counted_and_stay_reversed() {
    let [unfinished, zero, negative] = flawed(&[("FAKE_CUPTI_REVERSE_TIMES_EVERY", "3")], "wall");
    assert!(unfinished == 0 && zero == 0 && negative > 10);
    flawed(&[("FAKE_CUPTI_REVERSE_TIMES_EVERY", "3"), ("FAKE_CUPTI_ZERO_TIMES_EVERY", "4")], "monotonic");
}

#[test]
fn kernels_that_still_run_when_cupti_is_given_back_are_unfinished() {
    let mut run = Run::start(&[]);
    let _wish = run.wish(EventKind::Kernel.bit());
    run.actor.act("load 1");
    run.actor.act("long 3");
    assert_eq!(run.command(Command::Yield), Answer::Done);
    run.read_all();
    run.compare(EventKind::Kernel.bit());
    let ended = run.got.told.iter().filter(|told| matches!(told.event, Event::Kernel(kernel) if kernel.end_ns != 0));
    assert_eq!((ended.count(), run.got.told.len()), (1, 4));
    assert_eq!((run.count(Counter::Unfinished), run.actor.counters().records_unfinished), (3, 3));
    run.assert_books();
}
