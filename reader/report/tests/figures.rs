//! The report of a recording says what adding up all its events says.

mod support;

use gputap_report::{By, Options, PERCENTILE_ERROR, Report};
use gputap_ringbuf::event::{Event, MemcpyEvent};
use gputap_sample::{BEGAN_NS, Sample};
use std::collections::{BTreeMap, HashMap};
use support::*;

#[test]
fn kernels_have_their_calls_and_times_and_percentiles() {
    let sample = sample();
    let dir = written(&sample);
    let report = report(dir.path());
    let expected = durations(&[raw(&sample, 0), raw(&sample, 1)]);
    assert_eq!(report.kernels.len(), expected.len());
    let flawed: u64 = expected.values().map(|(_, flawed)| flawed).sum();
    assert!(flawed >= 3 && report.flags.sum() == flawed, "{:?}", report.flags);
    for row in &report.kernels {
        let (durations, flawed) = &expected[&row.key];
        assert_eq!((row.calls, row.flagged), (durations.len() as u64 + flawed, *flawed), "{}", row.name);
        assert_eq!(row.total_ns, durations.iter().sum::<u64>(), "{}", row.name);
        let ends = (durations.first().copied().unwrap_or(0), durations.last().copied().unwrap_or(0));
        assert_eq!((row.min_ns, row.max_ns), ends, "{}", row.name);
        for (quantile, is) in [(0.5, row.p50_ns), (0.99, row.p99_ns)] {
            let at = ((quantile * durations.len() as f64).ceil() as usize).max(1) - 1;
            let exact = durations.get(at).copied().unwrap_or(0) as f64;
            assert!((is as f64 - exact).abs() <= exact * PERCENTILE_ERROR, "{}: {is} for {exact}", row.name);
        }
    }
    assert!(report.kernels.is_sorted_by(|a, b| a.total_ns >= b.total_ns));
    let shares: f64 = report.kernels.iter().map(|row| row.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    assert!(
        report.kernels.iter().filter(|row| row.name.contains("PlanA::PlanA()")).count() == 2,
        "one name, two kernels"
    );
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn busy_time_is_the_union() {
    let sample = sample();
    let dir = written(&sample);
    let report = report(dir.path());
    assert_eq!(report.devices.len(), 2);
    for (rank, device) in (0..).zip(&report.devices) {
        let raw = raw(&sample, rank);
        let ((kernels_ns, _), (any_ns, gaps)) = (union(raw.spans(true)), union(raw.spans(false)));
        let times: u64 = raw.spans(true).iter().map(|(start, end)| end - start).sum();
        assert!(times > kernels_ns, "the sample's kernels overlap");
        assert_eq!((device.busy_ns, device.busy_with_copies_ns, device.late), (kernels_ns, any_ns, 0));
        assert_eq!(device.idle_ns, gaps.iter().map(|(start, end)| end - start).sum::<u64>());
        assert_eq!((device.window_ns, device.gap_count), (any_ns + device.idle_ns, gaps.len() as u64));
    }
}

#[test]
fn the_longest_gaps_say_what_was_around_them() {
    let sample = sample();
    let dir = written(&sample);
    let wrote = sample.write(tempfile::tempdir().unwrap().path()).unwrap();
    let report = report(dir.path());
    for (rank, device) in (0..).zip(&report.devices) {
        let raw = raw(&sample, rank);
        let (_, mut gaps) = union(raw.spans(false));
        gaps.sort_by_key(|(start, end)| std::cmp::Reverse(end - start));
        let found: Vec<_> = device.gaps.iter().map(|gap| (gap.start_ns, gap.start_ns + gap.duration_ns)).collect();
        let lengths = |gaps: &[(u64, u64)]| gaps.iter().map(|(start, end)| end - start).collect::<Vec<_>>();
        assert_eq!(lengths(&found), lengths(&gaps[..found.len()]));
        assert!(found.iter().all(|gap| gaps.contains(gap)));
        let pauses = &wrote.processes[rank as usize].pauses;
        assert!(pauses.len() > 2);
        for pause in pauses {
            let gap = device
                .gaps
                .iter()
                .find(|gap| gap.start_ns <= pause.start_ns + 1 && gap.start_ns + gap.duration_ns >= pause.end_ns);
            let gap = gap.unwrap_or_else(|| panic!("{pause:?} is not in {:?}", device.gaps));
            let (before, after) = (gap.before.as_deref().unwrap(), gap.after.as_deref().unwrap());
            assert!(before.contains("AllReduce"), "a step ends with its collective, not with {before}");
            assert!(
                after.starts_with("(copy HtoD)") || after == "(memset)",
                "and begins with a copy, not with {after}"
            );
            assert!((gap.start_s * 1e9 - (gap.start_ns - BEGAN_NS) as f64).abs() < 1e3);
        }
    }
}

#[test]
fn the_straggler_is_named() {
    let dir = written(&Sample { processes: 4, straggler: Some((2, 10)), ..sample() });
    let report = report(dir.path());
    let straggler = report.straggler.expect("a straggler");
    assert_eq!(straggler.label, "rank 2");
    assert!((0.08..0.12).contains(&straggler.slowdown), "{straggler:?}");
    assert!((0.05..0.16).contains(&straggler.kernel_slowdown), "{straggler:?}");
    let waits: Vec<u64> = report.processes.iter().map(|one| one.collective_ns).collect();
    assert_eq!(waits.iter().min(), Some(&waits[2]), "the others wait for it: {waits:?}");
    assert!(report.processes.iter().all(|one| one.rank == Some(2) || one.slowdown.unwrap() < 0.03));
    // A process without kernels is no rank: it is left out, and the others are still compared.
    by_hand(dir.path(), 77, &[], ended());
    let with_loader = support::report(dir.path());
    assert_eq!(with_loader.straggler, Some(straggler));
    assert_eq!(with_loader.processes.iter().filter(|one| one.slowdown.is_none()).count(), 1);
    let even = written(&Sample { processes: 4, straggler: None, ..sample() });
    assert_eq!(support::report(even.path()).straggler, None);
    let alone = support::report(written(&Sample { processes: 1, ..sample() }).path());
    assert_eq!((alone.straggler, alone.processes[0].slowdown), (None, None));
}

#[test]
fn copies_and_memory_are_those_of_the_events() {
    let sample = sample();
    let dir = written(&sample);
    let report = report(dir.path());
    let (mut copies, mut sets): (BTreeMap<u8, (u64, u64, u64)>, u64) = (BTreeMap::new(), 0);
    for rank in 0..2 {
        let raw = raw(&sample, rank);
        let (mut in_use, mut high, mut blocks) = (0_u64, 0, HashMap::new());
        for event in &raw.events {
            match event {
                Event::Memcpy(copy) => {
                    let sum = copies.entry(copy.copy_kind).or_default();
                    *sum = (sum.0 + 1, sum.1 + copy.bytes, sum.2 + copy.end_ns - copy.start_ns);
                }
                Event::Memset(_) => sets += 1,
                Event::Memory(one) if one.operation == 1 => {
                    blocks.insert(one.address, one.bytes);
                    in_use += one.bytes;
                    high = high.max(in_use);
                }
                Event::Memory(one) => in_use -= blocks.remove(&one.address).unwrap(),
                _ => {}
            }
        }
        let row = report.memory.iter().find(|row| row.process == format!("rank {rank}")).unwrap();
        assert_eq!((row.high_water_bytes, row.in_use_bytes, row.uncertain), (high, in_use, 0));
    }
    assert_eq!((report.memsets, report.copies.len()), (sets, copies.len()));
    for row in &report.copies {
        let kind = match row.direction {
            "HtoD" => 1,
            "DtoH" => 2,
            "DtoD" => 8,
            other => panic!("{other}"),
        };
        let (number, bytes, time_ns) = copies[&kind];
        assert_eq!((row.copies, row.bytes, row.total_ns), (number, bytes, time_ns));
        assert!((row.gb_per_s.unwrap() - bytes as f64 / time_ns as f64).abs() < 1e-9);
    }
}

#[test]
fn a_copy_without_good_times_is_in_no_rate() {
    let dir = tempfile::tempdir().unwrap();
    let copy = |start_ns, end_ns| {
        Event::Memcpy(MemcpyEvent { start_ns, end_ns, bytes: 1000, copy_kind: 1, ..MemcpyEvent::default() })
    };
    by_hand(dir.path(), 1, &[copy(BEGAN_NS, BEGAN_NS + 500), copy(BEGAN_NS, 0), copy(BEGAN_NS, BEGAN_NS - 9)], ended());
    let report = report(dir.path());
    let row = &report.copies[0];
    assert_eq!((row.copies, row.flagged, row.bytes, row.total_ns, row.gb_per_s), (3, 2, 3000, 500, Some(2.0)));
    assert_eq!((report.flags.unfinished, report.flags.negative), (1, 1));
}

/// Two processes on one device: what overlaps counts once, and a gap is one of both.
#[test]
fn a_shared_device_is_one() {
    let dir = tempfile::tempdir().unwrap();
    by_hand(dir.path(), 1, &[kernel(1, 0, 10), kernel(1, 20, 30), kernel(1, 90, 95)], ended());
    by_hand(dir.path(), 2, &[kernel(2, 5, 25), kernel(2, 60, 92)], ended());
    let report = report(dir.path());
    assert_eq!(report.devices.len(), 1);
    let device = &report.devices[0];
    assert_eq!(device.processes, ["pid 1", "pid 2"]);
    assert_eq!((device.busy_ns, device.idle_ns), (65_000_000, 30_000_000));
    let gap = &device.gaps[0];
    assert_eq!((gap.before.as_deref(), gap.after.as_deref()), (Some("one"), Some("two")));
    assert!((gap.start_s - 0.03).abs() < 1e-9, "{gap:?}");
}

#[test]
fn groups_add_up_to_all() {
    let sample = sample();
    let dir = written(&sample);
    let raws = [raw(&sample, 0), raw(&sample, 1)];
    for by in [By::Stream, By::Device, By::Rank, By::Graph, By::Cubin] {
        let report = Report::of(dir.path(), &Options { by: Some(by), ..Options::default() }).unwrap();
        let sum =
            |of: fn(&gputap_report::KernelRow) -> u64| report.groups.iter().map(|row| of(&row.figures)).sum::<u64>();
        let calls: usize = raws.iter().map(|raw| raw.kernels().count()).sum();
        assert_eq!((sum(|row| row.calls), sum(|row| row.total_ns)), (calls as u64, report.kernel_ns), "{by:?}");
        let labels: Vec<&str> = report.groups.iter().map(|row| row.label.as_str()).collect();
        let calls_of = |label: &str| {
            let row = report.groups.iter().find(|row| row.label == label);
            row.unwrap_or_else(|| panic!("{by:?}: {label} is not in {labels:?}")).figures.calls
        };
        let counted = |rank: usize, is_in: fn(&gputap_ringbuf::event::KernelEvent) -> bool| {
            raws[rank].kernels().filter(|kernel| is_in(kernel)).count() as u64
        };
        match by {
            By::Stream => {
                assert_eq!(calls_of("rank 1, GPU 1, context 1, stream 20"), counted(1, |k| k.stream_id == 20))
            }
            By::Device => assert_eq!(calls_of("node-a GPU 0"), counted(0, |_| true)),
            By::Rank => assert_eq!(calls_of("rank 1"), counted(1, |_| true)),
            By::Graph => {
                assert_eq!(calls_of("rank 0, graph 3"), counted(0, |k| k.graph_id == 3));
                assert_eq!(calls_of("rank 0, in no graph"), counted(0, |k| k.graph_id == 0));
            }
            By::Cubin => {
                let (crc32, functions) = &sample.cubins()[1];
                let of_cubin =
                    |raw: &Raw| raw.kernels().filter(|k| raw.name(k).is_some_and(|n| functions.contains(&n))).count();
                assert_eq!(calls_of(&format!("cubin {crc32:08x}")), raws.iter().map(of_cubin).sum::<usize>() as u64);
                assert_eq!(calls_of("no cubin known"), 2, "the kernels without a name");
            }
        }
        for row in &report.groups {
            assert!(
                !row.kernels.is_empty() && row.kernels.is_sorted_by(|a, b| a.total_ns >= b.total_ns),
                "{}",
                row.label
            );
        }
    }
}
