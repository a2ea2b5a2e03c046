//! Recordings for the tests of tables, and what they hold by a plain count.

#![allow(dead_code)] // Each test uses some of it.

use gputap_export::table::exact;
use gputap_recording::{Block, Process, Recorded, Recording, Status, Writer};
use gputap_ringbuf::event::{Event, EventKind, KernelEvent};
use gputap_sample::Sample;
use std::collections::BTreeMap;
use std::path::Path;

/// Two ranks, hostile names, flawed times, all that a sample can have.
pub fn sample(dir: &Path) -> Recording {
    let sample = Sample { kernels: 9_000, launches: true, ..Sample::default() };
    sample.write(dir).unwrap();
    Recording::open(dir).unwrap()
}

/// Every kind of event, each number of it another one, of a process without a rank on a host of an odd name.
pub fn every_kind(dir: &Path) -> Recording {
    let process = Process { host: "a/b=c %ü".to_owned(), pid: 77, nonce: "0f".to_owned(), ..Process::default() };
    let mut writer = Writer::create(&dir.join("pid-77-0f"), process, Default::default(), 1).unwrap();
    for kind in EventKind::ALL {
        writer.event(&numbered(*kind)).unwrap();
    }
    writer.finish(Status::default()).unwrap();
    Recording::open(dir).unwrap()
}

/// A process without any event.
pub fn nothing(dir: &Path) -> Recording {
    let writer = Writer::create(&dir.join("pid-1-0a"), Process::default(), Default::default(), 1).unwrap();
    writer.finish(Status::default()).unwrap();
    Recording::open(dir).unwrap()
}

/// The event of `kind` whose numbers are 101, 102, ...
pub fn numbered(kind: EventKind) -> Event {
    let width: usize = kind.fields().iter().map(|(_, numbers)| numbers).sum();
    let columns: Vec<Vec<u64>> = (101..).take(width).map(|number| vec![number]).collect();
    let mut events = Vec::new();
    Event::of_columns(kind, &columns, &mut events);
    events[0]
}

/// Kernels of a process, with their exact names.
pub fn kernels(recorded: &Recorded) -> Vec<(KernelEvent, Option<String>)> {
    let mut kernels = Vec::new();
    let mut stream = recorded.stream(EventKind::Kernel.bit());
    while let Some(block) = stream.next_block() {
        let Block::Events(events) = block else { continue };
        let events = events.to_vec();
        for event in events {
            let Event::Kernel(kernel) = event else { continue };
            kernels.push((kernel, stream.names().get(kernel.name_id).map(|name| exact(&name.bytes))));
        }
    }
    kernels
}

pub fn is_timed(kernel: &KernelEvent) -> bool {
    kernel.start_ns > 0 && kernel.end_ns >= kernel.start_ns
}

/// Runs and time by exact name; "" for kernels without one.
pub fn sums<'a>(kernels: impl IntoIterator<Item = &'a (KernelEvent, Option<String>)>) -> BTreeMap<String, [u64; 2]> {
    let mut sums: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (kernel, name) in kernels {
        let [count, time_ns] = sums.entry(name.clone().unwrap_or_default()).or_default();
        *count += 1;
        *time_ns += if is_timed(kernel) { kernel.end_ns - kernel.start_ns } else { 0 };
    }
    sums
}
