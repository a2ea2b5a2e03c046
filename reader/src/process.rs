//! What /proc says about a process. Every answer may be missing: processes end while one looks.

use std::path::PathBuf;

/// Longest command line kept, in bytes.
const COMMAND_MAX_BYTES: usize = 4096;

/// Whether a process still is the one that it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    Alive,
    /// No such process, a zombie, or another process under a recycled pid.
    Gone,
}

/// Looks whether `pid` still is the process that started at `start_time_ticks` (field 22 of /proc/PID/stat).
pub fn liveness(pid: u32, start_time_ticks: u64) -> Liveness {
    match stat(pid) {
        Some(stat) if stat.start_time_ticks != start_time_ticks => Liveness::Gone,
        // A leader that called pthread_exit shows as a zombie while its threads go on.
        Some(stat) if stat.dead && stat.threads <= 1 => Liveness::Gone,
        Some(_) => Liveness::Alive,
        None => Liveness::Gone,
    }
}

/// The arguments of a process, joined by blanks, control characters escaped; its short name in brackets where the
/// arguments cannot be had; empty where nothing can.
pub fn command(pid: u32) -> String {
    let Ok(bytes) = std::fs::read(proc_path(pid, "cmdline")) else { return String::new() };
    let arguments: Vec<_> = bytes.split(|&b| b == 0).filter(|a| !a.is_empty()).map(String::from_utf8_lossy).collect();
    let joined = if arguments.is_empty() {
        let name = std::fs::read_to_string(proc_path(pid, "comm")).unwrap_or_default();
        format!("[{}]", name.trim_end())
    } else {
        arguments.join(" ")
    };
    crate::symbols::escape::for_screen(&joined, COMMAND_MAX_BYTES)
}

/// Whether the process has mapped a file of this name; false where /proc does not say.
pub fn maps_library(pid: u32, file_name: &str) -> bool {
    let Ok(maps) = std::fs::read_to_string(proc_path(pid, "maps")) else { return false };
    maps.lines().any(|line| line.rsplit('/').next() == Some(file_name))
}

/// The start time of a process in clock ticks since boot, field 22 of /proc/PID/stat.
pub fn start_time_ticks(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start_time_ticks)
}

struct Stat {
    dead: bool,
    threads: u64,
    start_time_ticks: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&std::fs::read_to_string(proc_path(pid, "stat")).ok()?)
}

/// The name in parentheses may hold blanks and parentheses itself, so the fields are counted after the last one.
fn parse_stat(text: &str) -> Option<Stat> {
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
    let state = *fields.first()?;
    Some(Stat {
        dead: matches!(state, "Z" | "X" | "x"),
        threads: fields.get(17)?.parse().ok()?,
        start_time_ticks: fields.get(19)?.parse().ok()?,
    })
}

fn proc_path(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_another_start_time_is_another_process() {
        let pid = std::process::id();
        let start = start_time_ticks(pid).expect("this process has a stat file");
        assert_eq!(liveness(pid, start), Liveness::Alive);
        assert_eq!(liveness(pid, start + 1), Liveness::Gone);
        assert!(!command(pid).is_empty());
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = "7 (a) b) Z 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 3 0 4711 0 0";
        let stat = parse_stat(line).expect("a well formed line");
        assert!(stat.dead);
        assert_eq!((stat.threads, stat.start_time_ticks), (3, 4711));
        assert!(parse_stat("7 (a").is_none());
        assert!(parse_stat("").is_none());
    }

    #[test]
    fn a_child_that_ended_is_gone_before_it_is_reaped() {
        let mut child = std::process::Command::new("true").spawn().expect("true runs");
        let start = start_time_ticks(child.id()).expect("unreaped children have a stat file");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while liveness(child.id(), start) == Liveness::Alive {
            assert!(std::time::Instant::now() < deadline, "the child did not end");
            std::thread::yield_now();
        }
        child.wait().expect("the child can be reaped");
    }
}
