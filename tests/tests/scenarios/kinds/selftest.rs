//! Launches that leave no record are said to; as soon as one record has come, launches are left alone.

use gputap_ringbuf::event::{BASIC_KINDS, EventKind};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::{Reason, State};

use super::run::Run;
use crate::reading::{wait_for, wait_for_status};

#[test]
fn a_silent_cupti_is_said_to_be_with_the_number_of_launches() {
    let env = [("FAKE_CUPTI_SILENT", "1"), ("GPUTAP_SELFTEST_MS", "200"), ("GPUTAP_FLUSH_MS", "5")];
    let mut run = Run::start(&env);
    let _wish = run.wish(EventKind::Kernel.bit());
    run.actor.act("load 1");
    run.actor.act("launch 6");
    run.actor.act("graph 1");
    let status = wait_for_status(&run.tap, "the finding", |status| status.reason == Reason::NoRecords);
    assert!(status.detail.starts_with("8 launches in "), "{}", status.detail);
    assert_eq!((status.state, run.count(Counter::LaunchesSeen)), (Some(State::Recording), 8));
    run.actor.act("launch 2");
    wait_for_status(&run.tap, "two more", |status| status.detail.starts_with("10 launches in "));
}

#[test]
fn a_silent_cupti_is_not_said_to_be_while_nothing_is_launched() {
    let env = [("FAKE_CUPTI_SILENT", "1"), ("GPUTAP_SELFTEST_MS", "50"), ("GPUTAP_FLUSH_MS", "5")];
    let run = Run::start(&env);
    let _wish = run.wish(EventKind::Kernel.bit());
    let begun_ns = run.tap.status().heartbeat_ns;
    let later = wait_for_status(&run.tap, "turns", |status| status.heartbeat_ns > begun_ns + 300_000_000);
    assert_eq!(later.reason, Reason::None);
}

#[test]
fn after_the_first_record_launches_call_nobody() {
    let mut run = Run::start(&[("GPUTAP_SELFTEST_MS", "100"), ("GPUTAP_FLUSH_MS", "5")]);
    let _wish = run.wish(BASIC_KINDS);
    run.actor.act("load 1");
    let delivered = || run.tap.counters().attempted;
    wait_for("a record", || delivered().to_string(), || (delivered() > 0).then_some(()));
    run.turn();
    let (callbacks, seen) = (run.actor.counters().callbacks, run.count(Counter::LaunchesSeen));
    assert!(callbacks > 1 && seen == 1, "a module and a launch: {callbacks}, {seen}");
    let begun_ns = run.tap.status().heartbeat_ns;
    run.actor.act("launch 500");
    let later = wait_for_status(&run.tap, "turns", |status| status.heartbeat_ns > begun_ns + 300_000_000);
    assert_eq!(later.reason, Reason::None);
    assert_eq!((run.actor.counters().callbacks, run.count(Counter::LaunchesSeen)), (callbacks, seen));
    assert_eq!(run.tap.counters().attempted, 501);
}

/// Records that no flush has asked for yet are not missing.
#[test]
fn records_that_wait_for_a_flush_are_not_missed() {
    let mut run = Run::start(&[("GPUTAP_SELFTEST_MS", "50"), ("GPUTAP_FLUSH_MS", "60000")]);
    let _wish = run.wish(EventKind::Kernel.bit());
    run.actor.act("load 1");
    let begun_ns = run.tap.status().heartbeat_ns;
    let later = wait_for_status(&run.tap, "turns", |status| status.heartbeat_ns > begun_ns + 300_000_000);
    assert_eq!((later.reason, later.detail.as_str()), (Reason::None, ""));
    run.catch_up();
    assert_eq!(run.got.told.len(), 1);
}
