//! `report` and `diff` as people and pipelines run them.

mod support;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use gputap_sample::Sample;
use support::{gputap, json, run, stderr, stdout};
use tempfile::TempDir;

fn recorded(sample: &Sample) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    sample.write(dir.path()).unwrap();
    dir
}

fn small() -> Sample {
    Sample { kernels: 24_000, pause_every: 9, ..Sample::default() }
}

fn text(dir: &Path) -> &str {
    dir.to_str().unwrap()
}

#[test]
fn a_report_says_what_there_is() {
    let dir = recorded(&small());
    let output = run(&["report", text(dir.path())]);
    assert!(output.status.success(), "{}", stderr(&output));
    let words = stdout(&output);
    for part in [
        "2 processes, began 2026-12-01T12:00:00.000Z",
        // 27 steps of 450 kernels and 9 hostile ones in each of two.
        "24,318 kernels of 39 names",
        "percentiles within 1 %",
        "GRID×BLOCK",
        "ncclDevKernel_AllReduce",
        "more kernels; --rows 0 shows all",
        "HtoD",
        "GB/s",
        "node-a GPU 1 (rank 1): kernels ran",
        "idle 2",
        "HIGH WATER",
        "rank 1 holds the others up",
        "rank 0: lost 0   attempted",
        "odd times 2 (unfinished 2)",
    ] {
        assert!(words.contains(part), "{part:?} is not in\n{words}");
    }
    assert!(!words.contains('\u{1b}') && !words.contains('\0'), "nothing that a terminal obeys");
    assert_eq!(stderr(&output), "");
}

#[test]
fn json_and_csv_and_text_have_the_same_figures() {
    let dir = recorded(&small());
    let report = json(&run(&["report", "--json", text(dir.path())]));
    let first = &report["kernels"][0];
    let csv = stdout(&run(&["report", "--csv", text(dir.path())]));
    let calls = first["calls"].as_u64().unwrap();
    let line = csv.lines().nth(1).unwrap();
    assert!(line.contains(&format!(",{calls},")) && line.contains(&format!(",{},", first["total_ns"])), "{line}");
    let all = stdout(&run(&["report", "--rows", "0", text(dir.path())]));
    assert!(!all.contains("more kernels"));
    let by = json(&run(&["report", "--json", "--by", "rank", text(dir.path())]));
    assert_eq!(by["groups"].as_array().unwrap().len(), 2);
    let part = json(&run(&["report", "--json", "--between", "0", "0.05", "--filter", "gemm", text(dir.path())]));
    let part_calls = part["kernels"][0]["calls"].as_u64().unwrap();
    assert!(part_calls > 0 && part_calls < calls && part["copies"].as_array().unwrap().is_empty());
}

#[test]
fn what_cannot_be_reported_is_code_2_and_a_word_on_what_to_do() {
    let dir = recorded(&small());
    let empty = tempfile::tempdir().unwrap();
    let (dir, empty) = (text(dir.path()), text(empty.path()));
    for (arguments, words) in [
        (vec!["report", empty], "holds no recording"),
        (vec!["report", "/nonexistent/run"], "cannot read"),
        (vec!["report", dir, "--filter", "nothing like it"], "no kernel matches"),
        (vec!["report", dir, "--filter", "("], "is no regular expression"),
        (vec!["report", dir, "--between", "soon", "later"], "is no time: give seconds"),
        (vec!["report", dir, "--between", "5", "4"], "is not after"),
        (vec!["report", dir, "--between", "500", "600"], "nothing was recorded in that time"),
        (vec!["diff", dir, empty], "holds no recording"),
        (vec!["diff", dir, dir, "--fail-over", "much"], "must be a number of percent"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn a_recording_that_was_cut_off_is_told_and_no_failure() {
    let dir = recorded(&Sample { unfinished: true, ..small() });
    let folder =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let segment = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&segment).unwrap();
    fs::write(&segment, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let output = run(&["report", text(dir.path())]);
    assert!(output.status.success());
    let words = stdout(&output);
    assert!(words.contains("problem: ") && words.contains("cut off") && words.contains("is unknown"), "{words}");
    let csv = run(&["report", "--csv", text(dir.path())]);
    assert!(csv.status.success() && stderr(&csv).contains("cut off"), "{csv:?}");
}

#[test]
fn a_gate_is_an_exit_code() {
    let (before, after) = (recorded(&small()), recorded(&Sample { straggler: Some((1, 40)), ..small() }));
    let (before, after) = (text(before.path()), text(after.path()));
    let same = run(&["diff", before, before, "--fail-over", "0%"]);
    assert_eq!((same.status.code(), stderr(&same).as_str()), (Some(0), ""));
    let slower = run(&["diff", before, after, "--fail-over", "5%"]);
    assert_eq!(slower.status.code(), Some(1));
    assert!(stderr(&slower).contains("gputap: failed: a call of"), "{}", stderr(&slower));
    assert!(stdout(&slower).contains("GPU time of all kernels"));
    assert_eq!(run(&["diff", before, after]).status.code(), Some(0), "without a gate it only tells");
    assert_eq!(run(&["diff", after, before, "--fail-over", "5%"]).status.code(), Some(0), "faster is no failure");
    let judged = run(&["diff", before, after, "--fail-over", "5", "--json"]);
    assert_eq!(judged.status.code(), Some(1));
    let judged = json(&judged);
    assert_eq!(judged["gate"]["fail_over"], 0.05);
    assert!(!judged["gate"]["failures"].as_array().unwrap().is_empty() && judged["after_ns"].is_u64());
}

/// `gputap report DIR | head -1`.
#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let dir = recorded(&small());
    for arguments in [["report", "--rows=0"], ["report", "--json"], ["report", "--csv"]] {
        let mut command = gputap();
        command.args(arguments).arg(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let mut words = String::new();
        child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
        assert_eq!((child.wait().unwrap().code(), words.as_str()), (Some(0), ""), "{arguments:?}");
    }
}
