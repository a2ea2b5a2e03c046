//! The model against a naive one that keeps every record.

use super::*;
use gputap_ringbuf::event::{
    ApiEvent, GraphEvent, KernelEvent, MarkerEvent, MemcpyEvent, MemsetEvent, NO_NAME, OverheadEvent, SyncEvent,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const NAMES: [&str; 3] = ["_Z6vecaddPfS_i", "k0", "\u{1b}[2J"];

fn now() -> Now {
    Now { monotonic_ns: 1_000_000_000_000, realtime_ns: 0 }
}

/// Slots 0 to 5: every name twice, as two lanes' tables would intern them. Slot 6 and [`NO_NAME`] have none.
fn named_model() -> Model {
    let mut model = Model::new(now());
    (0u32..6).for_each(|slot| model.name(slot, NAMES[slot as usize % 3].as_bytes()));
    model
}

fn kernel_strategy() -> impl Strategy<Value = KernelEvent> {
    let name_id = prop_oneof![0u32..7, Just(NO_NAME)];
    let times = prop_oneof![
        (1u64..1 << 50, 0u64..1 << 35).prop_map(|(start, duration)| (start, start + duration)),
        (0u64..100, 0u64..100),
    ];
    (name_id, times, any::<[u32; 3]>()).prop_map(|(name_id, (start_ns, end_ns), grid)| KernelEvent {
        name_id,
        start_ns,
        end_ns,
        grid,
        ..Default::default()
    })
}

fn is_good(kernel: &KernelEvent) -> bool {
    kernel.start_ns > 0 && kernel.end_ns >= kernel.start_ns
}

/// The value at rank ceil(q n) of the sorted durations.
fn quantile(sorted: &[u64], quantile: f64) -> u64 {
    let rank = (quantile * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted[rank - 1]
}

fn check(rows: &[snapshot::KernelRow], name: &str, kernels: &[KernelEvent], all_ns: u64) {
    let row = rows.iter().find(|row| row.name == name).expect("every kernel that ran has a row");
    let good: Vec<_> = kernels.iter().filter(|k| is_good(k)).collect();
    let mut durations: Vec<u64> = good.iter().map(|k| k.end_ns - k.start_ns).collect();
    durations.sort_unstable();
    let total: u64 = durations.iter().sum();
    assert_eq!(row.calls, kernels.len() as u64);
    assert_eq!(row.flagged, (kernels.len() - good.len()) as u64);
    assert_eq!(row.total_ns, total);
    assert_eq!(row.min_ns, durations.first().copied().unwrap_or(0));
    assert_eq!(row.max_ns, durations.last().copied().unwrap_or(0));
    let mean = if durations.is_empty() { 0.0 } else { total as f64 / durations.len() as f64 };
    assert!((row.mean_ns - mean).abs() <= mean * 1e-9);
    assert!((row.share - if all_ns == 0 { 0.0 } else { total as f64 / all_ns as f64 }).abs() < 1e-9);
    for (q, reported) in [(0.50, row.p50_ns), (0.99, row.p99_ns)] {
        let exact = if durations.is_empty() { 0 } else { quantile(&durations, q) };
        let tolerance = exact as f64 * 0.01;
        assert!((reported as f64 - exact as f64).abs() <= tolerance.max(1.0), "q{q}: {reported} for {exact}");
    }
}

proptest! {
    #[test]
    fn kernels_are_what_a_naive_model_says(kernels in proptest::collection::vec(kernel_strategy(), 0..200)) {
        let mut model = named_model();
        let mut naive: BTreeMap<String, Vec<KernelEvent>> = BTreeMap::new();
        for kernel in &kernels {
            model.event(&Event::Kernel(*kernel), now());
            let name = match NAMES.get(kernel.name_id as usize % 3).filter(|_| kernel.name_id < 6) {
                Some(name) => crate::symbols::demangle(name.as_bytes()),
                None => "(unnamed)".to_owned(),
            };
            naive.entry(name).or_default().push(*kernel);
        }
        let snapshot = model.snapshot(now());
        let all_ns = kernels.iter().filter(|k| is_good(k)).map(|k| k.end_ns - k.start_ns).sum();
        prop_assert_eq!(snapshot.kernels.len(), naive.len());
        prop_assert!(snapshot.kernels.is_sorted_by(|a, b| a.total_ns >= b.total_ns));
        naive.iter().for_each(|(name, kernels)| check(&snapshot.kernels, name, kernels, all_ns));
        let flagged = kernels.iter().filter(|k| !is_good(k)).count() as u64;
        prop_assert_eq!(snapshot.counts.flagged_times, flagged);
    }

    #[test]
    fn copies_are_what_a_naive_model_says(copies in proptest::collection::vec((0u8..14, 0u64..1 << 40, 0u64..50, 0u64..50), 0..100)) {
        let mut model = Model::new(now());
        let mut naive: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
        for &(copy_kind, bytes, start_ns, end_ns) in &copies {
            model.event(&Event::Memcpy(MemcpyEvent { copy_kind, bytes, start_ns, end_ns, ..Default::default() }), now());
            let entry = naive.entry(super::copies::direction(copy_kind)).or_default();
            entry.0 += 1;
            entry.1 += bytes;
            entry.2 += if start_ns == 0 { 0 } else { end_ns.saturating_sub(start_ns) };
        }
        let rows = model.snapshot(now()).copies;
        let found: BTreeMap<&str, (u64, u64, u64)> =
            rows.iter().map(|row| (row.direction.as_str(), (row.copies, row.bytes, row.total_ns))).collect();
        prop_assert_eq!(found.len(), rows.len());
        prop_assert_eq!(found, naive);
    }

    #[test]
    fn no_record_breaks_the_model(kind in 1u16..=12, words in proptest::collection::vec(any::<u64>(), 12)) {
        let mut model = named_model();
        let event = Event::decode(kind, &words).expect("twelve words are enough for every kind");
        model.event(&event, now());
        model.event(&event, now());
        let _ = model.snapshot(now());
    }
}

#[test]
fn memsets_are_counted() {
    let mut model = Model::new(now());
    model.event(&Event::Memset(MemsetEvent { bytes: 5, start_ns: 1, end_ns: 0, ..Default::default() }), now());
    model.event(&Event::Memset(MemsetEvent { bytes: 6, start_ns: 1, end_ns: 2, ..Default::default() }), now());
    let snapshot = model.snapshot(now());
    assert_eq!((snapshot.memsets, snapshot.memset_bytes, snapshot.counts.flagged_times), (2, 11, 1));
}

#[test]
fn too_many_kernels_fold_into_other() {
    let mut model = Model::new(now());
    let extra = 10;
    let count = MAX_KERNELS as u32 + extra;
    for slot in 0..count {
        model.name(slot, format!("k{slot}").as_bytes());
        let kernel = KernelEvent { name_id: slot, start_ns: 1, end_ns: 2, ..Default::default() };
        model.event(&Event::Kernel(kernel), now());
    }
    let rows = model.snapshot(now()).kernels;
    assert_eq!(rows.len(), MAX_KERNELS + 1);
    assert_eq!(rows.iter().find(|row| row.name == "(other)").map(|row| row.calls), Some(u64::from(extra)));
}

#[test]
fn names_beyond_their_room_fold_into_other() {
    let mut model = Model::new(now());
    let long = |first: u8| {
        let mut name = vec![b'k'; MAX_NAME_BYTES / 2];
        name[0] = first;
        name
    };
    (0u8..3).for_each(|slot| model.name(slot.into(), &long(b'a' + slot)));
    let kernel = KernelEvent { name_id: 2, ..Default::default() };
    model.event(&Event::Kernel(kernel), now());
    let rows = model.snapshot(now()).kernels;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].name.as_str(), rows[0].calls, rows[0].flagged), ("(other)", 1, 1));
}

#[test]
fn every_kind_has_its_count_and_its_total() {
    let mut model = Model::new(now());
    let mut count = |event: Event| model.event(&event, now());
    count(Event::Graph(GraphEvent { start_ns: 10, end_ns: 30, ..Default::default() }));
    count(Event::Graph(GraphEvent { start_ns: 10, end_ns: 0, ..Default::default() }));
    for (sync_kind, end_ns) in [(4, 15), (1, 12), (4, 20)] {
        count(Event::Sync(SyncEvent { start_ns: 10, end_ns, sync_kind, ..Default::default() }));
    }
    count(Event::Overhead(OverheadEvent { start_ns: 1, end_ns: 9, overhead_kind: 1 << 16, thread_id: 0 }));
    count(Event::Runtime(ApiEvent { start_ns: 1, end_ns: 4, callback_id: 211, ..Default::default() }));
    count(Event::Driver(ApiEvent { start_ns: 1, end_ns: 6, callback_id: 307, ..Default::default() }));
    count(Event::Marker(MarkerEvent { time_ns: 1, ..Default::default() }));
    let snapshot = model.snapshot(now());
    let kinds: Vec<_> = snapshot.kinds.iter().map(|row| (row.kind, row.count)).collect();
    assert_eq!(kinds, [("sync", 3), ("graph", 2), ("overhead", 1), ("runtime", 1), ("driver", 1), ("nvtx", 1)]);
    assert_eq!(snapshot.graphs, Total { count: 2, flagged: 1, total_ns: 20, max_ns: 20 });
    let rows = |rows: &[NamedTotal]| -> Vec<(Option<u32>, &str, u64, u64)> {
        rows.iter().map(|row| (row.id, row.name, row.total.count, row.total.total_ns)).collect()
    };
    assert_eq!(rows(&snapshot.syncs), [(Some(1), "event", 1, 2), (Some(4), "context", 2, 15)]);
    assert_eq!(rows(&snapshot.overheads), [(Some(1 << 16), "buffer flush", 1, 8)]);
    assert_eq!(rows(&snapshot.runtime_calls), [(Some(211), "", 1, 3)]);
    assert_eq!(rows(&snapshot.driver_calls), [(Some(307), "", 1, 5)]);
}

#[test]
fn flags_say_what_is_wrong_and_add_up() {
    let mut model = Model::new(now());
    model.clock_step(100_000_000_000, 100_000_000_000);
    for (start_ns, end_ns) in [(1, 0), (0, 0), (0, 5), (7, 5), (100_000_000_001, 100_000_000_002), (1, 2)] {
        model.event(&Event::Kernel(KernelEvent { start_ns, end_ns, ..Default::default() }), now());
    }
    model.event(&Event::Marker(MarkerEvent::default()), now());
    let snapshot = model.snapshot(now());
    assert_eq!(snapshot.counts.flags, Flags { unfinished: 2, zero: 2, negative: 1, doubtful: 1 });
    assert_eq!(snapshot.counts.flagged_times, 6);
    // Of six kernels one has a time that can be averaged.
    assert_eq!((snapshot.kernels[0].calls, snapshot.kernels[0].flagged, snapshot.kernels[0].total_ns), (6, 5, 1));
}

#[test]
fn more_functions_than_there_is_room_for_fold_into_one() {
    let mut model = Model::new(now());
    for callback_id in 0..MAX_KEYS as u32 + 7 {
        model.event(&Event::Runtime(ApiEvent { start_ns: 1, end_ns: 2, callback_id, ..Default::default() }), now());
    }
    let rows = model.snapshot(now()).runtime_calls;
    assert_eq!(rows.len(), MAX_KEYS + 1);
    assert_eq!((rows[MAX_KEYS].id, rows[MAX_KEYS].name, rows[MAX_KEYS].total.count), (None, "(other)", 7));
}

fn launch(correlation_id: u64, name_id: u32, callback_id: u32) -> Event {
    Event::Launch(LaunchEvent { correlation_id, name_id, callback_id, time_ns: 1, ..Default::default() })
}

#[test]
fn launches_are_named_and_ended_by_what_they_launched() {
    let mut model = named_model();
    model.event(&launch(1, 1, 307), now());
    model.event(&launch(2, NO_NAME, 514), now());
    model.event(&launch(3, NO_NAME, 515), now());
    model.event(&launch(4, 0, 307), now());
    let names = |model: &Model| -> Vec<String> {
        model.snapshot(now()).in_flight.oldest.into_iter().map(|row| row.name).collect()
    };
    assert_eq!(names(&model), ["k0", "(graph)", "(graph)", "vecadd(float*, float*, int)"]);
    let (start_ns, end_ns) = (1, 2);
    model.event(&Event::Kernel(KernelEvent { correlation_id: 4, start_ns, end_ns, ..Default::default() }), now());
    model.event(&Event::Graph(GraphEvent { correlation_id: 2, start_ns, end_ns, ..Default::default() }), now());
    // A graph of copies alone.
    model.event(
        &Event::Memcpy(MemcpyEvent { correlation_id: 3, graph_id: 5, start_ns, end_ns, ..Default::default() }),
        now(),
    );
    assert_eq!(names(&model), ["k0"]);
    // A record without an end says that it has none, and is the last that comes of it.
    model.event(&Event::Kernel(KernelEvent { correlation_id: 1, start_ns, end_ns: 0, ..Default::default() }), now());
    let in_flight = model.snapshot(now()).in_flight;
    assert_eq!((in_flight.open, in_flight.uncertain, in_flight.launches), (1, 1, 4));
}
