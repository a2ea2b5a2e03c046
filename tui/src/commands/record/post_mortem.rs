//! What a process that was killed left in shared memory: a black box is read after the crash.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gputap_ringbuf::attach::Attached as Segment;
use gputap_ringbuf::discover::{self, Found};

use super::recordings::Recordings;
use super::{DRAIN_WITHIN, folder, settings};
use crate::cli::Record;
use crate::error::{Error, Result};
use crate::output::remark;
use crate::tap::Attached;
use crate::text;

pub fn run(whose: &str, arguments: &Record) -> Result<ExitCode> {
    let found = choose(whose, discover::discover())?;
    let attached = Attached::open(&found, 0)?;
    let mut recordings = Recordings::of(folder(arguments)?, settings(&arguments.keeping))?;
    remark(&format!("reading what process {} left in {}", found.pid, found.segment.display()));
    recordings.add(attached)?;
    recordings.settle(DRAIN_WITHIN, true);
    Ok(if recordings.finish() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `whose`: a pid, the path or name of a segment, or nothing where there is only one.
fn choose(whose: &str, taps: Vec<Found>) -> Result<Found> {
    let (living, mut dead): (Vec<Found>, Vec<Found>) = taps.into_iter().partition(|found| found.alive);
    let is_pid = whose.parse::<u32>();
    if let Ok(pid) = is_pid {
        if living.iter().any(|found| found.pid == pid) && !dead.iter().any(|found| found.pid == pid) {
            let what = format!("process {pid} lives: `gputap record -p {pid}` records it");
            return Err(Error::NoRemains { what, list: String::new() });
        }
        let of_pid = dead.iter().filter(|found| found.pid == pid).max_by_key(|found| started_ns(found));
        return of_pid.cloned().ok_or_else(|| none(format!("no process {pid} left anything here"), &dead));
    }
    if !whose.is_empty() {
        let named = dead.iter().find(|found| is_named(found, whose)).cloned();
        let elsewhere = || discover::at(&PathBuf::from(whose));
        return named.or_else(elsewhere).ok_or_else(|| none(format!("{whose} is no segment of a tap"), &dead));
    }
    match dead.len() {
        0 => Err(none("no process that was killed left a tap".to_owned(), &[])),
        1 => Ok(dead.remove(0)),
        _ => Err(Error::SeveralRemains { list: list(&dead) }),
    }
}

fn is_named(found: &Found, whose: &str) -> bool {
    found.segment == Path::new(whose) || found.segment.file_name().is_some_and(|name| name == whose)
}

fn started_ns(found: &Found) -> u64 {
    Segment::open(found).map_or(0, |segment| segment.identity().started_ns)
}

fn none(what: String, dead: &[Found]) -> Error {
    let list = match dead {
        [] => {
            "there is nothing of any other; a job leaves its last records if it was started with GPUTAP_START=blackbox \
               (`gputap env` has the other variables), and `gputap clean` removes them"
                .to_owned()
        }
        dead => format!("there is:\n{}", list(dead)),
    };
    Error::NoRemains { what, list }
}

fn list(dead: &[Found]) -> String {
    let row = |found: &Found| {
        let records = match Segment::open(found) {
            Ok(segment) => format!("{} records", text::count(segment.counters().attempted)),
            Err(error) => text::clip(&error.to_string(), 80),
        };
        vec![format!("  {}", found.pid), records, found.segment.display().to_string()]
    };
    text::table::aligned(&dead.iter().map(row).collect::<Vec<_>>())
}
