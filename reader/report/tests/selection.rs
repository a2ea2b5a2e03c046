//! A part of a recording: a time, or some kernels.

mod support;

use gputap_report::{Moment, Options, Report, ReportError};
use gputap_ringbuf::event::{Event, MemoryEvent};
use gputap_sample::{BEGAN_NS, Sample, is_timed};
use support::*;

fn between(dir: &std::path::Path, from: &str, to: &str) -> Result<Report, ReportError> {
    let moments: [Moment; 2] = [from.parse()?, to.parse()?];
    Report::of(dir, &Options { between: Some(moments), ..Options::default() })
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// A kernel belongs where it starts: the first instant is in, the last is not. Its time in the busy time is cut.
#[test]
fn a_kernel_counts_where_it_starts() {
    let dir = tempfile::tempdir().unwrap();
    by_hand(dir.path(), 1, &[kernel(1, 0, 20), kernel(1, 30, 40), kernel(2, 50, 70), kernel(2, 90, 95)], ended());
    for (from, to, calls, busy_ms, window_ms) in [
        ("0", "0.1", 4, 55, 100),
        ("0.030", "0.050", 1, 10, 20),
        ("0.030000001", "0.050000001", 1, 10, 20),
        ("0.010", "0.060", 2, 30, 50),
        ("12:00:00.03", "12:00:00.05", 1, 10, 20),
        ("2026-12-01T12:00:00.090Z", "2026-12-01T13:00:05+01:00", 1, 5, 910),
    ] {
        let report = between(dir.path(), from, to).unwrap();
        let (device, seen) = (&report.devices[0], report.kernels.iter().map(|row| row.calls).sum::<u64>());
        let rounded = (device.busy_ns + 1) / 1_000_000;
        assert_eq!((seen, rounded, device.window_ns / 1_000_000), (calls, busy_ms, window_ms), "{from} {to}");
        assert_eq!(device.busy_ns + device.idle_ns, device.window_ns, "{from} {to}");
    }
    let edge = between(dir.path(), "0.01", "0.1").unwrap();
    assert_eq!(edge.devices[0].gaps[0].after.as_deref(), Some("two"));
    let rest = between(dir.path(), "0.06", "0.08").unwrap_err();
    assert!(rest.to_string().contains("nothing was recorded in that time"), "{rest}");
}

#[test]
fn neighbouring_times_add_up() {
    let sample = Sample { kernels: 20_000, processes: 1, straggler: None, flawed: false, ..sample() };
    let dir = written(&sample);
    let whole = report(dir.path());
    let raw = raw(&sample, 0);
    let starts: Vec<u64> = raw.kernels().map(|kernel| kernel.start_ns - BEGAN_NS).collect();
    // Cuts at the very start of a kernel, and anywhere.
    let cuts = [0, starts[3_000], starts[9_999] + 1, starts[15_000] + 777, 100_000_000_000];
    let parts: Vec<Report> =
        cuts.windows(2).map(|cut| between(dir.path(), &seconds(cut[0]), &seconds(cut[1])).unwrap()).collect();
    let calls = |report: &Report| report.kernels.iter().map(|row| row.calls).sum::<u64>();
    assert_eq!(parts.iter().map(calls).sum::<u64>(), calls(&whole));
    assert_eq!(parts.iter().map(|part| part.kernel_ns).sum::<u64>(), whole.kernel_ns);
    assert_eq!(parts.iter().map(|part| part.devices[0].busy_ns).sum::<u64>(), whole.devices[0].busy_ns);
    for (cut, part) in cuts.windows(2).zip(&parts) {
        let (from, to) = (BEGAN_NS + cut[0], BEGAN_NS + cut[1]);
        let expected = raw.kernels().filter(|kernel| (from..to).contains(&kernel.start_ns)).count() as u64;
        assert_eq!(calls(part), expected);
        assert_eq!(part.devices[0].busy_with_copies_ns, union(clipped(&raw.spans(false), from, to)).0);
    }
    let high: Vec<u64> = parts.iter().map(|part| part.memory[0].high_water_bytes).collect();
    assert_eq!(
        high.iter().max(),
        Some(&whole.memory[0].high_water_bytes),
        "memory from before is still in use: {high:?}"
    );
    assert!(high.iter().all(|&bytes| bytes > 80 * (2 << 20)), "{high:?}");
}

/// What was allocated before is in use, and what was given back before is not in the high water.
#[test]
fn memory_has_the_high_water_of_the_time_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let memory = |ms: u64, operation: u8, address: u64, bytes: u64| {
        let time_ns = BEGAN_NS + ms * 1_000_000;
        Event::Memory(MemoryEvent { time_ns, operation, address, bytes, memory_kind: 3, ..MemoryEvent::default() })
    };
    let events = [
        memory(1, 1, 0x1000, 100),
        memory(2, 1, 0x2000, 50),
        memory(3, 2, 0x1000, 100),
        kernel(1, 10, 20),
        memory(30, 1, 0x3000, 7),
        memory(40, 2, 0x2000, 50),
        kernel(1, 50, 60),
    ];
    by_hand(dir.path(), 1, &events, ended());
    for (from, to, high_water_bytes, in_use_bytes) in
        [("0", "1", 150, 7), ("0.005", "0.025", 50, 50), ("0.005", "0.055", 57, 7), ("0.045", "0.055", 7, 7)]
    {
        let row = between(dir.path(), from, to).unwrap().memory[0].clone();
        assert_eq!((row.high_water_bytes, row.in_use_bytes), (high_water_bytes, in_use_bytes), "{from} {to}");
    }
}

#[test]
fn only_some_kernels() {
    let sample = sample();
    let dir = written(&sample);
    let filtered =
        |text: &str| Report::of(dir.path(), &Options { filter: Some(text.to_owned()), ..Options::default() });
    let report = filtered("^flash_(fwd|bwd_dq)").unwrap();
    let raws = [raw(&sample, 0), raw(&sample, 1)];
    let is_flash = |name: &[u8]| {
        let text = String::from_utf8_lossy(name);
        text.contains("flash_fwd") || text.contains("flash_bwd_dq")
    };
    let mut expected = (0, 0);
    for raw in &raws {
        for kernel in raw.kernels().filter(|kernel| raw.name(kernel).is_some_and(|name| is_flash(&name))) {
            expected.0 += 1;
            expected.1 += if is_timed(kernel.start_ns, kernel.end_ns) { kernel.end_ns - kernel.start_ns } else { 0 };
        }
    }
    assert!(expected.0 > 1000);
    assert_eq!((report.kernels.iter().map(|row| row.calls).sum::<u64>(), report.kernel_ns), expected);
    assert!(report.copies.is_empty() && report.memory.is_empty() && report.memsets == 0);
    let none = filtered("no such kernel").unwrap_err().to_string();
    assert!(none.contains("no kernel matches") && none.contains("there are 38 kernels, such as"), "{none}");
    let broken = filtered("a(").unwrap_err().to_string();
    assert!(broken.contains("\"a(\" is no regular expression"), "{broken}");
}

#[test]
fn times_that_cannot_be_say_so() {
    let dir = written(&Sample { kernels: 900, ..Sample::default() });
    for (from, to, words) in [
        ("2", "1", "\"1\" is not after \"2\""),
        ("1", "1", "is not after"),
        ("noon", "1", "\"noon\" is no time: give seconds"),
        ("-1", "1", "is no time"),
        ("1000", "2000", "nothing was recorded in that time; the recording is 0.0"),
        ("03:00", "04:00", "began at 2026-12-01T12:00:00.000Z"),
    ] {
        let error = between(dir.path(), from, to).unwrap_err().to_string();
        assert!(error.contains(words), "{from} {to}: {error}");
    }
}
