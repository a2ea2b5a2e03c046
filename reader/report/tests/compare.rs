//! Two recordings beside each other.

mod support;

use gputap_report::{Diff, Report};
use gputap_sample::Sample;
use std::fs;
use std::path::Path;
use support::*;

/// A recording of kernels, name and milliseconds each.
fn recording(dir: &Path, kernels: &[(u32, u64)]) -> Report {
    let mut at_ms = 0;
    let events: Vec<_> = kernels
        .iter()
        .map(|&(name, length_ms)| {
            at_ms += length_ms + 1;
            kernel(name, at_ms - length_ms, at_ms)
        })
        .collect();
    by_hand(dir, 1, &events, ended());
    report(dir)
}

#[test]
fn kernels_that_came_went_and_changed() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let before = recording(a.path(), &[(1, 10), (1, 10), (9, 5)]);
    let after = recording(b.path(), &[(1, 12), (1, 12), (1, 12), (2, 3)]);
    let diff = Diff::of(&before, &after);
    let one = &diff.kernels[0];
    assert_eq!((one.name.as_str(), one.calls_before, one.calls_after), ("one", 2, 3));
    assert_eq!((one.total_change_ns, one.mean_before_ns, one.mean_after_ns), (16_000_000, 10e6, 12e6));
    assert!((one.mean_change.unwrap() - 0.2).abs() < 1e-9);
    assert!((diff.change.unwrap() - 14.0 / 25.0).abs() < 1e-9);
    assert_eq!((diff.kernels.len(), diff.new.len(), diff.vanished.len()), (1, 1, 1));
    assert_eq!((diff.new[0].name.as_str(), diff.vanished[0].name.as_str()), ("two", "(unnamed)"));
}

#[test]
fn a_gate_fails_for_what_matters_and_names_it() {
    let failures = |before: &[(u32, u64)], after: &[(u32, u64)], over| {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        Diff::of(&recording(a.path(), before), &recording(b.path(), after)).gate(over).failures
    };
    // 4 % of the total, 20 % of the kernel.
    let slower = failures(&[(1, 10), (2, 40)], &[(1, 12), (2, 40)], 0.05);
    assert_eq!(slower, ["a call of one takes 20.00 % longer, more than 5.00 %"]);
    let total = failures(&[(1, 10)], &[(1, 10), (1, 10)], 0.05);
    assert_eq!(total, ["total GPU time is 100.00 % longer, more than 5.00 %"]);
    let nothing = failures(&[], &[(1, 10)], 0.05);
    assert!(nothing.len() == 1 && nothing[0].contains("has no GPU time to compare with"), "{nothing:?}");
    // Below 1 % of the total, faster, and just at the limit.
    let none: [String; 0] = [];
    assert_eq!(failures(&[(1, 1), (2, 400)], &[(1, 3), (2, 400)], 0.05), none);
    assert_eq!(failures(&[(1, 10)], &[(1, 8)], 0.0), none);
    assert_eq!(failures(&[(1, 10), (2, 10)], &[(1, 15), (2, 5)], 0.5), none);
}

#[test]
fn a_recording_and_itself_are_the_same() {
    let dir = written(&sample());
    let diff = Diff::of(&report(dir.path()), &report(dir.path()));
    assert_eq!((diff.change, diff.new.len(), diff.vanished.len(), diff.recompiled.len()), (Some(0.0), 0, 0, 0));
    assert!(
        diff.kernels.iter().all(|one| one.total_change_ns == 0 && one.mean_change.is_none_or(|change| change == 0.0))
    );
    assert!(diff.gate(0.0).failures.is_empty());
}

#[test]
fn another_cubin_of_a_kernel_is_told() {
    let sample = Sample { kernels: 2_000, ..Sample::default() };
    let (a, b) = (written(&sample), written(&sample));
    let (crc32, functions) = &sample.cubins()[2];
    let index = fs::read_to_string(b.path().join("index.json")).unwrap();
    let changed = index.replace(&format!("\"crc32\":{crc32},"), "\"crc32\":12345,");
    assert_ne!(index, changed);
    fs::write(b.path().join("index.json"), changed).unwrap();
    let diff = Diff::of(&report(a.path()), &report(b.path()));
    assert_eq!(diff.recompiled.len(), functions.len());
    assert!(diff.recompiled.iter().all(|one| one.before == [format!("{crc32:08x}")] && one.after == ["00003039"]));
    // Without an index nothing is known, which is no change.
    fs::remove_file(b.path().join("index.json")).unwrap();
    assert!(Diff::of(&report(a.path()), &report(b.path())).recompiled.is_empty());
}
