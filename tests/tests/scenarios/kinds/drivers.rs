//! A libcupti that is of a newer CUDA than the driver.

use gputap_ringbuf::event::EventKind;
use gputap_ringbuf::header::status::{Reason, State};

use super::run::{Run, Wish};
use super::wishes::RECORDS;
use crate::reading::wait_for_status;

const OLD: (&str, &str) = ("FAKE_CUDA_DRIVER_VERSION", "12040");

fn note(run: &Run) -> Option<String> {
    wait_for_status(&run.tap, "the driver's version", |status| status.driver_version != 0);
    run.tap.status().notes.into_iter().find(|note| note.contains("the driver knows"))
}

#[test]
fn is_said_in_a_note_and_works_as_long_as_it_works() {
    let mut run = Run::start(&[OLD]);
    let note = note(&run).expect("a note");
    assert!(note.contains("of CUDA 13.0") && note.contains("knows CUDA 12.4"), "{note}");
    let status = run.tap.status();
    assert_eq!((status.driver_version, status.reason), (12_040, Reason::None));
    let _wish = run.wish(RECORDS);
    run.actor.act("all");
    run.catch_up();
    run.compare(RECORDS);
    run.assert_books();
}

#[test]
fn is_the_reason_where_a_call_fails() {
    let run = Run::start(&[OLD, ("FAKE_CUPTI_FAULTS", "enable.CONCURRENT_KERNEL=35")]);
    note(&run).expect("a note");
    let _wish = Wish::hold(&run.found, EventKind::Kernel.bit());
    let status = wait_for_status(&run.tap, "the reason", |status| status.reason == Reason::CuptiTooNew);
    assert!(status.detail.contains("cuptiActivityEnable gave error 35"), "{}", status.detail);
    assert_eq!((status.state, status.kinds), (Some(State::Idle), 0));
}

#[test]
fn is_the_reason_where_the_tap_cannot_subscribe() {
    let run = Run::start(&[OLD, ("FAKE_CUPTI_FAULTS", "subscribe=35")]);
    let status = wait_for_status(&run.tap, "the reason", |status| status.reason == Reason::CuptiTooNew);
    assert_eq!(status.state, Some(State::Off));
    assert!(status.detail.contains("cuptiSubscribe gave error 35"), "{}", status.detail);
}

#[test]
fn within_a_major_version_nothing_is_said() {
    for (driver, cupti) in [("13000", "130500"), ("13000", "28"), ("12040", "28"), ("12000", "11.8")] {
        let run = Run::start(&[("FAKE_CUDA_DRIVER_VERSION", driver), ("FAKE_CUPTI_VERSION", cupti)]);
        assert_eq!(note(&run), None, "{driver} {cupti}");
        assert_eq!(run.tap.status().driver_version.to_string(), driver);
    }
}
