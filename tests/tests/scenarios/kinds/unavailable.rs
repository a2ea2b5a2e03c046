//! What cannot be had in a process is said, with what to do about it, and costs nothing else.

use gputap_ringbuf::event::{ALL_KINDS, EventKind};
use gputap_ringbuf::header::status::{Reason, State};

use super::run::{Run, Wish};

/// The line of the notes that speaks of a kind.
fn note(run: &Run, kind: EventKind) -> Option<String> {
    let begin = format!("{} events", kind.name());
    run.tap.status().notes.into_iter().find(|note| note.starts_with(&begin))
}

/// A wish for everything gets all but that.
fn everything_but(missing: u64, env: &[(&str, &str)]) -> Run {
    let mut run = Run::start(env);
    let wish = Wish::hold(&run.found, ALL_KINDS);
    run.settle(ALL_KINDS & !missing);
    run.actor.act("all");
    run.catch_up();
    run.compare(ALL_KINDS);
    let status = run.tap.status();
    assert_eq!((status.state, status.reason, status.unavailable), (Some(State::Recording), Reason::None, missing));
    for kind in EventKind::ALL {
        let expected = missing & kind.bit() == 0;
        assert_eq!(note(&run, *kind).is_none(), expected, "{:?}", status.notes);
        if !expected {
            assert_eq!(run.got.count(*kind), 0);
        }
    }
    drop(wish);
    run
}

#[test]
fn launches_without_their_setting() {
    let run = everything_but(EventKind::Launch.bit(), &[]);
    assert!(note(&run, EventKind::Launch).is_some_and(|note| note.contains("GPUTAP_LAUNCHES=1")));
}

#[test]
fn ranges_without_their_variable() {
    let run = everything_but(EventKind::Marker.bit(), &[("NVTX_INJECTION64_PATH", ""), ("GPUTAP_LAUNCHES", "1")]);
    assert!(note(&run, EventKind::Marker).is_some_and(|note| note.contains("NVTX_INJECTION64_PATH")));
}

#[test]
fn nothing_is_missing_where_all_is_set() {
    everything_but(0, &[("GPUTAP_LAUNCHES", "1")]);
}

/// The first that is enabled is for module loads.
#[test]
fn launches_that_cupti_does_not_tell_of() {
    let env = [("GPUTAP_LAUNCHES", "1"), ("FAKE_CUPTI_FAULTS", "enable_callback=999@2")];
    let run = Run::start(&env);
    let _wish = Wish::hold(&run.found, ALL_KINDS);
    run.settle(ALL_KINDS & !EventKind::Launch.bit());
    assert_eq!(run.tap.status().unavailable, EventKind::Launch.bit());
    assert!(note(&run, EventKind::Launch).is_some_and(|note| note.contains("error 999")));
}
