//! Traces are read back as a strict reader would, and compared with what was recorded.

use super::proto::{COUNTER, INSTANT, InternedName, SEQ_INCREMENTAL_STATE_CLEARED, SLICE_BEGIN, SLICE_END, Trace};
use super::proto::{TrackDescriptor, TrackEvent};
use crate::{Exported, Format, Options};
use gputap_recording::{Clock, Limits, Process, Recording, Status, Writer};
use gputap_ringbuf::event::{Event, KernelEvent, LaunchEvent, MarkerEvent, NO_NAME};
use gputap_sample::Sample;
use prost::Message;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Slice {
    track: u64,
    name: String,
    category: String,
    start: u64,
    end: u64,
    details: BTreeMap<String, String>,
    flows: Vec<u64>,
    ended_flows: Vec<u64>,
}

#[derive(Default)]
struct Seen {
    slices: Vec<Slice>,
    instants: Vec<Slice>,
    counters: HashMap<u64, Vec<(u64, f64)>>,
    tracks: HashMap<u64, TrackDescriptor>,
    clears: usize,
}

/// The texts that a sequence has defined so far.
#[derive(Default)]
struct Texts {
    by_space: [HashMap<u64, String>; 4],
}

impl Texts {
    fn learn(&mut self, space: usize, fresh: &[InternedName]) {
        for one in fresh {
            let before = self.by_space[space].insert(one.iid.unwrap(), one.name.clone().unwrap());
            assert_eq!(before, None, "an id is defined once");
        }
    }

    fn of(&self, space: usize, iid: u64) -> String {
        self.by_space[space]
            .get(&iid)
            .unwrap_or_else(|| panic!("id {iid} of {space} is used before it is defined"))
            .clone()
    }
}

/// Panics where a reader would lose something.
fn read(path: &Path) -> Seen {
    let trace = Trace::decode(std::fs::read(path).unwrap().as_slice()).unwrap();
    let mut seen = Seen::default();
    let mut sequences: HashMap<u32, Texts> = HashMap::new();
    let mut open: HashMap<u64, Vec<Slice>> = HashMap::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    assert!(trace.packet[0].clock_snapshot.is_some());
    for packet in &trace.packet[1..] {
        let sequence = packet.trusted_packet_sequence_id.unwrap();
        if packet.sequence_flags.unwrap() & SEQ_INCREMENTAL_STATE_CLEARED != 0 {
            sequences.insert(sequence, Texts::default());
            assert!(packet.trace_packet_defaults.is_some());
            seen.clears += 1;
        }
        let texts = sequences.get_mut(&sequence).expect("a sequence begins with a cleared state");
        if let Some(fresh) = &packet.interned_data {
            let spaces = [
                &fresh.event_categories,
                &fresh.event_names,
                &fresh.debug_annotation_names,
                &fresh.debug_annotation_string_values,
            ];
            spaces.iter().enumerate().for_each(|(space, fresh)| texts.learn(space, fresh));
        }
        if let Some(track) = &packet.track_descriptor {
            assert!(track.parent_uuid.is_none_or(|parent| seen.tracks.contains_key(&parent)));
            assert!(seen.tracks.insert(track.uuid.unwrap(), track.clone()).is_none(), "a uuid twice");
        }
        let Some(event) = &packet.track_event else { continue };
        let (track, time) = (event.track_uuid.unwrap(), packet.timestamp.unwrap());
        assert!(seen.tracks.contains_key(&track), "a track before its description");
        assert!(last.insert(track, time).is_none_or(|before| before <= time), "a track goes back in time");
        match event.kind.unwrap() {
            SLICE_BEGIN => open.entry(track).or_default().push(slice(event, time, texts)),
            SLICE_END => {
                let mut slice = open.get_mut(&track).and_then(Vec::pop).expect("an end has a begin");
                slice.end = time;
                slice.details.extend(details(event, texts));
                seen.slices.push(slice);
            }
            INSTANT => seen.instants.push(slice(event, time, texts)),
            COUNTER => {
                let value = event.double_counter_value.unwrap_or(event.counter_value.unwrap_or(-1) as f64);
                seen.counters.entry(track).or_default().push((time, value));
            }
            other => panic!("kind {other}"),
        }
    }
    assert!(open.values().all(Vec::is_empty), "a begin has an end");
    seen
}

fn slice(event: &TrackEvent, start: u64, texts: &Texts) -> Slice {
    Slice {
        track: event.track_uuid.unwrap(),
        name: texts.of(1, event.name_iid.unwrap()),
        category: texts.of(0, event.category_iids[0]),
        start,
        end: start,
        details: details(event, texts),
        flows: event.flow_ids.clone(),
        ended_flows: event.terminating_flow_ids.clone(),
    }
}

fn details(event: &TrackEvent, texts: &Texts) -> BTreeMap<String, String> {
    let value = |iid: Option<u64>, number: Option<u64>| match iid {
        Some(iid) => texts.of(3, iid),
        None => number.unwrap().to_string(),
    };
    let annotations = event.debug_annotations.iter();
    annotations.map(|one| (texts.of(2, one.name_iid.unwrap()), value(one.string_value_iid, one.uint_value))).collect()
}

fn process(pid: u32, host: &str, realtime_ns: u64) -> Process {
    Process {
        pid,
        host: host.to_owned(),
        boot_id: host.to_owned(),
        nonce: format!("{pid:x}"),
        clock: Some(Clock { monotonic_ns: 1_000, realtime_ns, error_ns: 0 }),
        ..Process::default()
    }
}

fn record(dir: &Path, process: Process, names: &[&[u8]], events: &[Event]) {
    let folder = dir.join(format!("{}-{}", process.host, process.nonce));
    let mut writer = Writer::create(&folder, process, Limits::default(), 0).unwrap();
    (0..).zip(names).for_each(|(id, name)| writer.name(id, name));
    events.iter().for_each(|event| writer.event(event).unwrap());
    writer.finish(Status::default()).unwrap();
}

fn export(dir: &Path) -> (Seen, Exported) {
    let out = dir.join("out");
    let recording = Recording::open(dir).unwrap();
    let exported = crate::export(&recording, Format::Perfetto, &out, &Options { overwrite: true }).unwrap();
    (read(&out), exported)
}

fn kernel(start_ns: u64, end_ns: u64, name_id: u32, correlation_id: u64) -> Event {
    Event::Kernel(KernelEvent { start_ns, end_ns, name_id, correlation_id, stream_id: 7, ..KernelEvent::default() })
}

fn marker(time_ns: u64, flags: u32, marker_id: u32) -> Event {
    let name_id = if flags == 4 { NO_NAME } else { marker_id };
    Event::Marker(MarkerEvent { time_ns, marker_id, flags, name_id, domain_id: NO_NAME, thread_id: 5 })
}

fn launch(time_ns: u64, correlation_id: u64) -> Event {
    Event::Launch(LaunchEvent { time_ns, correlation_id, thread_id: 9, ..LaunchEvent::default() })
}

#[test]
fn all_of_a_job_is_drawn_once() {
    let dir = tempfile::tempdir().unwrap();
    let sample = Sample { kernels: 30_000, launches: true, ..Sample::default() };
    let wrote = sample.write(dir.path()).unwrap();
    let (seen, exported) = export(dir.path());
    let mut drawn = (0, 0);
    for slice in seen.slices.iter().filter(|slice| slice.category == "kernel") {
        drawn = (drawn.0 + 1, drawn.1 + slice.end - slice.start);
    }
    let kernels = wrote.kernels();
    let good = kernels.values().map(|total| total.calls - total.flawed).sum::<u64>();
    assert_eq!(drawn, (good, kernels.values().map(|total| total.total_ns).sum::<u64>()));
    assert_eq!(exported.events, wrote.events());
    assert_eq!(exported.flawed, kernels.values().map(|total| total.flawed).sum::<u64>());
    let begun: HashSet<u64> = seen.instants.iter().flat_map(|launch| launch.flows.clone()).collect();
    let ended: Vec<u64> = seen.slices.iter().flat_map(|slice| slice.ended_flows.clone()).collect();
    assert_eq!(ended.iter().copied().collect::<HashSet<_>>(), begun, "flows have both ends");
    assert_eq!(ended.len(), begun.len());
    assert!(begun.len() > 20_000);
    let one = seen.slices.iter().find(|slice| slice.details.contains_key("graph node")).expect("a graph's kernel");
    let keys = ["grid", "block", "registers per thread", "correlation", "graph"];
    assert!(keys.iter().all(|key| one.details.contains_key(*key)), "{one:?}");
    let busy = seen.tracks.values().filter(|track| track.name.as_deref() == Some("GPU busy %"));
    for track in busy {
        let points = &seen.counters[&track.uuid.unwrap()];
        assert!(points.len() > 3 && points.iter().all(|(_, percent)| (0.0..=100.0).contains(percent)));
    }
}

#[test]
fn kernels_that_overlap_are_on_lanes_of_their_stream() {
    let dir = tempfile::tempdir().unwrap();
    let events = [kernel(10, 40, 0, 1), kernel(20, 60, 0, 2), kernel(40, 50, 0, 3), kernel(0, 9, 0, 4)];
    record(dir.path(), process(1, "a", 5_000), &[b"k"], &events);
    let (seen, exported) = export(dir.path());
    assert_eq!(exported.flawed, 1);
    let title = |slice: &Slice| seen.tracks[&slice.track].name.clone().unwrap();
    let mut rows: Vec<(u64, u64, String)> =
        seen.slices.iter().map(|slice| (slice.start, slice.end, title(slice))).collect();
    rows.sort();
    let (first, second) = ("stream 7, context 0".to_owned(), "stream 7, context 0, lane 2".to_owned());
    // 1,000 of the process' clock is 5,000 on the wall.
    assert_eq!(rows, [(4_010, 4_040, first.clone()), (4_020, 4_060, second), (4_040, 4_050, first)]);
}

#[test]
fn ranges_that_cross_keep_their_times() {
    let dir = tempfile::tempdir().unwrap();
    let events =
        [marker(10, 2, 0), marker(20, 2, 1), marker(25, 1, 2), marker(30, 4, 0), marker(40, 4, 1), marker(50, 2, 3)];
    record(dir.path(), process(1, "a", 1_000), &[b"outer", b"crossing", b"mark", b"endless"], &events);
    let (seen, _) = export(dir.path());
    let mut rows: Vec<(&str, u64, u64)> =
        seen.slices.iter().map(|slice| (slice.name.as_str(), slice.start, slice.end)).collect();
    rows.sort();
    assert_eq!(rows, [("crossing", 20, 40), ("endless", 50, 50), ("outer", 10, 30)]);
    assert_eq!(seen.instants[0].name, "mark");
    let endless = seen.slices.iter().find(|slice| slice.name == "endless").unwrap();
    assert_eq!(endless.details["end"], "not recorded");
}

#[test]
fn one_pid_on_two_hosts_shares_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let events = [launch(5, 1), kernel(10, 20, 0, 1), launch(6, 2), kernel(30, 40, 0, 3)];
    for host in ["a", "b"] {
        record(dir.path(), process(17, host, 1_000), &[b"k"], &events);
    }
    let (seen, _) = export(dir.path());
    let pids: Vec<i32> = seen.tracks.values().filter_map(|track| track.process.as_ref()?.pid).collect();
    assert!(pids.len() == 2 && pids.contains(&17) && pids[0] != pids[1], "{pids:?}");
    // That no uuid is there twice was looked at in reading.
    let flows: Vec<u64> = seen.instants.iter().flat_map(|launch| launch.flows.clone()).collect();
    assert_eq!(flows.len(), 2, "only what has both ends: {flows:?}");
    assert_ne!(flows[0], flows[1]);
}

#[test]
fn more_names_than_are_interned_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<Vec<u8>> = (0..40_000).map(|number| format!("kernel_{number}").into_bytes()).collect();
    let slices: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let events: Vec<Event> = (0..40_000).map(|id| kernel(10 + u64::from(id), 11 + u64::from(id), id, 0)).collect();
    record(dir.path(), process(1, "a", 1_000), &slices, &events);
    let (seen, _) = export(dir.path());
    assert!(seen.clears >= 3, "{}", seen.clears);
    let in_order = seen.slices.iter().enumerate().all(|(at, slice)| slice.name == format!("kernel_{at}"));
    assert!(in_order && seen.slices.len() == 40_000);
}

#[test]
fn hostile_names_are_texts_and_differ() {
    let dir = tempfile::tempdir().unwrap();
    let names = gputap_sample::hostile();
    let slices: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let events: Vec<Event> = (0..names.len() as u32).map(|id| kernel(10, 20, id, 0)).collect();
    record(dir.path(), process(1, "a", 1_000), &slices, &events);
    let (seen, _) = export(dir.path());
    let drawn: HashSet<&str> = seen.slices.iter().map(|slice| slice.name.as_str()).collect();
    assert_eq!(drawn.len(), names.len());
    assert!(drawn.contains("\\xff\\xfe_kernel_\\x80\\xc3("), "{drawn:?}");
    assert!(drawn.iter().all(|name| !name.chars().any(char::is_control) && name.len() < 20_000));
}

#[test]
fn times_that_no_clock_has_break_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let events = [kernel(1, u64::MAX, 0, 1), kernel(u64::MAX, u64::MAX, 0, u64::MAX), kernel(5, 6, 0, 2)];
    record(dir.path(), process(1, "a", u64::MAX), &[b"k"], &events);
    let (seen, _) = export(dir.path());
    assert_eq!(seen.slices.len(), 3);
    assert!(seen.slices.iter().all(|slice| slice.end >= slice.start));
}
