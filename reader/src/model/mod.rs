//! Running figures of one tap, in bounded memory whatever the tap sends.
//!
//! Fed with events and names, it hands out [`snapshot::Snapshot`]s. It does no I/O; the time is passed in.

mod copies;
mod freshness;
mod intervals;
mod kernel;
mod kernels;
pub mod ledger;
mod modules;
mod rates;
pub mod snapshot;
mod timing;

pub use kernels::{MAX_KERNELS, MAX_NAME_BYTES, MAX_NAME_SLOTS};
pub use modules::MAX_MODULES;

use crate::clock::Now;
use copies::Copies;
use freshness::Ages;
use gputap_ringbuf::event::Event;
use kernels::Kernels;
pub(crate) use modules::{Module, Modules};
use rates::Rates;
use snapshot::Snapshot;
use timing::Timing;

/// The figures since attaching.
#[derive(Debug)]
pub struct Model {
    kernels: Kernels,
    copies: Copies,
    memsets: u64,
    memset_bytes: u64,
    flagged_times: u64,
    rates: Rates,
    ages: Ages,
    pub(crate) modules: Modules,
}

impl Model {
    /// Figures from `began` on.
    pub fn new(began: Now) -> Model {
        Model {
            kernels: Kernels::default(),
            copies: Copies::default(),
            memsets: 0,
            memset_bytes: 0,
            flagged_times: 0,
            rates: Rates::default(),
            ages: Ages::new(began.monotonic_ns),
            modules: Modules::default(),
        }
    }

    /// Whether the name in this slot of the definitions has been given.
    pub fn knows_name(&self, slot: u32) -> bool {
        self.kernels.knows_name(slot)
    }

    /// Gives the mangled name of a slot. Slots with the same content count as one kernel; a slot is never renamed.
    pub fn name(&mut self, slot: u32, mangled: &[u8]) {
        self.kernels.name(slot, mangled);
    }

    /// Counts one event. `now` decides whether it still matters for the rates.
    pub fn event(&mut self, event: &Event, now: Now) {
        let timing = Timing::of(event);
        if timing.is_flagged() {
            self.flagged_times = self.flagged_times.saturating_add(1);
        }
        match event {
            Event::Kernel(kernel) => {
                self.kernels.count(kernel, timing);
                self.rates.count(kernel, timing, now);
                self.ages.count(timing, now);
            }
            Event::Memcpy(copy) => self.copies.count(copy, timing),
            Event::Memset(memset) => {
                self.memsets = self.memsets.saturating_add(1);
                self.memset_bytes = self.memset_bytes.saturating_add(memset.bytes);
            }
            _ => {}
        }
    }

    /// The figures as rows. Who the target is, how long it has run and what was lost is the session's to fill in.
    pub fn snapshot(&self, now: Now) -> Snapshot {
        let rates = self.rates.last_whole_second(now);
        Snapshot {
            kernels: self.kernels.rows(),
            copies: self.copies.rows(),
            memsets: self.memsets,
            memset_bytes: self.memset_bytes,
            modules: self.modules.rows(),
            module_counts: self.modules.counts(),
            counts: snapshot::Counts { flagged_times: self.flagged_times, ..Default::default() },
            kernels_per_s: rates.kernels_per_s,
            gpu_busy: rates.busy,
            devices: rates.devices,
            freshness: self.ages.freshness(),
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests;
