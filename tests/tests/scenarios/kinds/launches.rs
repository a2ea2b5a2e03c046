//! Launch events: what was called, under the name and the id that the kernel's record will have.

use std::collections::BTreeMap;

use gputap_ringbuf::event::{Event, EventKind, LaunchEvent};
use gputap_ringbuf::header::counters::Counter;

use super::run::Run;
use super::told::Told;

const WISH: u64 = EventKind::Kernel.bit() | EventKind::Launch.bit();

/// Launches and their kernels' names, by correlation id.
fn launches(run: &Run) -> BTreeMap<u64, (LaunchEvent, Option<String>)> {
    let launch = |told: &Told| match told.event {
        Event::Launch(launch) => Some((launch.correlation_id, (launch, told.name.clone()))),
        _ => None,
    };
    let launches: BTreeMap<_, _> = run.got.told.iter().filter_map(launch).collect();
    assert_eq!(launches.len() as u64, run.got.count(EventKind::Launch), "no id twice");
    launches
}

#[test]
fn every_kernel_has_its_launch_with_its_name_and_id() {
    let mut run = Run::start(&[("GPUTAP_LAUNCHES", "1")]);
    assert_eq!(run.tap.status().unavailable & EventKind::Launch.bit(), 0);
    let _wish = run.wish(WISH);
    run.actor.act("load 3");
    run.actor.act("load 4");
    run.actor.act("variants");
    for _ in 0..3 {
        // Lanes are made ready by the timer, two ahead.
        run.turn();
        run.actor.act("threads 1");
    }
    run.actor.act("graph 2");
    run.catch_up();
    run.compare(EventKind::Kernel.bit());
    let tally = run.actor.tally();
    let launches = launches(&run);
    assert_eq!(launches.len() as u64, tally["kernel"] + tally["graph"], "one for each kernel, and one for each graph");
    for told in run.got.of(EventKind::Kernel) {
        let Event::Kernel(kernel) = told.event else { unreachable!() };
        let (launch, name) = launches.get(&kernel.correlation_id).unwrap_or_else(|| panic!("no launch of {kernel:?}"));
        assert_eq!(launch.context_id, kernel.context_id);
        assert!(launch.time_ns <= kernel.end_ns, "{launch:?} {kernel:?}");
        match kernel.graph_id {
            0 => assert_eq!(*name, told.name),
            _ => assert_eq!((launch.callback_id, name), (514, &None)),
        }
    }
    run.assert_books();
}

#[test]
fn each_is_told_with_its_function_and_its_thread() {
    let mut run = Run::start(&[("GPUTAP_LAUNCHES", "1")]);
    run.actor.act("load 1");
    let _wish = run.wish(EventKind::Launch.bit());
    run.actor.act("variants");
    run.actor.act("graph 1");
    run.read_all();
    let thread: u32 = run.actor.ask("thread").parse().expect("a number");
    let told: Vec<_> = launches(&run).values().map(|(launch, _)| (launch.callback_id, launch.thread_id)).collect();
    assert_eq!(told, [307, 477, 652, 307, 514].map(|function| (function, thread)));
    assert_eq!(run.got.told.len(), 5, "and nothing else");
}

#[test]
fn launches_that_nobody_wishes_for_are_not_told() {
    let mut run = Run::start(&[("GPUTAP_LAUNCHES", "1")]);
    let _wish = run.wish(EventKind::Kernel.bit());
    run.actor.act("load 1");
    run.actor.act("launch 9");
    run.catch_up();
    assert_eq!((run.got.count(EventKind::Kernel), run.got.count(EventKind::Launch)), (10, 0));
    run.compare(EventKind::Kernel.bit());
}

/// More threads begin at once than lanes are ready for: what finds none is lost, by that name.
#[test]
fn launches_of_more_new_threads_than_lanes_are_ready_are_counted() {
    let mut run = Run::start(&[("GPUTAP_LAUNCHES", "1")]);
    run.actor.act("load 1");
    let _wish = run.wish(WISH);
    run.actor.tally();
    run.actor.act("threads 12");
    run.catch_up();
    let kernels = run.actor.tally()["kernel"];
    assert_eq!(run.got.count(EventKind::Kernel), kernels);
    assert_eq!(run.got.count(EventKind::Launch) + run.count(Counter::NoLane), kernels);
    run.compare(EventKind::Kernel.bit());
}
