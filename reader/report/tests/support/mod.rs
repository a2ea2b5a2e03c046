//! The same figures by the plainest means: all events in memory, sorted and looked at one by one.
#![allow(dead_code, reason = "each test program uses a part of this")]

use gputap_recording::{Clock, Device, Limits, Process, Status, Writer};
use gputap_report::{Options, Report};
use gputap_ringbuf::event::{Event, KernelEvent};
use gputap_sample::{BEGAN_NS, BEGAN_REALTIME_NS, Given, Sample, is_timed};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use tempfile::TempDir;

/// Of two ranks, several segments, all that the generator has.
pub fn sample() -> Sample {
    let limits = Limits { segment_bytes: 60_000, ..Limits::default() };
    Sample { kernels: 40_000, launches: true, pause_every: 9, limits, ..Sample::default() }
}

pub fn written(sample: &Sample) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    sample.write(dir.path()).unwrap();
    dir
}

pub fn report(dir: &Path) -> Report {
    Report::of(dir, &Options::default()).unwrap()
}

/// A rank's events, with the names of its kernels.
pub struct Raw {
    pub names: HashMap<u32, Vec<u8>>,
    pub events: Vec<Event>,
}

pub fn raw(sample: &Sample, rank: u32) -> Raw {
    let mut raw = Raw { names: HashMap::new(), events: Vec::new() };
    sample.events(rank, |given| match given {
        Given::Name(id, name) => drop(raw.names.insert(id, name.to_vec())),
        Given::Event(event) => raw.events.push(*event),
        Given::Text(..) => {}
    });
    raw
}

impl Raw {
    pub fn kernels(&self) -> impl Iterator<Item = &KernelEvent> {
        self.events.iter().filter_map(|event| if let Event::Kernel(kernel) = event { Some(kernel) } else { None })
    }

    /// None: without a name.
    pub fn name(&self, kernel: &KernelEvent) -> Option<Vec<u8>> {
        self.names.get(&kernel.name_id).cloned()
    }

    /// Good spans of kernels, or of all that runs on the device.
    pub fn spans(&self, only_kernels: bool) -> Vec<(u64, u64)> {
        let span = |event: &Event| match event {
            Event::Kernel(one) => Some((one.start_ns, one.end_ns)),
            Event::Memcpy(one) if !only_kernels => Some((one.start_ns, one.end_ns)),
            Event::Memset(one) if !only_kernels => Some((one.start_ns, one.end_ns)),
            _ => None,
        };
        self.events.iter().filter_map(span).filter(|&(start, end)| is_timed(start, end)).collect()
    }
}

/// The length of the union, and the gaps in it.
pub fn union(mut spans: Vec<(u64, u64)>) -> (u64, Vec<(u64, u64)>) {
    spans.sort_unstable();
    let (mut covered, mut gaps, mut end) = (0, Vec::new(), spans.first().map_or(0, |span| span.0));
    for (start, until) in spans {
        if start > end {
            gaps.push((end, start));
        }
        covered += until.saturating_sub(start.max(end));
        end = end.max(until);
    }
    (covered, gaps)
}

/// Cut to a time.
pub fn clipped(spans: &[(u64, u64)], from: u64, to: u64) -> Vec<(u64, u64)> {
    spans.iter().map(|&(start, end)| (start.max(from), end.min(to))).filter(|(start, end)| start < end).collect()
}

/// Durations by name, sorted; flawed times are only counted.
pub fn durations(raws: &[Raw]) -> BTreeMap<Option<Vec<u8>>, (Vec<u64>, u64)> {
    let mut all: BTreeMap<Option<Vec<u8>>, (Vec<u64>, u64)> = BTreeMap::new();
    for raw in raws {
        for kernel in raw.kernels() {
            let (durations, flawed) = all.entry(raw.name(kernel)).or_default();
            if is_timed(kernel.start_ns, kernel.end_ns) {
                durations.push(kernel.end_ns - kernel.start_ns);
            } else {
                *flawed += 1;
            }
        }
    }
    all.values_mut().for_each(|(durations, _)| durations.sort_unstable());
    all
}

/// A recording of these events of one process, for what the generator does not do.
pub fn by_hand(dir: &Path, pid: u32, events: &[Event], end: Option<Status>) {
    let process = Process {
        pid,
        nonce: format!("{pid:x}"),
        host: "node-a".to_owned(),
        boot_id: "b".to_owned(),
        devices: vec![Device { ordinal: 0, uuid: "GPU-one".to_owned(), name: "H200".to_owned() }],
        clock: Some(Clock { monotonic_ns: BEGAN_NS, realtime_ns: BEGAN_REALTIME_NS, error_ns: 1 }),
        ..Process::default()
    };
    let mut writer = Writer::create(&dir.join(format!("pid-{pid}-x")), process, Limits::default(), BEGAN_NS).unwrap();
    writer.name(1, b"one");
    writer.name(2, b"two");
    events.iter().for_each(|event| writer.event(event).unwrap());
    match end {
        Some(status) => drop(writer.finish(status).unwrap()),
        // What waits is written; no status is.
        None => {
            writer.tick(BEGAN_NS).unwrap();
            writer.tick(BEGAN_NS + 10_000_000_000).unwrap();
        }
    }
}

/// From `start_ms` to `end_ms` of the recording.
pub fn kernel(name_id: u32, start_ms: u64, end_ms: u64) -> Event {
    let at = |ms: u64| BEGAN_NS + ms * 1_000_000;
    Event::Kernel(KernelEvent { start_ns: at(start_ms), end_ns: at(end_ms), name_id, ..KernelEvent::default() })
}

pub fn ended() -> Option<Status> {
    Some(Status { time_ns: BEGAN_NS + 1_000_000_000, complete: true, ..Status::default() })
}
