//! The demo for scripts: what was generated is what arrived.

mod support;

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{eventually, gputap, json, run, stderr, stdout};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn adds_up(summary: &Value) {
    let lost: u64 = summary["lost"].as_object().expect("an object").values().map(number).sum();
    assert!(number(&summary["generated"]) > 0);
    assert_eq!(number(&summary["generated"]), number(&summary["attempted"]));
    assert_eq!(number(&summary["attempted"]), number(&summary["delivered"]) + lost);
    assert_eq!(summary["adds_up"], true);
}

#[test]
fn generated_is_attempted_is_delivered_and_lost() {
    let output = run(&["demo", "--headless", "--seconds", "1", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = json(&output);
    adds_up(&summary);
    let job = &summary["job"];
    assert_eq!(summary["modules"], job["modules"]);
    assert_eq!(summary["cubin_bytes"], job["cubin_bytes"]);
    assert_eq!(summary["crcs"].as_array().unwrap().len() as u64, number(&job["modules"]));
    for (name, calls) in job["kernels_by_name"].as_object().unwrap() {
        assert_eq!(&summary["kernels"][name]["calls"], calls, "{name}");
    }
}

#[test]
fn modules_that_come_and_go_are_counted() {
    let output = run(&["demo", "--json", "--seconds", "1", "--churn"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = json(&output);
    adds_up(&summary);
    assert_eq!(summary["modules"], summary["job"]["modules"]);
}

/// The reader is stopped for as long as it takes the job to go round its lanes.
#[test]
fn what_a_stopped_reader_misses_is_counted() {
    let mut command = gputap();
    command.args(["demo", "--json", "--seconds", "4", "--rate", "200000"]).env("GPUTAP_LANE_MB", "1");
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let reader = Pid::from_raw(child.id() as i32).unwrap();
    eventually("records", || attempted_below(child.id()) > 0);
    kill_process(reader, Signal::STOP).unwrap();
    let until = attempted_below(child.id()) + 200_000;
    eventually("many more records", || attempted_below(child.id()) > until);
    kill_process(reader, Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = json(&output);
    adds_up(&summary);
    // By one name or the other: it may have been stopped before it had attached.
    let lost = ["overwritten", "before_attach"].map(|reason| summary["lost"][reason].as_u64().unwrap_or(0));
    assert!(lost.iter().sum::<u64>() > 0, "{}", summary["lost"]);
}

/// Of the tap in a child of process `parent`, as `gputap ps` sees it.
fn attempted_below(parent: u32) -> u64 {
    let taps = json(&run(&["ps", "--json"]));
    let is_below = |tap: &&Value| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", tap["pid"])).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|fields| fields.split(' ').nth(1)) == Some(&parent.to_string())
    };
    taps.as_array().unwrap().iter().find(is_below).map_or(0, |tap| number(&tap["attempted"]))
}

#[test]
fn records_on_the_side() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("run");
    let output = run(&["demo", "--json", "--seconds", "1", "-o", folder.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let cubins = std::fs::read_dir(folder.join("cubins")).expect("a folder of cubins").count() as u64;
    assert!(cubins >= number(&json(&output)["modules"]), "{cubins} files");
}

#[test]
fn off_a_terminal_it_prints_tables() {
    let output = run(&["demo", "--seconds", "1.5"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("KERNEL") && text.contains("lost 0"), "{text}\n{}", stderr(&output));
    assert!(!text.contains('\u{1b}'), "no escape sequences: {text:?}");
}
