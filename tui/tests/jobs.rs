//! Jobs that are started from here keep what is theirs: streams, exit code, and the place for another tool's library.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use gputap_recording::{Block, Recording};
use gputap_ringbuf::event::EventKind;
use rustix::process::{Pid, Signal, kill_process};
use support::{eventually, gputap, installed, job, json, run, stderr, stdout};

fn new_folder(base: &tempfile::TempDir) -> String {
    base.path().join("run").to_str().unwrap().to_owned()
}

fn kernels(recording: &Path) -> u64 {
    events(recording, EventKind::Kernel)
}

/// Events of a kind in the segments.
fn events(recording: &Path, kind: EventKind) -> u64 {
    let recording = Recording::open(recording).unwrap();
    let count = |recorded: &gputap_recording::Recorded| {
        let (mut stream, mut count) = (recorded.stream(kind.bit()), 0);
        while let Some(block) = stream.next_block() {
            if let Block::Events(events) = block {
                count += events.len() as u64;
            }
        }
        count
    };
    recording.processes().iter().map(count).sum()
}

#[test]
fn record_keeps_the_exit_code_and_the_streams() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    let script = "read line; echo \"out $line\"; echo err >&2; exit 7";
    let mut command = gputap();
    command.args(["record", "-o", &folder, "--", "sh", "-c", script]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"in\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(stdout(&output), "out in\n", "nothing of ours");
    assert!(stderr(&output).starts_with("err\n"), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing was recorded"), "{}", stderr(&output));
    assert!(!base.path().join("run").exists(), "no empty folder stays");
}

#[test]
fn a_killed_job_and_one_that_cannot_start_have_the_codes_of_a_shell() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    assert_eq!(run(&["record", "-o", &folder, "--", "sh", "-c", "kill -9 $$"]).status.code(), Some(137));
    let missing = run(&["record", "-o", &folder, "--", "no-such-program"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(stderr(&missing).contains("no-such-program cannot be started"), "{}", stderr(&missing));
}

#[test]
fn record_writes_what_a_job_did() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    let line = job(&["steps=3", "threads=2"]);
    let mut command = gputap();
    command.args(["record", "-o", &folder, "--"]).args(&line).env("GPUTAP_CUPTI", installed().fake_cupti);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report = json(&output);
    let words = stderr(&output);
    assert!(words.contains("lost 0") && words.contains("recorded"), "{words}");
    let rows = kernels(&base.path().join("run"));
    assert_eq!(rows, report["kernels"].as_u64().unwrap());
    assert!(stderr(&run(&["record", "-o", &folder, "--", "true"])).contains("not empty"));
}

#[test]
fn a_recording_may_be_shorter_than_its_job() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    let line = job(&["seconds=2", "threads=1", "kernels_per_second=20000"]);
    let mut command = gputap();
    command.args(["record", "-d", "0.5", "-o", &folder, "--"]).args(&line);
    let output = command.env("GPUTAP_CUPTI", installed().fake_cupti).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let rows = kernels(&base.path().join("run"));
    let all = json(&output)["kernels"].as_u64().unwrap();
    assert!(0 < rows && rows < all, "{rows} of {all}");
}

#[test]
fn a_signal_to_us_is_the_jobs_and_the_recording_is_complete() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    let line = job(&["seconds=600", "threads=1", "kernels_per_second=2000"]);
    let mut command = gputap();
    command.args(["record", "-o", &folder, "--"]).args(&line).env("GPUTAP_CUPTI", installed().fake_cupti);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    eventually("a recording", || base.path().join("run/index.json").exists());
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128 + 15), "{output:?}");
    assert!(stderr(&output).contains("recorded "), "{output:?}");
}

#[test]
fn taps_below_a_shell_are_found() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    let line = job(&["seconds=0.5", "threads=1", "kernels_per_second=20000"]).join("' '");
    let script = format!("'{line}' >/dev/null; '{line}' >/dev/null; exit 5");
    let mut command = gputap();
    command.args(["record", "-o", &folder, "--", "sh", "-c", &script]).env("GPUTAP_CUPTI", installed().fake_cupti);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert_eq!(stderr(&output).matches("lost 0").count(), 2, "{output:?}");
    let entries = std::fs::read_dir(base.path().join("run")).unwrap();
    let further = entries.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("pid-"));
    assert_eq!(further.count(), 2, "a folder of its own for each");
}

#[test]
fn the_library_of_another_tool_is_left_in_its_place() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    let script = "echo \"$CUDA_INJECTION64_PATH\"; exit 3";
    let mut command = gputap();
    command.args(["record", "-o", &folder, "--", "sh", "-c", script]);
    let output = command.env("CUDA_INJECTION64_PATH", "/opt/other/libother.so").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stdout(&output), "/opt/other/libother.so\n");
    let words = stderr(&output);
    assert!(words.contains("/opt/other/libother.so") && words.contains("--replace-injection"), "{words}");
    let mut command = gputap();
    command.args(["record", "-o", &folder, "--replace-injection", "--", "sh", "-c", script]);
    let output = command.env("CUDA_INJECTION64_PATH", "/opt/other/libother.so").output().unwrap();
    assert!(stdout(&output).ends_with("libgputap_shim.so\n"), "{output:?}");
}

const PLACES: &str = "echo \"$CUDA_INJECTION64_PATH $NVTX_INJECTION64_PATH\"";

#[test]
fn nvtx_ranges_have_their_place_unless_it_is_taken() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    let run_with = |kinds: &str, nvtx: &str| {
        let mut command = gputap();
        command.args(["record", "-o", &folder, "--kinds", kinds, "--", "sh", "-c", PLACES]);
        command.env("NVTX_INJECTION64_PATH", nvtx).output().unwrap()
    };
    let shim = installed().shim.display().to_string();
    let ours = run_with("nvtx", "");
    assert_eq!(stdout(&ours), format!("{shim} {shim}\n"));
    let others = run_with("kernel,nvtx", "/opt/libnvtx.so");
    assert_eq!(stdout(&others), format!("{shim} /opt/libnvtx.so\n"));
    assert!(stderr(&others).contains("NVTX_INJECTION64_PATH is set to /opt/libnvtx.so"), "{others:?}");
    // Who asks for no ranges need not hear of it.
    assert!(!stderr(&run_with("kernel", "/opt/libnvtx.so")).contains("NVTX"));
}

#[test]
fn a_job_is_told_what_to_record_from_its_first_kernel_on() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    let script = "echo \"$GPUTAP_START/$GPUTAP_KINDS/$GPUTAP_LAUNCHES\"";
    let told = |arguments: &[&str]| {
        let mut command = gputap();
        command.args(["record", "-o", &folder]).args(arguments).args(["--", "sh", "-c", script]);
        stdout(&command.output().unwrap())
    };
    assert_eq!(told(&[]), "recording//\n");
    assert_eq!(told(&["--kinds", "sync,memory"]), "recording/sync,memory,pool/\n");
    assert_eq!(told(&["--launches"]), "recording/kernel,memcpy,memset,launch/1\n");
}

#[test]
fn what_was_launched_is_recorded_and_nothing_is_in_flight_at_the_end() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    // One thread: a lane for it and one for CUPTI's own are there from the start.
    let line = job(&["steps=3", "threads=1"]);
    let mut command = gputap();
    command.args(["record", "--launches", "-o", &folder, "--"]).args(&line);
    let output = command.env("GPUTAP_CUPTI", installed().fake_cupti).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(stderr(&output).contains("in flight 0"), "{output:?}");
    let launches = events(&base.path().join("run"), EventKind::Launch);
    assert_eq!(launches, json(&output)["kernels"].as_u64().unwrap());
}

#[test]
fn record_streams_while_the_job_runs() {
    let base = tempfile::tempdir().unwrap();
    let folder = new_folder(&base);
    let mut command = gputap();
    command.args(["record", "-o", &folder, "--", "sh", "-c", "echo first; read line; echo $line"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first", "before the job ends");
    child.stdin.take().unwrap().write_all(b"second\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "second");
    assert!(child.wait().unwrap().success());
}
