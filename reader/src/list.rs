//! Which processes carry a tap: what `gputap ps` shows.

use crate::clock::Now;
use crate::model::snapshot::{Clock, Flags};
use crate::process;
use crate::session::{
    clock, clock_point, cuda_version, is_trouble, kind_names, of_the_tap, reason, state_name, totals,
};
use crate::symbols::escape::for_screen;
use gputap_ringbuf::attach::{Attached, Counters};
use gputap_ringbuf::discover::{Found, discover};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::Status;
use serde::Serialize;

/// One tap, readable or not.
#[derive(Clone, Debug, Serialize)]
pub struct Tap {
    #[serde(skip)]
    pub found: Found,
    /// As the reader sees it.
    pub pid: u32,
    pub alive: bool,
    /// Empty for a process that has ended.
    pub command: String,
    /// As in [`crate::model::snapshot::Target`]; empty where the segment could not be read.
    pub state: String,
    pub reason: String,
    /// The reason is not what somebody wanted: something is to be done.
    pub is_trouble: bool,
    pub cupti_version: u32,
    pub cupti_path: String,
    /// As in [`crate::model::snapshot::Target`], as are the lists that follow.
    pub driver_version: String,
    pub kinds: Vec<&'static str>,
    pub unavailable: Vec<&'static str>,
    pub notes: Vec<String>,
    /// Of the notes, those that matter whatever one asks for.
    #[serde(skip)]
    pub general_notes: Vec<String>,
    pub clock: Clock,
    /// Times that cannot be right, as the shim counted them since it started.
    pub flags: Flags,
    /// `shm` or `memfd`.
    pub backing: String,
    pub uptime_ns: u64,
    pub heartbeat_age_ns: u64,
    /// Module loads seen.
    pub modules: u64,
    /// Bytes of the distinct cubins kept.
    pub cubin_bytes: u64,
    /// Records that reached the shim.
    pub attempted: u64,
    /// Why the segment could not be read, and what to do; empty where it could.
    pub error: String,
}

/// Every tap that can be seen, also those of ended processes and those that cannot be read, ordered by pid.
pub fn list(now: Now) -> Vec<Tap> {
    discover().into_iter().map(|found| look(found, now)).collect()
}

fn look(found: Found, now: Now) -> Tap {
    let tap = unread(found);
    match Attached::open(&tap.found) {
        Ok(attached) => {
            let read = read(tap, &attached, now);
            // What a cut segment says is zeros.
            let cut = if attached.is_cut() { "the segment was cut while it was read" } else { "" };
            Tap { error: cut.to_owned(), ..read }
        }
        Err(error) => Tap { error: error.to_string(), ..tap },
    }
}

fn unread(found: Found) -> Tap {
    Tap {
        pid: found.pid,
        alive: found.alive,
        command: if found.alive && found.local { process::command(found.pid) } else { String::new() },
        state: String::new(),
        reason: String::new(),
        is_trouble: false,
        cupti_version: 0,
        cupti_path: String::new(),
        driver_version: String::new(),
        kinds: Vec::new(),
        unavailable: Vec::new(),
        notes: Vec::new(),
        general_notes: Vec::new(),
        clock: Clock::default(),
        flags: Flags::default(),
        backing: String::new(),
        uptime_ns: 0,
        heartbeat_age_ns: 0,
        modules: 0,
        cubin_bytes: 0,
        attempted: 0,
        error: String::new(),
        found,
    }
}

fn read(tap: Tap, attached: &Attached, now: Now) -> Tap {
    let (status, identity, counters) = (attached.status(), attached.identity(), attached.counters());
    let totals = totals(&counters);
    Tap {
        state: if tap.alive { state_name(&status) } else { "exited" }.to_owned(),
        reason: if tap.found.local { reason(&status) } else { elsewhere(&status) },
        is_trouble: is_trouble(&status),
        cupti_version: status.cupti_version,
        cupti_path: for_screen(&status.cupti_path, 1024),
        driver_version: cuda_version(status.driver_version),
        kinds: kind_names(status.kinds),
        unavailable: kind_names(status.unavailable),
        notes: status.notes.iter().map(|note| for_screen(note, 1024)).collect(),
        general_notes: of_the_tap(&status),
        clock: clock(&status, &counters, attached.clock().map(clock_point)),
        flags: flags(&counters),
        backing: identity.backing.name().to_owned(),
        uptime_ns: now.monotonic_ns.saturating_sub(identity.started_ns),
        heartbeat_age_ns: now.monotonic_ns.saturating_sub(status.heartbeat_ns),
        modules: totals.modules,
        cubin_bytes: totals.cubin_bytes,
        attempted: totals.attempted,
        ..tap
    }
}

fn flags(counters: &Counters) -> Flags {
    Flags {
        unfinished: counters.get(Counter::Unfinished),
        zero: counters.get(Counter::ZeroTimes),
        negative: counters.get(Counter::NegativeTimes),
        doubtful: counters.get(Counter::ClockDoubtful),
    }
}

fn elsewhere(status: &Status) -> String {
    let words = "in a pid namespace that cannot be seen from here, and the pid is the one there";
    [words, &reason(status)].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}
