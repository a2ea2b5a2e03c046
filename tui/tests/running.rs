//! Commands about processes that run already.

mod support;

use std::io::Read;
use std::process::{Command, Stdio};

use support::{TappedJob, eventually, gputap, json, run, stderr, stdout};

#[test]
fn a_process_without_a_tap_is_told_how_to_get_one() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let pid = child.id().to_string();
    for arguments in [&["top", "-p", &pid][..], &["record", "-p", &pid], &["ctl", &pid, "yield"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let words = stderr(&output);
        assert!(words.contains(&pid) && words.contains("gputap env"), "{words}");
    }
    drop(child.stdin.take());
    child.wait().unwrap();
    let words = stderr(&run(&["top", "-p", "4194304"]));
    assert!(words.contains("no process 4194304"), "{words}");
}

#[test]
fn top_attaches_and_prints_tables_off_a_terminal() {
    let job = TappedJob::start();
    let output = run(&["top", "-p", &job.pid(), "--seconds", "1.2"]);
    assert!(output.status.success(), "{output:?}");
    let text = stdout(&output);
    assert!(text.contains(&format!("pid {}", job.pid())) && text.contains("lost 0"), "{text}");
    assert!(text.contains("ampere_"), "{text}");
}

#[test]
fn record_attaches_for_a_while() {
    let job = TappedJob::start();
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("run");
    let output = run(&["record", "-p", &job.pid(), "-d", "1", "-o", folder.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    assert!(stdout(&output).is_empty());
    assert!(folder.join("cubins").is_dir());
}

#[test]
fn ctl_returns_when_it_is_done() {
    let job = TappedJob::start();
    for (action, state) in [("yield", "yielded"), ("resume", "idle"), ("start", "black box"), ("flush", "black box")] {
        let output = run(&["ctl", &job.pid(), action, "--timeout", "30"]);
        assert!(output.status.success(), "{action}: {output:?}");
        assert_eq!(job.tap().unwrap()["state"], state, "after {action}");
    }
    let refused = run(&["ctl", &job.pid(), "resume", "--timeout", "30"]);
    if !refused.status.success() {
        assert!(stderr(&refused).contains("resume refused"), "{refused:?}");
    }
}

#[test]
fn ps_and_env_speak_to_people_and_to_scripts() {
    let job = TappedJob::start();
    let text = stdout(&run(&["ps"]));
    let line = text.lines().find(|line| line.starts_with(&job.pid())).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains("idle") && line.contains("__sim-job"), "{line}");
    let shell = "eval \"$1\" && printf %s \"$CUDA_INJECTION64_PATH\"";
    let lines = stdout(&run(&["env"]));
    let output = Command::new("sh").args(["-c", shell, "sh", &lines]).output().unwrap();
    let variables = json(&run(&["env", "--json"]));
    assert_eq!(stdout(&output), variables["CUDA_INJECTION64_PATH"].as_str().unwrap());
    assert_eq!(variables["NVTX_INJECTION64_PATH"], variables["CUDA_INJECTION64_PATH"]);
    let other = gputap().args(["env", "--json"]).env("NVTX_INJECTION64_PATH", "/opt/libcupti.so").output().unwrap();
    assert!(json(&other)["NVTX_INJECTION64_PATH"].is_null(), "{other:?}");
    assert!(stderr(&other).contains("/opt/libcupti.so, which is left"), "{other:?}");
}

#[test]
fn a_kind_that_cannot_be_had_is_said_with_what_to_do() {
    let job = TappedJob::start();
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("run");
    let wish = ["--kinds", "kernel,launch,nvtx"];
    let output = gputap()
        .args(["record", "-p", &job.pid(), "-d", "0.5", "-o", folder.to_str().unwrap()])
        .args(wish)
        .output()
        .unwrap();
    let words = stderr(&output);
    let said = |words: &str, what: &str| words.matches(what).count();
    assert_eq!(said(&words, "start it with --launches"), 1, "once: {words}");
    assert_eq!(said(&words, "NVTX_INJECTION64_PATH was not set"), 1, "once: {words}");
    let table = stdout(&gputap().args(["top", "-p", &job.pid(), "--seconds", "0.5"]).args(wish).output().unwrap());
    assert!(table.contains("note: launch events cannot be had") && table.contains("note: nvtx"), "{table}");
    let unasked = stdout(&run(&["top", "-p", &job.pid(), "--seconds", "0.5"]));
    assert!(!unasked.contains("cannot be had"), "{unasked}");
    let tap = job.tap().unwrap();
    assert_eq!(tap["unavailable"], serde_json::json!(["nvtx", "launch"]));
    assert!(tap["notes"].as_array().is_some_and(|notes| notes.len() >= 2), "{tap}");
}

#[test]
fn several_taps_off_a_terminal_are_listed() {
    let jobs = [TappedJob::start(), TappedJob::start()];
    let output = run(&["top"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let words = stderr(&output);
    assert!(jobs.iter().all(|job| words.contains(&job.pid())) && words.contains("-p PID"), "{words}");
}

#[test]
fn a_pipe_that_is_closed_is_no_failure() {
    let mut child =
        gputap().args(["demo", "--seconds", "30"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut status = None;
    eventually("it ends by itself", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success());
}

#[test]
fn clean_says_what_it_leaves() {
    // Of a process that there cannot be.
    let namespace = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata("/proc/self/ns/pid").unwrap());
    let segment = format!("/dev/shm/gputap-{namespace}-4194304-{:016x}.ring", std::process::id());
    std::fs::write(&segment, "").unwrap();
    let mut reader = Command::new("flock");
    reader.args(["--shared", &segment, "sh", "-c", "echo locked; exec cat"]);
    let mut reader = reader.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut locked = [0; 6];
    reader.stdout.as_mut().unwrap().read_exact(&mut locked).unwrap();
    let words = stdout(&run(&["clean"]));
    assert!(words.contains(&format!("left {segment}: a reader has it open")), "{words}");
    assert!(!words.contains("nothing to remove"), "{words}");
    drop(reader.stdin.take());
    reader.wait().unwrap();
    let words = stdout(&run(&["clean"]));
    // A tap that a test beside this one starts may have swept it first.
    assert!(!std::path::Path::new(&segment).exists(), "{words}");
    assert!(!words.contains(&format!("left {segment}")), "{words}");
}

#[test]
fn doctor_says_what_to_do() {
    let output = run(&["doctor"]);
    let text = stdout(&output);
    assert_eq!(output.status.success(), text.contains("no problem found"), "{text}");
    assert!(text.contains("libgputap_shim.so"), "{text}");
    assert!(json(&run(&["doctor", "--json"]))["advice"].is_array());
}
