//! Which kinds CUPTI records, brought in line with what is wanted.

use super::guard::{Failed, Guard};
use gputap_cupti::constants::{
    ACTIVITY_KIND_CONCURRENT_KERNEL, ACTIVITY_KIND_DRIVER, ACTIVITY_KIND_GRAPH_TRACE, ACTIVITY_KIND_MARKER,
    ACTIVITY_KIND_MEMCPY, ACTIVITY_KIND_MEMCPY2, ACTIVITY_KIND_MEMORY_POOL, ACTIVITY_KIND_MEMORY2,
    ACTIVITY_KIND_MEMSET, ACTIVITY_KIND_OVERHEAD, ACTIVITY_KIND_RUNTIME, ACTIVITY_KIND_SYNCHRONIZATION,
};
use gputap_ringbuf::event::EventKind;

/// CUPTI's kinds behind one of ours, the first without which there is no such kind. None for launches, which a callback
/// tells of.
fn activities(kind: EventKind) -> &'static [u32] {
    match kind {
        EventKind::Kernel => &[ACTIVITY_KIND_CONCURRENT_KERNEL],
        EventKind::Memcpy => &[ACTIVITY_KIND_MEMCPY, ACTIVITY_KIND_MEMCPY2],
        EventKind::Memset => &[ACTIVITY_KIND_MEMSET],
        EventKind::Sync => &[ACTIVITY_KIND_SYNCHRONIZATION],
        EventKind::Graph => &[ACTIVITY_KIND_GRAPH_TRACE],
        EventKind::Memory => &[ACTIVITY_KIND_MEMORY2],
        EventKind::Pool => &[ACTIVITY_KIND_MEMORY_POOL],
        EventKind::Overhead => &[ACTIVITY_KIND_OVERHEAD],
        EventKind::Runtime => &[ACTIVITY_KIND_RUNTIME],
        EventKind::Driver => &[ACTIVITY_KIND_DRIVER],
        EventKind::Marker => &[ACTIVITY_KIND_MARKER],
        EventKind::Launch => &[],
    }
}

/// Switching copies off and on in a running job makes CUPTI's worker thread free a record's bookkeeping twice (seen on
/// 13.0; MEASUREMENTS.md). Kernels were switched thousands of times. Nothing else was tried, and so it stays on, wanted or
/// not, once it has been wanted. Graphs would stay in any case: switched off, they do not bring their kernels back.
fn is_switched_off(kind: EventKind) -> bool {
    kind == EventKind::Kernel
}

/// What is on.
#[derive(Default)]
pub struct Kinds {
    /// Recorded: wanted, and on in CUPTI.
    recorded: u64,
    /// On in CUPTI.
    on: u64,
    /// Have been on: CUPTI may hold records of them.
    were_on: u64,
    /// CUPTI gave an error; not asked for again until nothing is wanted any more.
    refused: u64,
}

impl Kinds {
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Something has been on: CUPTI may hold records, also of what has been switched off since and still runs.
    pub fn any_was_on(&self) -> bool {
        self.were_on != 0
    }

    pub fn any_refused(&self) -> bool {
        self.refused != 0
    }

    /// CUPTI was taken down, or is someone else's: nothing is on.
    pub fn forget(&mut self) {
        *self = Kinds::default();
    }

    /// What will be recorded if `wanted` is. Graphs that stay on hide their kernels: that is to be seen.
    pub fn possible(&self, wanted: u64) -> u64 {
        let possible = wanted & !self.refused;
        let hides_kernels = possible & EventKind::Kernel.bit() != 0;
        if hides_kernels { possible | self.on & EventKind::Graph.bit() } else { possible }
    }

    /// Nothing is wanted: what was refused may be asked for again.
    pub fn forgive(&mut self) {
        self.refused = 0;
    }

    /// Switches; gives what failed. What cannot be switched on is not recorded, and the rest is.
    pub fn switch_to(&mut self, guard: &mut Guard, wanted: u64) -> Vec<Failed> {
        let mut failures = Vec::new();
        for kind in EventKind::in_mask(self.on & !wanted).filter(|kind| is_switched_off(*kind)) {
            failures.extend(activities(kind).iter().find_map(|activity| guard.disable(*activity).err()));
            self.on &= !kind.bit();
        }
        for kind in EventKind::in_mask(wanted & !self.on) {
            let failed: Vec<_> = activities(kind).iter().map(|activity| guard.enable(*activity).err()).collect();
            // Without the first there is no such kind; without another, less of it.
            match failed.first() {
                Some(Some(_)) => self.refused |= kind.bit(),
                _ => self.on |= kind.bit(),
            }
            failures.extend(failed.into_iter().flatten());
        }
        self.were_on |= self.on;
        self.recorded = self.possible(wanted);
        failures
    }
}
