//! Recordings that are cut off, broken, or none.

mod support;

use gputap_recording::{Loss, Recording, Status};
use gputap_report::{Diff, Options, Report, csv};
use gputap_sample::{BEGAN_NS, Sample};
use std::fs;
use support::*;

#[test]
fn what_is_no_recording_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let error = |dir: &std::path::Path| Report::of(dir, &Options::default()).unwrap_err().to_string();
    assert!(error(dir.path()).contains("holds no recording"), "{}", error(dir.path()));
    assert!(error(&dir.path().join("missing")).contains("cannot read"));
    fs::write(dir.path().join("kernels.csv"), "").unwrap();
    assert!(error(dir.path()).contains("format 2"), "{}", error(dir.path()));
    fs::write(dir.path().join("000001.gtap"), b"GPUTAPRC but not really").unwrap();
    let words = error(dir.path());
    assert!(words.contains("nothing of") && words.contains("000001.gtap"), "{words}");
}

/// All up to the cut is in the report, which says that there was more.
#[test]
fn a_recording_that_was_cut_off_is_reported_up_to_the_cut() {
    let sample = Sample { processes: 1, kernels: 30_000, straggler: None, ..sample() };
    let dir = written(&sample);
    let whole = report(dir.path());
    let recording = Recording::open(dir.path()).unwrap();
    let last = recording.processes()[0].segments().last().unwrap();
    let bytes = fs::read(last).unwrap();
    fs::write(last, &bytes[..bytes.len() / 2]).unwrap();
    let cut = report(dir.path());
    assert!(cut.events > whole.events / 2 && cut.events < whole.events, "{} of {}", cut.events, whole.events);
    let problems = cut.problems.join("\n");
    assert!(problems.contains("cut off") && problems.contains(last.to_str().unwrap()), "{problems}");
    assert!(problems.contains("rank 0 was not ended in order"), "{problems}");
    assert!(!cut.processes[0].loss.known && !cut.processes[0].loss.complete);
}

#[test]
fn a_segment_that_is_broken_in_the_middle_costs_its_end() {
    let sample = Sample { processes: 1, kernels: 30_000, straggler: None, ..sample() };
    let dir = written(&sample);
    let whole = report(dir.path());
    let recording = Recording::open(dir.path()).unwrap();
    let first = &recording.processes()[0].segments()[0];
    let mut bytes = fs::read(first).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(first, bytes).unwrap();
    let broken = report(dir.path());
    assert!(broken.events < whole.events && broken.events > whole.events / 3);
    assert!(broken.problems.iter().any(|problem| problem.contains("000001.gtap")), "{:?}", broken.problems);
    assert!(broken.processes[0].loss.known, "the end is there");
}

#[test]
fn loss_that_is_not_known_is_not_zero() {
    let known = tempfile::tempdir().unwrap();
    by_hand(known.path(), 1, &[kernel(1, 0, 1)], ended());
    assert!(report(known.path()).processes[0].loss.known);
    let silent = tempfile::tempdir().unwrap();
    by_hand(silent.path(), 1, &[kernel(1, 0, 1)], None);
    let silent = report(silent.path());
    assert_eq!(silent.kernels[0].calls, 1);
    assert!(!silent.processes[0].loss.known && silent.problems[0].contains("not ended in order"));
    let partly = tempfile::tempdir().unwrap();
    let lost = vec![Loss { reason: "cupti_dropped".to_owned(), count: 0, unknown: true }];
    let status = Status { time_ns: BEGAN_NS, complete: true, lost: lost.clone(), ..Status::default() };
    by_hand(partly.path(), 1, &[kernel(1, 0, 1)], Some(status));
    let row = report(partly.path()).processes[0].loss.clone();
    assert_eq!((row.known, row.complete, row.lost), (false, true, lost));
    let problems = Diff::of(&report(known.path()), &report(partly.path())).problems;
    assert!(
        problems.len() == 1 && problems[0].contains("how many records of pid 1 were lost is not known"),
        "{problems:?}"
    );
}

/// As a spreadsheet reads it: quotes doubled, line ends within quotes.
fn cells(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => cell.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted && chars.peek() == Some(&'\n') => {
                chars.next();
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(!quoted && cell.is_empty());
    rows
}

#[test]
fn hostile_names_keep_to_their_cells() {
    let dir = written(&Sample { kernels: 2_000, ..Sample::default() });
    let report = report(dir.path());
    let rows = cells(&csv(&report));
    assert_eq!(rows.len(), report.kernels.len() + 1);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{:?}", rows.iter().map(Vec::len).collect::<Vec<_>>());
    for (row, kernel) in rows[1..].iter().zip(&report.kernels) {
        assert_eq!((&row[1], &row[3]), (&kernel.calls.to_string(), &kernel.total_ns.to_string()));
        assert!(!row[0].starts_with(['=', '+', '-', '@']), "{}", row[0]);
    }
    assert!(rows.iter().any(|row| row[0] == "'=cmd|' /C calc'!A0"));
    let json: serde_json::Value = serde_json::from_slice(&serde_json::to_vec(&report).unwrap()).unwrap();
    assert_eq!(json["kernels"].as_array().unwrap().len(), report.kernels.len());
}
