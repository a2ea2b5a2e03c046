//! The live view on a terminal, from the first picture to the terminal given back.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use support::screen::{Terminal, hang_up_on};
use support::{TappedJob, eventually, installed, job};

#[test]
fn the_demo_shows_kernels_and_restores_the_terminal() {
    let terminal = Terminal::run(&["demo"], 30, 120);
    terminal.wait_for("ampere_bf16");
    terminal.wait_for("lost 0");
    terminal.press("3");
    terminal.wait_for("DIRECTION");
    terminal.press("4");
    terminal.wait_for("CRC32");
    terminal.press("8");
    terminal.wait_for("training a small GPT");
    terminal.press("1/nccl");
    terminal.wait_until("one row", |text| text.contains("nccl") && !text.contains("ampere_bf16"));
    terminal.press("\u{1b}");
    terminal.wait_for("ampere_bf16");
    terminal.press("?");
    terminal.wait_for("half of one");
    terminal.press("xq");
    assert!(terminal.ended_and_restored().success());
}

#[test]
fn it_lives_at_any_size() {
    let terminal = Terminal::run(&["demo"], 5, 20);
    terminal.wait_for("lost 0");
    for (rows, columns) in [(1, 1), (60, 200), (3, 7), (24, 80)] {
        terminal.resize(rows, columns);
    }
    terminal.wait_for("ampere_bf16");
    terminal.press("q");
    assert!(terminal.ended_and_restored().success());
}

#[test]
fn signals_restore_the_terminal() {
    for signal in [Signal::TERM, Signal::HUP] {
        let terminal = Terminal::run(&["demo"], 24, 80);
        terminal.wait_for("KERNEL");
        kill_process(Pid::from_raw(terminal.pid()).unwrap(), signal).unwrap();
        assert_eq!(terminal.ended_and_restored().code(), Some(128 + signal.as_raw()));
    }
}

#[test]
fn a_closed_terminal_ends_it() {
    let status = hang_up_on(&["demo"], "KERNEL");
    assert_eq!(status.code(), Some(128 + Signal::HUP.as_raw()), "{status}");
}

#[test]
fn an_error_leaves_the_terminal_alone() {
    let terminal = Terminal::run(&["top", "-p", "4194304"], 24, 80);
    terminal.wait_for("no process 4194304");
    assert_eq!(terminal.ended_and_restored().code(), Some(1));
}

#[test]
fn the_last_picture_stays_until_a_key() {
    let mut tapped = TappedJob::start();
    let terminal = Terminal::run(&["top", "-p", &tapped.pid()], 24, 80);
    terminal.wait_for("ampere_bf16");
    drop(tapped.child.stdin.take());
    terminal.wait_for("the process has ended");
    terminal.wait_for("ampere_bf16");
    terminal.press("q");
    assert!(terminal.ended_and_restored().success());
}

#[test]
fn a_job_started_here_has_a_terminal_and_its_exit_code_is_ours() {
    let script = "trap 'echo interrupted; exit 9' INT; test -t 1 && echo on a terminal; read line";
    let terminal = Terminal::run(&["top", "--", "sh", "-c", script], 24, 80);
    terminal.wait_for("waiting for the job to start CUDA");
    terminal.press("8");
    terminal.wait_for("on a terminal");
    terminal.press("q");
    terminal.wait_for("The job still runs");
    terminal.press("\u{1b}\u{3}");
    terminal.wait_for("the job ended: exit code 9");
    terminal.wait_for("interrupted");
    terminal.press("q");
    assert_eq!(terminal.ended_and_restored().code(), Some(9));
}

#[test]
fn a_job_may_be_ended_or_go_on_in_front() {
    let script = "echo begun; read line; echo \"heard $line\"; exit 4";
    let terminal = Terminal::run(&["top", "--", "sh", "-c", script], 24, 80);
    terminal.wait_for("waiting for the job");
    terminal.press("qe");
    assert_eq!(terminal.ended_and_restored().code(), Some(128 + 15));
    let script = "trap 'echo interrupted; exit 4' INT; echo begun; read line";
    let terminal = Terminal::run(&["top", "--", "sh", "-c", script], 24, 80);
    terminal.wait_for("waiting for the job");
    terminal.press("8");
    terminal.wait_for("begun");
    terminal.press("qf");
    terminal.wait_until("the view is gone", |text| !text.contains("Kernels"));
    terminal.press("\u{3}");
    terminal.wait_for("interrupted");
    assert_eq!(terminal.ended_and_restored().code(), Some(4));
}

#[test]
fn a_tapped_job_started_here_is_watched_to_its_end() {
    let line = job(&["seconds=1", "threads=2"]);
    let mut arguments = vec!["top", "--"];
    arguments.extend(line.iter().map(String::as_str));
    let cupti = installed().fake_cupti;
    let terminal = Terminal::run_with(&arguments, &[("GPUTAP_CUPTI", cupti.to_str().unwrap())], 30, 120);
    terminal.wait_for("ampere_bf16");
    terminal.wait_for("the job ended: exit code 0");
    terminal.press("q");
    assert!(terminal.ended_and_restored().success());
}

#[test]
fn a_dumb_terminal_gets_plain_tables() {
    let terminal = Terminal::run_with(&["demo", "--seconds", "1"], &[("TERM", "dumb")], 60, 160);
    terminal.wait_for("KERNEL");
    assert!(terminal.ended_and_restored().success());
}

#[test]
fn several_taps_are_offered_for_choice() {
    let jobs = [TappedJob::start(), TappedJob::start()];
    let terminal = Terminal::run(&["top"], 24, 80);
    terminal.wait_for("which process?");
    terminal.press("q");
    assert!(terminal.ended_and_restored().success());
    drop(jobs);
}

#[test]
fn control_c_under_record_reaches_the_job_and_completes_the_recording() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("run");
    let line = job(&["seconds=600", "threads=1", "kernels_per_second=2000"]);
    let mut arguments = vec!["record", "-o", folder.to_str().unwrap(), "--"];
    arguments.extend(line.iter().map(String::as_str));
    let cupti = installed().fake_cupti;
    let terminal = Terminal::run_with(&arguments, &[("GPUTAP_CUPTI", cupti.to_str().unwrap())], 40, 160);
    eventually("a recording", || folder.join("index.json").exists());
    terminal.press("\u{3}");
    terminal.wait_for("recorded ");
    assert_eq!(terminal.ended_and_restored().code(), Some(128 + 2));
}
