//! Which processes carry a tap: what `gputap ps` shows.

use crate::clock::Now;
use crate::process;
use crate::session::{reason, state_name, totals};
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::{Found, discover};
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
    pub cupti_version: u32,
    pub cupti_path: String,
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
    let tap = Tap {
        pid: found.pid,
        alive: found.alive,
        command: if found.alive && found.local { process::command(found.pid) } else { String::new() },
        state: String::new(),
        reason: String::new(),
        cupti_version: 0,
        cupti_path: String::new(),
        backing: String::new(),
        uptime_ns: 0,
        heartbeat_age_ns: 0,
        modules: 0,
        cubin_bytes: 0,
        attempted: 0,
        error: String::new(),
        found,
    };
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

fn read(tap: Tap, attached: &Attached, now: Now) -> Tap {
    let (status, identity) = (attached.status(), attached.identity());
    let totals = totals(attached);
    Tap {
        state: if tap.alive { state_name(&status) } else { "exited" }.to_owned(),
        reason: if tap.found.local { reason(&status) } else { elsewhere(&status) },
        cupti_version: status.cupti_version,
        cupti_path: crate::symbols::escape::for_screen(&status.cupti_path, 1024),
        backing: identity.backing.name().to_owned(),
        uptime_ns: now.monotonic_ns.saturating_sub(identity.started_ns),
        heartbeat_age_ns: now.monotonic_ns.saturating_sub(status.heartbeat_ns),
        modules: totals.modules,
        cubin_bytes: totals.cubin_bytes,
        attempted: totals.attempted,
        ..tap
    }
}

fn elsewhere(status: &Status) -> String {
    let words = "in a pid namespace that cannot be seen from here, and the pid is the one there";
    [words, &reason(status)].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}
