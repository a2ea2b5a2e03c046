//! Recordings of more than one process, of what was killed, and with limits.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use gputap_recording::{Block, Recording, Status};
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::{self, Found};
use gputap_ringbuf::event::{ALL_KINDS, Event};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{TappedJob, eventually, gputap, installed, job, json, run, stderr};

/// `gputap record` with these arguments, of a job on the fakes.
fn record(arguments: &[&str], job: &[String]) -> Command {
    let mut command = gputap();
    command.arg("record").args(arguments).arg("--").args(job);
    command.env("GPUTAP_CUPTI", installed().fake_cupti).stdin(Stdio::null());
    command
}

fn index(dir: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(dir.join("index.json")).ok()?).ok()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Names of kernels by their process, and each process' last status.
struct Read {
    rank: Option<u32>,
    kernels: Vec<String>,
    events: u64,
    status: Status,
}

fn read(dir: &Path) -> Vec<Read> {
    let recording = Recording::open(dir).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(recording.problems(), []);
    let of_one = |recorded: &gputap_recording::Recorded| {
        let mut read = Read { rank: recorded.process.rank, kernels: Vec::new(), events: 0, status: Status::default() };
        let mut stream = recorded.stream(ALL_KINDS);
        let mut ids = Vec::new();
        while let Some(block) = stream.next_block() {
            match block {
                Block::Events(events) => {
                    read.events += events.len() as u64;
                    let name =
                        |event: &Event| if let Event::Kernel(kernel) = event { Some(kernel.name_id) } else { None };
                    ids.extend(events.iter().filter_map(name));
                }
                Block::Status(status) => read.status = status,
                Block::Module(_) => {}
            }
        }
        assert_eq!(stream.problems(), []);
        let name = |id: &u32| gputap_reader::symbols::demangle(&stream.names().get(*id).expect("a name").bytes);
        read.kernels = ids.iter().map(name).collect();
        read
    };
    recording.processes().iter().map(of_one).collect()
}

/// Where every record went, by the index; and that the segments hold what it says.
fn adds_up(dir: &Path) {
    let index = index(dir).expect("an index");
    let processes = index["processes"].as_array().expect("a list");
    let mut events: Vec<u64> = read(dir).iter().map(|read| read.events).collect();
    for process in processes {
        let counts = &process["counts"];
        let lost: u64 = counts["lost"].as_array().expect("a list").iter().map(|lost| number(&lost["count"])).sum();
        assert_eq!(number(&counts["attempted"]), number(&counts["delivered"]) + lost + number(&counts["pending"]));
        let kept = ["events", "removed_events", "filtered_events"].map(|name| number(&process[name]));
        assert_eq!(number(&counts["delivered"]), kept.iter().sum::<u64>(), "{process}");
        let at = events.iter().position(|events| *events == kept[0]).unwrap_or_else(|| panic!("{events:?}: {kept:?}"));
        events.remove(at);
    }
    assert_eq!(events, [0; 0]);
}

#[test]
fn the_ranks_of_a_job_are_one_recording() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("run");
    let line = job(&["steps=3", "threads=1"]).join("' '");
    let script = format!("for r in 0 1 2; do RANK=$r LOCAL_RANK=9 WORLD_SIZE=3 '{line}' >/dev/null & done; wait");
    let words = ["sh".to_owned(), "-c".to_owned(), script];
    let output = record(&["-o", dir.to_str().unwrap()], &words).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let read = read(&dir);
    assert_eq!(read.iter().map(|read| read.rank).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    assert!(read.iter().all(|read| !read.kernels.is_empty() && read.status.complete));
    adds_up(&dir);
    let index = index(&dir).unwrap();
    assert_eq!((&index["complete"], &index["version"]), (&Value::from(true), &Value::from(3)));
    assert_eq!(index["processes"][0]["process"]["variables"]["WORLD_SIZE"], "3");
    // All ranks load the same modules: each is there once.
    let cubins = index["cubins"].as_array().unwrap();
    assert!(!cubins.is_empty() && cubins.iter().all(|cubin| cubin["loaded_by"].as_array().unwrap().len() == 3));
    assert_eq!(std::fs::read_dir(dir.join("cubins")).unwrap().count(), cubins.len());
}

#[test]
fn all_taps_of_the_machine_are_recorded_as_they_come_and_go() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("run");
    let first = TappedJob::start();
    let mut command = gputap();
    command.args(["record", "--all", "-o", dir.to_str().unwrap()]).stderr(Stdio::piped());
    let recorder = command.spawn().unwrap();
    let has = |pid: u32| {
        let index = index(&dir).unwrap_or_default();
        let processes = index["processes"].as_array().cloned().unwrap_or_default();
        processes.iter().any(|one| one["process"]["pid"] == pid && number(&one["events"]) > 0)
    };
    eventually("the first", || has(first.child.id()));
    let second = TappedJob::start();
    eventually("the second", || has(second.child.id()));
    drop(first);
    kill_process(Pid::from_raw(recorder.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    adds_up(&dir);
}

#[test]
fn other_kernels_are_left_out_and_counted() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("run");
    let output =
        record(&["--filter", "gemm", "-o", dir.to_str().unwrap()], &job(&["steps=3", "threads=1"])).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let kernels = &read(&dir)[0].kernels;
    assert!(!kernels.is_empty() && kernels.iter().all(|name| name.contains("gemm")), "{kernels:?}");
    assert!(number(&index(&dir).unwrap()["processes"][0]["filtered_events"]) > 0);
    adds_up(&dir);
}

#[test]
fn a_kernel_that_takes_too_long_keeps_what_was_before_and_says_why() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("run");
    let arguments =
        ["--trigger", "kernel>1us", "--last", "2s", "--after", "300ms", "--once", "-o", dir.to_str().unwrap()];
    let output = record(&arguments, &job(&["seconds=3", "threads=1", "kernels_per_second=2000"])).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(stderr(&output).contains("trigger: pid"), "{output:?}");
    let index = index(&dir).unwrap();
    assert_eq!(index["triggers"]["count"], 1);
    assert!(index["triggers"]["fired"][0]["why"].as_str().unwrap().starts_with("kernel "), "{}", index["triggers"]);
    let read = &read(&dir)[0];
    assert!(
        read.events > 0 && read.status.notes.iter().any(|note| note.starts_with("kept from ")),
        "{:?}",
        read.status
    );
    let all = number(&json(&output)["kernels"]);
    assert!((read.kernels.len() as u64) < all, "it ended after the first");
}

#[test]
fn without_its_trigger_only_the_last_seconds_are_kept() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("run");
    let arguments = ["--trigger", "kernel>1h", "--last", "600ms", "-o", dir.to_str().unwrap()];
    let output = record(&arguments, &job(&["seconds=4", "threads=1", "kernels_per_second=2000"])).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(stderr(&output).contains("no trigger fired"), "{output:?}");
    let process = &index(&dir).unwrap()["processes"][0];
    assert!(number(&process["removed_events"]) > number(&process["events"]), "{process}");
    adds_up(&dir);
}

#[test]
fn a_gpu_that_rests_is_a_trigger() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("run");
    let job = TappedJob::start();
    let mut command = gputap();
    let arguments =
        ["record", "--trigger", "idle>200ms", "--once", "--after", "10ms", "-d", "60", "-p", &job.pid(), "-o"];
    let recorder = command.args(arguments).arg(&dir).stderr(Stdio::piped()).spawn().unwrap();
    eventually("events", || index(&dir).is_some_and(|index| number(&index["processes"][0]["events"]) > 0));
    let pid = Pid::from_raw(job.child.id() as i32).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    let output = recorder.wait_with_output().unwrap();
    kill_process(pid, Signal::CONT).unwrap();
    assert!(stderr(&output).contains("nothing ran on GPU 0"), "{output:?}");
}

#[test]
fn a_killed_process_is_a_trigger_and_one_that_ends_is_not() {
    let base = tempfile::tempdir().unwrap();
    for (name, words, fires) in [("ends", "steps=3", false), ("killed", "seconds=600", true)] {
        let dir = base.path().join(name);
        let arguments = ["--trigger", "exit", "--after", "10ms", "-o", dir.to_str().unwrap()];
        let line = job(&[words, "threads=1", "kernels_per_second=2000"]);
        let recorder = record(&arguments, &line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        if fires {
            eventually("events", || index(&dir).is_some_and(|index| number(&index["processes"][0]["events"]) > 0));
            kill_process(
                Pid::from_raw(number(&index(&dir).unwrap()["processes"][0]["process"]["pid"]) as i32).unwrap(),
                Signal::KILL,
            )
            .unwrap();
        }
        let output = recorder.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(if fires { 137 } else { 0 }), "{output:?}");
        assert_eq!(number(&index(&dir).unwrap()["triggers"]["count"]), u64::from(fires), "{output:?}");
        assert!(read(&dir)[0].events > 0);
    }
}

/// A job on the fakes that records although nobody reads.
fn black_box() -> (Child, Found, Attached) {
    let libraries = installed();
    let line = job(&["seconds=600", "threads=1", "kernels_per_second=2000"]);
    let mut command = gputap();
    command.args(&line[1..]).env("CUDA_INJECTION64_PATH", libraries.shim).env("GPUTAP_CUPTI", libraries.fake_cupti);
    command.env("GPUTAP_START", "blackbox").env("GPUTAP_BACKING", "shm");
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("the job starts");
    let mut open = None;
    eventually("records", || {
        open = discover::find(child.id()).ok().and_then(|found| Some((found.clone(), Attached::open(&found).ok()?)));
        open.as_ref().is_some_and(|(_, attached)| attached.counters().attempted > 1_000)
    });
    // While somebody has it open no other tap sweeps it away.
    let (found, attached) = open.unwrap();
    (child, found, attached)
}

fn post_mortem(whose: &str, dir: &Path) -> Output {
    gputap().args(["record", "--post-mortem", whose, "-o"]).arg(dir).output().unwrap()
}

#[test]
fn what_a_killed_black_box_left_is_read() {
    let base = tempfile::tempdir().unwrap();
    let (mut child, found, attached) = black_box();
    let pid = child.id().to_string();
    let lives = post_mortem(&pid, &base.path().join("lives"));
    assert!(lives.status.code() == Some(1) && stderr(&lives).contains("lives: `gputap record -p"), "{lives:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    let dir = base.path().join("by-pid");
    let output = post_mortem(&pid, &dir);
    assert!(output.status.success(), "{output:?}");
    assert!(stderr(&output).contains("recorded ") && stderr(&output).contains("KERNEL"), "{output:?}");
    let found_there = &read(&dir)[0];
    assert!(found_there.kernels.len() > 900, "{} kernels", found_there.kernels.len());
    assert_eq!(found_there.status.attempted, attached.counters().attempted);
    assert!(!index(&dir).unwrap()["cubins"].as_array().unwrap().is_empty());
    adds_up(&dir);
    // By its segment, and by a copy of it.
    let copy = base.path().join(found.segment.file_name().unwrap());
    std::fs::copy(&found.segment, &copy).unwrap();
    for (name, segment) in [("by-name", &found.segment), ("copy", &copy)] {
        let output = post_mortem(segment.to_str().unwrap(), &base.path().join(name));
        assert!(output.status.success(), "{output:?}");
        assert_eq!(read(&base.path().join(name))[0].events, found_there.events);
    }
    // Of another process there is nothing, but of this there is.
    let other = post_mortem("4000000", &base.path().join("other"));
    assert!(other.status.code() == Some(1) && stderr(&other).contains(&pid), "{other:?}");
    drop(attached);
    let _ = (std::fs::remove_file(&found.segment), std::fs::remove_file(&found.control));
}

#[test]
fn a_recorder_without_room_says_so_and_the_job_goes_on() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("run");
    // The job would inherit the limit: it gets it back. The signal of the limit is ignored, as a full disk sends none.
    let script = "trap '' XFSZ; ulimit -S -f 40; exec \"$@\"";
    let line =
        job(&["seconds=2", "threads=1", "kernels_per_second=50000", "modules=1", "module_bytes_max=8192"]).join("' '");
    let unlimited = format!("ulimit -S -f unlimited; '{line}' >/dev/null; exit 7");
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_gputap"), "record", "-o"]).arg(&dir);
    command.args(["--", "sh", "-c", &unlimited]);
    for (name, value) in support::environment() {
        command.env(name, value);
    }
    let output = command.env("GPUTAP_CUPTI", installed().fake_cupti).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "the job's: {output:?}");
    let words = stderr(&output);
    assert!(words.contains("the recording ends here") && words.contains("ulimit -f"), "{words}");
    assert!(index(&dir).is_some_and(|index| index["complete"] == false && index["failure"].is_string()));
    assert!(read(&dir)[0].events > 0);
}

/// It is stopped for as long as it takes the job to go round its lanes.
#[test]
fn a_recorder_that_cannot_keep_up_says_how_much_it_missed() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("run");
    let line = job(&["seconds=60", "threads=2", "kernels_per_second=200000"]);
    let mut command = record(&["-o", dir.to_str().unwrap()], &line);
    let mut recorder = command.env("GPUTAP_LANE_MB", "1").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("events", || index(&dir).is_some_and(|index| number(&index["processes"][0]["events"]) > 0));
    let pid = number(&index(&dir).unwrap()["processes"][0]["process"]["pid"]) as u32;
    let segment = Attached::open(&discover::find(pid).unwrap()).unwrap();
    let itself = Pid::from_raw(recorder.id() as i32).unwrap();
    kill_process(itself, Signal::STOP).unwrap();
    let until = segment.counters().attempted + 100_000;
    eventually("many more records", || segment.counters().attempted > until);
    kill_process(itself, Signal::CONT).unwrap();
    let mut words = BufReader::new(recorder.stderr.take().unwrap()).lines();
    let told =
        words.find(|line| line.as_ref().is_ok_and(|line| line.contains("cannot keep up"))).expect("a remark").unwrap();
    assert!(told.contains("records were overwritten"), "{told}");
    kill_process(itself, Signal::TERM).unwrap();
    // To its end: nobody to read its words would end it otherwise.
    words.for_each(drop);
    recorder.wait().unwrap();
    adds_up(&dir);
}

#[test]
fn a_folder_that_cannot_be_written_is_refused_before_the_job_starts() {
    let base = tempfile::tempdir().unwrap();
    let marker = base.path().join("started");
    let output = run(&["record", "-o", "/proc/gputap-recording", "--", "touch", marker.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("/proc/gputap-recording") && !marker.exists(), "{output:?}");
}

#[test]
fn a_recorder_that_is_killed_leaves_whole_segments_and_an_index() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("run");
    let job = TappedJob::start();
    let mut command = gputap();
    let mut recorder =
        command.args(["record", "-p", &job.pid(), "-o"]).arg(&dir).stderr(Stdio::null()).spawn().unwrap();
    eventually("events", || index(&dir).is_some_and(|index| number(&index["processes"][0]["events"]) > 5_000));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let recording = Recording::open(&dir).unwrap();
    let mut stream = recording.processes()[0].stream(ALL_KINDS);
    let mut events = 0;
    while let Some(block) = stream.next_block() {
        if let Block::Events(some) = block {
            events += some.len();
        }
    }
    assert!(events > 5_000, "{events}");
    let cut = |problem: &gputap_recording::Problem| problem.what == "the last block is cut off";
    assert!(stream.problems().iter().all(cut), "{:?}", stream.problems());
    assert_eq!(index(&dir).unwrap()["complete"], false);
}
