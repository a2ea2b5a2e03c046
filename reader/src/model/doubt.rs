//! Times that a step of the wall clock has made doubtful.

use super::timing::{Flaw, Timing};
use gputap_ringbuf::header::status::CLOCK_DOUBT_NS;

/// Steps remembered: records come some seconds late at most.
const STEPS: usize = 8;

/// Where the clock was set, in times of CLOCK_MONOTONIC.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    spans: [(u64, u64); STEPS],
    next: usize,
}

impl Doubt {
    /// The clock was set at some instant between these two.
    pub(super) fn step(&mut self, after_ns: u64, before_ns: u64) {
        self.spans[self.next] = (after_ns.saturating_sub(CLOCK_DOUBT_NS), before_ns.saturating_add(CLOCK_DOUBT_NS));
        self.next = (self.next + 1) % STEPS;
    }

    pub(super) fn judge(&self, timing: Timing) -> Timing {
        let Timing::Good { start_ns, end_ns } = timing else { return timing };
        // The spans of no step hold 0 alone, which no good time is.
        let near = |&(from, to): &(u64, u64)| (from..=to).contains(&start_ns) || (from..=to).contains(&end_ns);
        if self.spans.iter().any(near) { Timing::Flagged(Flaw::Doubtful) } else { timing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_near_a_step_are_doubtful_and_others_are_not() {
        let mut doubt = Doubt::default();
        let good = |start_ns, end_ns| Timing::Good { start_ns, end_ns };
        assert_eq!(doubt.judge(good(1, 2)), good(1, 2));
        doubt.step(10_000_000_000, 10_010_000_000);
        for (start_ns, end_ns, is_doubtful) in [
            (8_000_000_000, 8_999_999_999, false),
            (8_000_000_000, 9_000_000_000, true),
            (11_010_000_000, 20_000_000_000, true),
            (11_010_000_001, 20_000_000_000, false),
        ] {
            let flaw = doubt.judge(good(start_ns, end_ns)).flaw();
            assert_eq!(flaw, is_doubtful.then_some(Flaw::Doubtful), "{start_ns} {end_ns}");
        }
        (0..STEPS as u64 - 1).for_each(|n| doubt.step(n << 40, n << 40));
        assert!(doubt.judge(good(10_000_000_000, 10_000_000_001)).flaw().is_some());
        doubt.step(1 << 50, 1 << 50);
        assert!(doubt.judge(good(10_000_000_000, 10_000_000_001)).flaw().is_none());
    }
}
