//! Graphs: every kernel of them, or in the cheap mode the graph as a whole; CUPTI gives one or the other.

use std::collections::BTreeSet;

use gputap_ringbuf::event::{Event, EventKind, KernelEvent};

use super::run::{Run, Wish};
use super::told::Told;

const KERNELS: u64 = EventKind::Kernel.bit();
const GRAPHS: u64 = EventKind::Graph.bit();

fn with_two_modules() -> Run {
    let mut run = Run::start(&[]);
    run.actor.act("load 1");
    run.actor.act("load 2");
    run.actor.tally();
    run
}

fn kernels(run: &Run) -> Vec<KernelEvent> {
    let kernel = |told: &Told| match told.event {
        Event::Kernel(kernel) => Some(kernel),
        _ => None,
    };
    run.got.told.iter().filter_map(kernel).collect()
}

#[test]
fn each_node_is_a_kernel_with_its_graph() {
    let mut run = with_two_modules();
    let _wish = run.wish(KERNELS);
    run.actor.act("graph 3");
    run.catch_up();
    run.compare(KERNELS);
    let kernels = kernels(&run);
    assert_eq!((kernels.len(), run.got.told.len()), (6, 6));
    let graphs: BTreeSet<_> = kernels.iter().map(|kernel| kernel.graph_id).collect();
    let nodes: BTreeSet<_> = kernels.iter().map(|kernel| kernel.graph_node_id).collect();
    let launches: BTreeSet<_> = kernels.iter().map(|kernel| kernel.correlation_id).collect();
    assert_eq!((graphs.len(), nodes.len(), launches.len()), (1, 2, 3));
    assert!(!graphs.contains(&0) && !nodes.contains(&0));
}

#[test]
fn in_the_cheap_mode_a_graph_is_one_event_and_none_of_its_kernels() {
    let mut run = with_two_modules();
    let _wish = run.wish(KERNELS | GRAPHS);
    run.actor.act("graph 3");
    run.actor.act("launch 4");
    run.catch_up();
    run.compare(KERNELS | GRAPHS);
    assert_eq!(run.got.count(EventKind::Graph), 3);
    let kernels = kernels(&run);
    assert!(kernels.len() == 4 && kernels.iter().all(|kernel| kernel.graph_id == 0), "those outside");
    run.assert_books();
}

/// One reader wants graphs as a whole, another every kernel: it is told that it does not get them.
#[test]
fn a_second_reader_that_wants_every_kernel_is_told_that_graphs_hide_theirs() {
    let mut run = with_two_modules();
    let cheap = run.wish(KERNELS | GRAPHS);
    let every = Wish::hold(&run.found, KERNELS);
    run.turn();
    assert_eq!(run.tap.status().kinds, KERNELS | GRAPHS);
    run.actor.act("graph 2");
    run.catch_up();
    assert_eq!((run.got.count(EventKind::Graph), kernels(&run).len()), (2, 0));
    // Switched off, graphs do not bring their kernels back: they stay on, and the status goes on to say so.
    drop(cheap);
    run.turn();
    assert_eq!(run.tap.status().kinds, KERNELS | GRAPHS);
    run.actor.act("graph 2");
    run.actor.act("launch 3");
    run.catch_up();
    assert_eq!((run.got.count(EventKind::Graph), kernels(&run).len()), (4, 3));
    run.compare(KERNELS | GRAPHS);
    drop(every);
    run.settle(0);
    run.assert_books();
}

#[test]
fn one_that_wants_every_kernel_keeps_them_when_another_wants_graphs() {
    let mut run = with_two_modules();
    let every = run.wish(KERNELS);
    let _cheap = Wish::hold(&run.found, KERNELS | GRAPHS);
    run.turn();
    assert_eq!(run.tap.status().kinds, KERNELS);
    run.actor.act("graph 1");
    run.catch_up();
    drop(every);
    run.settle(KERNELS | GRAPHS);
    run.actor.act("graph 1");
    run.catch_up();
    run.compare(KERNELS | GRAPHS);
    let kinds: Vec<_> = run.got.told.iter().map(|told| told.event.kind()).collect();
    assert_eq!(kinds, [EventKind::Kernel, EventKind::Kernel, EventKind::Graph]);
}
