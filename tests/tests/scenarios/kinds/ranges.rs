//! NVTX: the application's library is handed to CUPTI by the tap, whose path NVTX_INJECTION64_PATH is.

use gputap_ringbuf::event::{Event, EventKind};

use super::run::Run;

const MARK: u32 = 1;
const START: u32 = 2;
const END: u32 = 4;

#[test]
fn names_domains_and_ids_are_those_of_the_application() {
    let mut run = Run::start(&[]);
    let _wish = run.wish(EventKind::Marker.bit());
    run.actor.act("marks");
    run.catch_up();
    run.compare(EventKind::Marker.bit());
    let told: Vec<_> = run
        .got
        .told
        .iter()
        .map(|told| match told.event {
            Event::Marker(marker) => (marker.flags, marker.marker_id, told.name.as_deref(), told.domain.as_deref()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        (START, 1, Some("step"), None),
        (START, 2, Some("forward"), None),
        (MARK, 3, Some("here"), None),
        (END, 2, None, None),
        (START, 4, Some("copying"), None),
        (END, 1, None, None),
        (END, 4, None, None),
        (START, 5, Some("all-reduce"), Some("NCCL")),
        (END, 5, None, Some("NCCL")),
    ];
    assert_eq!(told, expected);
}

/// As many different texts as there are iterations: all are told, though the tap remembers only the newest.
#[test]
fn texts_may_be_without_end() {
    let mut run = Run::start(&[]);
    run.actor.act("marks");
    let _wish = run.wish(EventKind::Marker.bit());
    for n in 0..1_500 {
        run.actor.act(&format!("mark iteration {}", n % 1_400));
    }
    run.catch_up();
    run.compare(EventKind::Marker.bit());
    assert_eq!(run.got.told.len(), 1_500);
    assert!(run.got.told.iter().enumerate().all(|(n, told)| told.name == Some(format!("iteration {}", n % 1_400))));
}
