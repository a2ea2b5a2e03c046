//! How often something happened and how long it took in all, by a number that says which.

use super::snapshot::Total;
use super::timing::Timing;
use std::collections::BTreeMap;

/// Keys told apart. CUPTI numbers some 800 functions of the driver and 500 of the runtime.
pub const MAX_KEYS: usize = 2048;

#[derive(Debug, Default)]
pub(super) struct Totals {
    by_key: BTreeMap<u32, Total>,
    /// Of the keys that found no room.
    other: Total,
}

impl Totals {
    pub(super) fn count(&mut self, key: u32, timing: Timing) {
        let has_room = self.by_key.len() < MAX_KEYS;
        let total = match self.by_key.get_mut(&key) {
            Some(total) => total,
            None if has_room => self.by_key.entry(key).or_default(),
            None => &mut self.other,
        };
        add(total, timing);
    }

    /// In the order of the keys; what found no room last, without one.
    pub(super) fn rows<R>(&self, row: impl Fn(Option<u32>, Total) -> R) -> Vec<R> {
        let known = self.by_key.iter().map(|(key, total)| (Some(*key), *total));
        let other = (self.other.count > 0).then_some((None, self.other));
        known.chain(other).map(|(key, total)| row(key, total)).collect()
    }
}

pub(super) fn add(total: &mut Total, timing: Timing) {
    total.count = total.count.saturating_add(1);
    match timing.duration_ns() {
        Some(duration_ns) => {
            total.total_ns = total.total_ns.saturating_add(duration_ns);
            total.max_ns = total.max_ns.max(duration_ns);
        }
        None => total.flagged = total.flagged.saturating_add(1),
    }
}
