//! How old events are when this reader gets them: from a kernel's end on the device to the step that read it.

use super::snapshot::Freshness;
use super::timing::Timing;
use crate::clock::Now;
use hdrhistogram::Histogram;

/// Older than this is not a delay but a clock that was set.
const MOST_US: u64 = 3600 * 1_000_000;

/// Ages of the kernels that ended after the reader attached: what lay in the lanes before says nothing of the delay.
#[derive(Debug)]
pub(super) struct Ages {
    since_ns: u64,
    us: Histogram<u64>,
}

impl Ages {
    /// Counts kernels that end after `since_ns` of CLOCK_MONOTONIC.
    pub fn new(since_ns: u64) -> Ages {
        let us = Histogram::new_with_bounds(1, MOST_US, 2).expect("bounds and digits that hdrhistogram allows");
        Ages { since_ns, us }
    }

    pub fn count(&mut self, timing: Timing, now: Now) {
        if let Timing::Good { end_ns, .. } = timing
            && end_ns >= self.since_ns
        {
            self.us.saturating_record((now.monotonic_ns.saturating_sub(end_ns) / 1000).max(1));
        }
    }

    /// None until a kernel has been counted.
    pub fn freshness(&self) -> Option<Freshness> {
        let at = |quantile| self.us.value_at_quantile(quantile) * 1000;
        (!self.us.is_empty()).then(|| Freshness { p50_ns: at(0.5), p95_ns: at(0.95), max_ns: self.us.max() * 1000 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(monotonic_ns: u64) -> Now {
        Now { monotonic_ns, realtime_ns: 0 }
    }

    #[test]
    fn ages_are_told_and_what_ended_before_attaching_is_left_out() {
        let mut ages = Ages::new(1_000_000_000);
        ages.count(Timing::Good { start_ns: 1, end_ns: 999_999_999 }, now(2_000_000_000));
        ages.count(Timing::Flagged(super::super::timing::Flaw::Zero), now(2_000_000_000));
        assert_eq!(ages.freshness(), None);
        for age_ms in 1..=100 {
            ages.count(Timing::Good { start_ns: 1, end_ns: 2_000_000_000 }, now(2_000_000_000 + age_ms * 1_000_000));
        }
        let freshness = ages.freshness().expect("kernels were counted");
        let near = |ns: u64, ms: u64| ns.abs_diff(ms * 1_000_000) <= ms * 20_000;
        assert!(
            near(freshness.p50_ns, 50) && near(freshness.p95_ns, 95) && near(freshness.max_ns, 100),
            "{freshness:?}"
        );
    }
}
