//! Whether the tapped process still is there.

use crate::clock::Now;
use crate::process::{self, Liveness};
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::Found;
use std::path::Path;

/// A heartbeat older than this makes us look whether the process still has the segment mapped.
const QUIET_NS: u64 = 3_000_000_000;
/// How often we look then.
const LOOK_EVERY_NS: u64 = 2_000_000_000;

/// How often /proc is asked whether the process lives: asking costs more than everything else that a step of a silent
/// tap does.
const ASK_EVERY_NS: u64 = 100_000_000;

/// Watches one process.
#[derive(Debug)]
pub(super) struct Watch {
    found: Found,
    start_ticks: u64,
    /// What /proc/PID/maps calls the segment: its file name, or the memfd's. Empty where it cannot be told.
    map_name: String,
    gone: bool,
    asked_ns: u64,
    looked_ns: u64,
}

impl Watch {
    pub fn new(found: &Found, attached: &Attached) -> Watch {
        Watch {
            found: found.clone(),
            start_ticks: attached.identity().start_ticks,
            map_name: map_name(&found.segment),
            gone: !found.alive,
            asked_ns: 0,
            looked_ns: 0,
        }
    }

    /// True once the process has ended, is another one under the same pid, or has replaced itself by exec; late by
    /// [`ASK_EVERY_NS`] at most. Never turns back.
    pub fn is_gone(&mut self, heartbeat_ns: u64, now: Now) -> bool {
        if self.gone || now.monotonic_ns.saturating_sub(self.asked_ns) < ASK_EVERY_NS {
            return self.gone;
        }
        self.asked_ns = now.monotonic_ns;
        self.gone = if self.found.local {
            process::liveness(self.found.pid, self.start_ticks) == Liveness::Gone || self.is_replaced(heartbeat_ns, now)
        } else {
            // In a pid namespace that we cannot look into: its tap is all that we have of it.
            self.looks_again(now) && !self.found.still_shows_life()
        };
        self.gone
    }

    /// exec keeps pid and start time, but no memory: the heartbeat stops, and the segment is no longer mapped.
    fn is_replaced(&mut self, heartbeat_ns: u64, now: Now) -> bool {
        let quiet = now.monotonic_ns.saturating_sub(heartbeat_ns) > QUIET_NS;
        if !quiet || self.map_name.is_empty() || !self.looks_again(now) {
            return false;
        }
        // Without permission to look, a quiet process counts as stopped, not as gone.
        std::fs::read(format!("/proc/{}/maps", self.found.pid))
            .is_ok_and(|maps| !maps.is_empty() && !String::from_utf8_lossy(&maps).contains(&self.map_name))
    }

    fn looks_again(&mut self, now: Now) -> bool {
        let due = now.monotonic_ns.saturating_sub(self.looked_ns) >= LOOK_EVERY_NS;
        if due {
            self.looked_ns = now.monotonic_ns;
        }
        due
    }
}

fn map_name(segment: &Path) -> String {
    // A memfd is found as /proc/PID/fd/N, which links to its name.
    let path = match std::fs::read_link(segment) {
        Ok(target) => target,
        Err(_) => segment.to_owned(),
    };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.trim_end_matches(" (deleted)").to_owned()
}
