//! CUPTI has one subscription: who holds it is named, is left alone, and gives way to us or we to it.

use gputap_ringbuf::control::{Answer, Command};
use gputap_ringbuf::event::EventKind;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::{Reason, State, Status};

use super::actor::{Actor, Front};
use super::run::Run;
use super::wishes::RECORDS;
use crate::reading::{wait_for_state, wait_for_status};

const HOLDER: (&str, &str) = ("CUPTI_WITNESS_HOLDER", "CUPTI for Nsight Systems");

/// Another tool has subscribed before the tap starts, and the tap is off.
fn taken(env: &[(&str, &str)]) -> (Run, Status) {
    let mut actor = Actor::start_without_driver("gputap_shim", Front::Witness, env);
    actor.act("subscribe");
    actor.act("init");
    let run = Run::of(actor);
    let status = wait_for_state(&run.tap, State::Off);
    assert_eq!(status.reason, Reason::OtherSubscriber, "{}", status.detail);
    assert!(status.detail.contains("cuptiSubscribe gave error 39"), "{}", status.detail);
    (run, status)
}

#[test]
fn another_subscriber_is_named_and_followed_when_it_has_gone() {
    let (mut run, status) = taken(&[HOLDER]);
    assert!(status.detail.ends_with(": CUPTI for Nsight Systems is subscribed"), "{}", status.detail);
    run.actor.act("load 1");
    assert_eq!((run.command(Command::Flush), run.count(Counter::ModuleLoads)), (Answer::Refused, 0));
    assert_eq!(run.actor.ask("release"), "0");
    let status = wait_for_state(&run.tap, State::Idle);
    assert_eq!((status.reason, status.detail.as_str()), (Reason::None, ""));
    assert_eq!(run.count(Counter::YieldGaps), 1);
    records_everything(&mut run);
}

/// Before 13.0 CUPTI tells no names.
#[test]
fn another_subscriber_without_a_name() {
    for version in ["11.8", "28"] {
        let (_, status) = taken(&[HOLDER, ("FAKE_CUPTI_VERSION", version)]);
        assert!(!status.detail.contains("Nsight"), "{}", status.detail);
    }
    let (_, status) = taken(&[]);
    assert!(!status.detail.contains("is subscribed"), "{}", status.detail);
}

fn records_everything(run: &mut Run) {
    let wish = run.wish(RECORDS);
    let had = run.got.told.len();
    run.actor.act("all");
    run.catch_up();
    assert!(run.got.told.len() > had + 100);
    run.compare(RECORDS);
    run.assert_books();
    drop(wish);
}

#[test]
fn yielding_and_resuming_lose_nothing_that_was_recorded() {
    let mut run = Run::start(&[HOLDER]);
    let wish = run.wish(RECORDS);
    run.actor.act("all");
    assert_eq!(run.command(Command::Yield), Answer::Done);
    run.read_all();
    run.compare(RECORDS);
    run.assert_books();
    let recorded = run.got.told.len();

    run.actor.act("subscribe");
    run.actor.act("all");
    assert_eq!(run.command(Command::Resume), Answer::Failed);
    let status = run.tap.status();
    assert_eq!((status.state, status.reason), (Some(State::Yielded), Reason::StillTaken));
    assert!(status.detail.ends_with("CUPTI for Nsight Systems is subscribed"), "{}", status.detail);
    assert_eq!(run.actor.ask("release"), "0");
    run.read_all();
    assert_eq!(run.got.told.len(), recorded, "what the other tool was there for is not ours");

    assert_eq!(run.command(Command::Resume), Answer::Done);
    run.settle(RECORDS);
    run.actor.act("all");
    run.catch_up();
    assert!(run.got.told.len() > recorded + 100);
    run.compare(RECORDS);
    run.assert_books();
    assert_eq!((run.count(Counter::YieldGaps), run.tap.status().reason), (1, Reason::None));
    drop(wish);
}

/// Launches are told again after a resume; the subscription is a new one.
#[test]
fn launches_are_told_after_a_resume_too() {
    let mut run = Run::start(&[("GPUTAP_LAUNCHES", "1")]);
    run.actor.act("load 1");
    assert_eq!(run.command(Command::Yield), Answer::Done);
    run.actor.act("launch 3");
    assert_eq!(run.command(Command::Resume), Answer::Done);
    let _wish = run.wish(EventKind::Launch.bit());
    run.actor.act("launch 4");
    run.read_all();
    assert_eq!(run.got.count(EventKind::Launch), 4);
}

/// The other tool comes and goes again and again while the tap asks.
#[test]
fn a_tap_that_yields_often_is_there_each_time() {
    let mut run = Run::start(&[]);
    run.actor.act("load 1");
    for round in 1..=5 {
        let wish = run.wish(EventKind::Kernel.bit());
        run.actor.act("launch 10");
        assert_eq!(run.command(Command::Yield), Answer::Done);
        run.actor.act("subscribe");
        run.actor.act("launch 10");
        assert_eq!(run.actor.ask("release"), "0");
        drop(wish);
        assert_eq!(run.command(Command::Resume), Answer::Done);
        wait_for_status(&run.tap, "idle", |status| status.state == Some(State::Idle) && status.kinds == 0);
        run.read_all();
        assert_eq!(run.got.told.len(), 10 * round);
    }
    run.assert_books();
}
