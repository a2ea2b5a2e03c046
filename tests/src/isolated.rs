//! A test in a process of its own, under a watchdog.
//!
//! The fakes are one driver and one CUPTI a process, as the real ones are, and read their settings once: tests that use
//! them in process cannot share one.

use std::process::Command;
use std::time::Duration;

use crate::watchdog::{Finished, run_under_watchdog};

const LIMIT: Duration = Duration::from_secs(30);
const MARK: &str = "GPUTAP_ISOLATED_TEST";

/// Runs `body` as the whole of the test `name` in a child process with `env`; panics with the child's output if it
/// fails or is not over in time. `name` is the test's full name, as the test runner prints it.
pub fn isolated(name: &str, env: &[(&str, &str)], body: impl FnOnce()) {
    if let Some(finished) = in_child(name, env, body) {
        // A misspelt name runs no test, successfully.
        let passed = finished.status.success() && finished.stdout.contains("1 passed");
        assert!(passed, "{name}: {}\n{}\n{}", finished.status, finished.stdout, finished.stderr);
    }
}

/// As [`isolated`], but gives the child's end back instead of judging it. None in the child itself.
pub fn in_child(name: &str, env: &[(&str, &str)], body: impl FnOnce()) -> Option<Finished> {
    if is_child(name) {
        body();
        return None;
    }
    let mut command = child_command(name);
    command.envs(env.iter().copied());
    Some(run_under_watchdog(&mut command, LIMIT).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// The command that runs the test `name`, and nothing else, in a child process in which [`is_child`] holds. For children
/// that are talked to; the first line of stdout that is theirs begins after whatever the test runner has printed.
pub fn child_command(name: &str) -> Command {
    let exe = std::env::current_exe().unwrap_or_else(|error| panic!("this program's own path: {error}"));
    let mut command = Command::new(exe);
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(MARK, name);
    command
}

/// Whether this process was started by [`child_command`] for the test `name`.
pub fn is_child(name: &str) -> bool {
    std::env::var(MARK).is_ok_and(|mark| mark == name)
}
