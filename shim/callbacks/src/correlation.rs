//! Correlation ids that are unique for the life of the process. CUPTI's have 32 bits and wrap within hours.

use std::sync::atomic::{AtomicU64, Ordering};

/// Widens ids: each is the one nearest to the newest seen, which is right as long as fewer than 2^31 calls lie between
/// two records, whatever their order.
#[derive(Default)]
pub struct Correlations {
    /// 0 before the first.
    newest: AtomicU64,
}

impl Correlations {
    /// CUPTI's id with the number of times that it has wrapped above it. 0, none, stays 0.
    pub fn widen(&self, id: u32) -> u64 {
        if id == 0 {
            return 0;
        }
        let newest = self.newest.load(Ordering::Relaxed);
        let ahead = id.wrapping_sub(newest as u32).cast_signed();
        // Older than the first one of all, before which nothing wrapped.
        let wide = newest.checked_add_signed(i64::from(ahead)).unwrap_or(u64::from(id));
        if wide > newest {
            self.newest.fetch_max(wide, Ordering::Relaxed);
        }
        wide
    }

    /// Timer thread: no ids were seen for so long that they may have wrapped unseen. What comes is told from what was.
    pub fn pass_gap(&self) {
        if self.newest.load(Ordering::Relaxed) != 0 {
            // Two: the nearest to the newest may lie one wrap before it.
            self.newest.fetch_add(2 << 32, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_stay_unique_and_in_order_across_wraps() {
        let correlations = Correlations::default();
        let calls = (1u64 << 32) - 1000..(3 << 32) + (1 << 21);
        let mut last = 0;
        for call in calls.step_by(1 << 20) {
            let wide = correlations.widen(call as u32);
            assert!(wide == 0 || wide == call, "{wide} is not {call}");
            last = wide.max(last);
        }
        assert!(last >= 3 << 32);
    }

    #[test]
    fn the_order_of_records_around_a_wrap_does_not_matter() {
        let correlations = Correlations::default();
        let around = [u32::MAX - 5, 7, u32::MAX - 1, 3, u32::MAX, 9, 1];
        let wide: Vec<u64> = around.iter().map(|id| correlations.widen(*id)).collect();
        assert_eq!(wide[0], u64::from(u32::MAX - 5));
        assert_eq!(wide[1..4], [7 + (1 << 32), u64::from(u32::MAX) - 1, 3 + (1 << 32)]);
        assert_eq!(correlations.widen(0), 0);
    }

    #[test]
    fn after_a_gap_nothing_is_met_again() {
        let correlations = Correlations::default();
        correlations.pass_gap();
        assert_eq!(correlations.widen(3), 3);
        let before: HashSet<u64> = [5, 1 << 31, u32::MAX].map(|id| correlations.widen(id)).into();
        correlations.pass_gap();
        let after = [5, 1 << 31, u32::MAX].map(|id| correlations.widen(id));
        assert!(after.iter().all(|wide| !before.contains(wide)), "{before:?} {after:?}");
    }
}
