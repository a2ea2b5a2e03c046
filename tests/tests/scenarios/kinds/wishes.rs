//! A reader gets the kinds that it asks for: all of them, with every field as CUPTI had it, and no others.

use std::collections::{BTreeMap, BTreeSet};

use gputap_ringbuf::event::{ALL_KINDS, Event, EventKind};
use gputap_ringbuf::header::counters::Counter;

use super::run::{Run, Wish};
use super::told::Told;

/// What CUPTI has records of.
pub const RECORDS: u64 = ALL_KINDS & !EventKind::Launch.bit();

/// Wishes for one kind, has the application do something of everything, and gives what came, by the application's own
/// count and by the reader's. Not for overhead, of which each flush leaves a record behind.
fn alone(kind: EventKind) -> (Run, BTreeMap<String, u64>) {
    let mut run = Run::start(&[]);
    let _wish = run.wish(kind.bit());
    run.actor.act("all");
    run.catch_up();
    run.compare(kind.bit());
    assert!(run.got.told.iter().all(|told| told.event.kind() == kind), "nothing else was asked for");
    let fake = run.assert_books();
    assert_eq!(run.count(Counter::Unwanted), 0);
    assert_eq!((fake.records_delivered, run.got.told.len() as u64), (fake.records_written, fake.records_written));
    let tally = run.actor.tally();
    (run, tally)
}

#[test]
fn kernels() {
    let (run, tally) = alone(EventKind::Kernel);
    assert_eq!(run.got.count(EventKind::Kernel), tally["kernel"] + tally["node"]);
    let of_graphs = |told: &&Told| matches!(told.event, Event::Kernel(kernel) if kernel.graph_id != 0);
    assert_eq!(run.got.told.iter().filter(of_graphs).count() as u64, tally["node"]);
}

#[test]
fn copies_also_between_devices() {
    let (run, tally) = alone(EventKind::Memcpy);
    assert_eq!(run.got.count(EventKind::Memcpy), tally["memcpy"]);
    let devices: Vec<_> = run
        .got
        .told
        .iter()
        .filter_map(|told| match told.event {
            Event::Memcpy(copy) if copy.copy_kind == 10 => Some((copy.src_device_id, copy.dst_device_id, copy.bytes)),
            _ => None,
        })
        .collect();
    assert_eq!(devices, [(0, 1, 100), (1, 0, 101)]);
    assert_eq!(devices.len() as u64, tally["peer"]);
}

#[test]
fn sets_also_in_a_context_that_is_gone() {
    let (run, tally) = alone(EventKind::Memset);
    assert_eq!(run.got.count(EventKind::Memset), tally["memset"]);
    let on_second = |told: &Told| matches!(told.event, Event::Memset(set) if set.device_id == 1);
    assert!(run.got.told.iter().any(on_second));
}

#[test]
fn waits() {
    let (run, tally) = alone(EventKind::Sync);
    assert_eq!(run.got.count(EventKind::Sync), tally["sync"]);
    let sorts: BTreeSet<_> = run
        .got
        .told
        .iter()
        .map(|told| match told.event {
            Event::Sync(wait) => wait.sync_kind,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(sorts.into_iter().eq(1..=4));
}

#[test]
fn graphs() {
    let (run, tally) = alone(EventKind::Graph);
    assert_eq!(run.got.count(EventKind::Graph), tally["graph"]);
}

#[test]
fn memory() {
    let (run, tally) = alone(EventKind::Memory);
    assert_eq!(run.got.count(EventKind::Memory), tally["memory"]);
    let bytes_left: i64 = run
        .got
        .told
        .iter()
        .map(|told| match told.event {
            Event::Memory(memory) if memory.operation == 1 => memory.bytes as i64,
            Event::Memory(memory) => -(memory.bytes as i64),
            other => panic!("{other:?}"),
        })
        .sum();
    assert_eq!(bytes_left, 0, "all was freed");
}

#[test]
fn pools() {
    let (run, tally) = alone(EventKind::Pool);
    assert_eq!(run.got.count(EventKind::Pool), tally["pool"]);
    let Event::Pool(trimmed) = run.got.told[1].event else { panic!("a pool") };
    assert_eq!((trimmed.operation, trimmed.keep_bytes, trimmed.size_bytes), (3, 1 << 20, 1 << 20));
}

#[test]
fn ranges_and_marks() {
    let (run, tally) = alone(EventKind::Marker);
    assert_eq!((run.got.count(EventKind::Marker), tally["nvtx-on"]), (tally["nvtx"], 1));
}

#[test]
fn calls_of_the_runtime_with_their_thread() {
    let (mut run, tally) = alone(EventKind::Runtime);
    assert_eq!(run.got.count(EventKind::Runtime), tally["runtime"]);
    let thread: u32 = run.actor.ask("thread").parse().expect("a number");
    let Event::Runtime(call) = run.got.told[0].event else { panic!("a call") };
    assert_eq!((call.callback_id, call.thread_id, call.return_value), (211, thread, 0));
}

#[test]
fn calls_of_the_driver_with_their_threads() {
    let (mut run, tally) = alone(EventKind::Driver);
    let thread: u32 = run.actor.ask("thread").parse().expect("a number");
    let calls: Vec<_> = run
        .got
        .told
        .iter()
        .map(|told| match told.event {
            Event::Driver(call) => (call.callback_id, call.thread_id),
            other => panic!("{other:?}"),
        })
        .collect();
    let count = |ids: &[u32]| calls.iter().filter(|call| ids.contains(&call.0)).count() as u64;
    // cuLaunchKernel, its cooperative sister, cuLaunchKernelEx; cuGraphLaunch; waits of three sorts and for events.
    assert_eq!((count(&[307, 477, 652]), count(&[514])), (tally["kernel"], tally["graph"]));
    assert_eq!(count(&[17, 126, 121, 295]), tally["sync"]);
    let threads: BTreeSet<_> = calls.iter().map(|call| call.1).collect();
    assert!(threads.len() == 4 && threads.contains(&thread), "three threads launched beside: {threads:?}");
}

#[test]
fn overhead() {
    let mut run = Run::start(&[("FAKE_CUPTI_FLUSH_MS", "3")]);
    let _wish = run.wish(EventKind::Overhead.bit());
    // Each flush is told of by the next one; the first was the wish's own.
    (0..4).for_each(|_| run.flush());
    run.read_all();
    run.compare(EventKind::Overhead.bit());
    assert_eq!(run.got.told.len(), 4);
    for told in &run.got.told {
        let Event::Overhead(flush) = told.event else { panic!("{told:?}") };
        assert!(flush.overhead_kind == 1 << 16 && flush.end_ns - flush.start_ns >= 3_000_000, "{flush:?}");
        assert!(flush.thread_id != 0 && flush.thread_id != run.actor.pid(), "the timer's");
    }
    run.assert_books();
}

/// All at once, and the same again with graphs one by one, which leave no kernel of theirs.
#[test]
fn everything_at_once() {
    let mut run = Run::start(&[]);
    let _wish = run.wish(RECORDS);
    run.actor.act("all");
    run.catch_up();
    run.compare(RECORDS);
    let tally = run.actor.tally();
    let pairs = [
        (EventKind::Kernel, "kernel"),
        (EventKind::Graph, "graph"),
        (EventKind::Memcpy, "memcpy"),
        (EventKind::Memset, "memset"),
        (EventKind::Sync, "sync"),
        (EventKind::Memory, "memory"),
        (EventKind::Pool, "pool"),
        (EventKind::Runtime, "runtime"),
        (EventKind::Marker, "nvtx"),
    ];
    for (kind, name) in pairs {
        assert_eq!(run.got.count(kind), tally[name], "{name}");
    }
    assert!(run.got.count(EventKind::Driver) > tally["kernel"]);
    let fake = run.assert_books();
    assert_eq!((run.count(Counter::Unwanted), fake.records_dropped), (0, 0));
    assert_eq!(
        (run.count(Counter::ZeroTimes), run.count(Counter::NegativeTimes), run.count(Counter::Unfinished)),
        (0, 0, 0)
    );
    let (snapshot, got) = run.end();
    assert_eq!(crate::reading::total_lost(&snapshot), 0);
    assert_eq!(snapshot.counts.delivered, got.told.len() as u64);
}

/// CUPTI keeps what has once been switched on: what nobody wishes for any more is counted, and not delivered.
#[test]
fn what_is_wished_for_no_more_is_counted_and_not_delivered() {
    let mut run = Run::start(&[]);
    drop(run.wish(RECORDS));
    run.settle(0);
    run.read_all();
    let before = (run.got.told.len() as u64, run.count(Counter::Unwanted));
    // Graphs stay on and hide their kernels: they are delivered, and the status says so.
    let kernels = EventKind::Kernel.bit();
    let wish = Wish::hold(&run.found, kernels);
    run.settle(kernels | EventKind::Graph.bit());
    run.actor.act("all");
    run.catch_up();
    drop(wish);
    // The wish's end is a flush, too.
    run.settle(0);
    run.read_all();
    let tally = run.actor.tally();
    let fake = run.assert_books();
    assert_eq!((run.got.count(EventKind::Kernel), run.got.count(EventKind::Graph)), (tally["kernel"], tally["graph"]));
    let new = run.got.told.len() as u64 - before.0;
    assert_eq!(new, tally["kernel"] + tally["graph"], "nothing else");
    let others = ["memcpy", "memset", "sync", "memory", "pool", "runtime", "nvtx"].map(|name| tally[name]);
    assert!(run.count(Counter::Unwanted) - before.1 > others.iter().sum(), "{fake:?}");
}
