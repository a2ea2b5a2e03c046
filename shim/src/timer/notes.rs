//! What is worth knowing of this tap and keeps nothing else from working: features that are missing, and why.

use crate::{library::Cupti, nvtx, settings::Settings};
use gputap_callbacks::tapped::Tapped;
use gputap_cupti::version;
use gputap_ringbuf::{
    event::{ALL_KINDS, EventKind},
    header::status::lack_note,
};

/// Lines for people, and the kinds that can never be recorded here.
pub struct Notes {
    lines: Vec<String>,
    unavailable: u64,
    cupti_version: u32,
}

impl Notes {
    pub fn of(cupti: &Cupti, settings: &Settings) -> Notes {
        let mut notes = Notes { lines: cupti.notes.clone(), unavailable: 0, cupti_version: cupti.version };
        if cupti.calls.activity.is_none() {
            // Told by the library's own line.
            notes.unavailable |= ALL_KINDS & !EventKind::Launch.bit();
        }
        if !settings.launches {
            notes.lack(EventKind::Launch, "set GPUTAP_LAUNCHES=1 for the job, or start it with --launches");
        }
        if let Some(reason) = nvtx::is_missing() {
            notes.lack(EventKind::Marker, reason);
        }
        notes
    }

    pub fn lack(&mut self, kind: EventKind, what_to_do: &str) {
        if self.unavailable & kind.bit() != 0 {
            return;
        }
        self.unavailable |= kind.bit();
        self.lines.push(lack_note(kind, what_to_do));
    }

    pub fn unavailable(&self) -> u64 {
        self.unavailable
    }

    /// The driver knows CUDA up to `driver_version` (12040 for 12.4); gives whether CUPTI is of a newer one.
    pub fn compare_with_driver(&mut self, driver_version: u32) -> bool {
        let Some((major, minor)) = version::cuda_version_of(self.cupti_version) else { return false };
        // Within a major version they go together.
        let is_newer = major > driver_version / 1000;
        if is_newer {
            let (of, to) = (driver_version / 1000, driver_version % 1000 / 10);
            self.lines.push(format!(
                "this libcupti is of CUDA {major}.{minor}, and the driver knows CUDA {of}.{to}: records may be missing"
            ));
        }
        is_newer
    }

    pub fn say(&self, tapped: &Tapped) {
        tapped.tap.status().set_notes(self.unavailable, &self.lines.join("\n"));
    }
}
