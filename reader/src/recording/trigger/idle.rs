//! For how long nothing has run on a device, from records that come late and nearly in order.

/// Records of work that has ended arrive within this, and so may fill what looks like a gap.
const SETTLED_NS: u64 = 1_000_000_000;

/// One device of one process.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// The latest end of work that was seen; 0 before any.
    busy_until_ns: u64,
    gap: Option<Gap>,
    /// The gap that began here has been told.
    told_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Gap {
    begin_ns: u64,
    end_ns: u64,
    seen_ns: u64,
}

impl Idle {
    /// Something ran.
    pub fn work(&mut self, start_ns: u64, end_ns: u64, longer_ns: u64, now_ns: u64) {
        if let Some(gap) = &mut self.gap
            && start_ns < gap.end_ns
            && end_ns > gap.begin_ns
        {
            // Of what is left on both sides the longer one.
            let (before_ns, after_ns) = (start_ns.saturating_sub(gap.begin_ns), gap.end_ns.saturating_sub(end_ns));
            if before_ns > after_ns { gap.end_ns = start_ns } else { gap.begin_ns = end_ns.min(gap.end_ns) }
        }
        let idle_ns = start_ns.saturating_sub(self.busy_until_ns);
        let is_told = self.busy_until_ns == 0 || self.busy_until_ns == self.told_ns;
        if idle_ns > longer_ns && self.gap.is_none() && !is_told {
            self.gap = Some(Gap { begin_ns: self.busy_until_ns, end_ns: start_ns, seen_ns: now_ns });
        }
        self.busy_until_ns = self.busy_until_ns.max(end_ns);
    }

    /// How long a gap is, or has been so far, once, if it is longer than `longer_ns`.
    pub fn look(&mut self, longer_ns: u64, now_ns: u64) -> Option<u64> {
        if let Some(gap) = self.gap.take_if(|gap| now_ns.saturating_sub(gap.seen_ns) >= SETTLED_NS) {
            let idle_ns = gap.end_ns - gap.begin_ns.min(gap.end_ns);
            return (idle_ns > longer_ns).then_some(idle_ns);
        }
        let idle_ns = now_ns.saturating_sub(self.busy_until_ns);
        let goes_on = self.busy_until_ns != 0 && self.busy_until_ns != self.told_ns && self.gap.is_none();
        (goes_on && idle_ns > longer_ns.saturating_add(SETTLED_NS)).then(|| {
            self.told_ns = self.busy_until_ns;
            idle_ns
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_gap_is_told_once_it_has_settled_and_once_only() {
        let mut idle = Idle::default();
        assert_eq!(idle.look(2 * S, 100 * S), None, "before any work nothing is idle");
        idle.work(100 * S, 101 * S, 2 * S, 101 * S);
        idle.work(103 * S + 500_000_000, 104 * S, 2 * S, 104 * S);
        assert_eq!(idle.look(2 * S, 104 * S), None);
        assert_eq!(idle.look(2 * S, 105 * S), Some(2_500_000_000));
        assert_eq!(idle.look(2 * S, 106 * S), None);
    }

    #[test]
    fn a_record_that_comes_late_fills_the_gap() {
        let mut idle = Idle::default();
        idle.work(S, 2 * S, 2 * S, 2 * S);
        idle.work(6 * S, 7 * S, 2 * S, 7 * S);
        // A long kernel on another stream, whose record comes after those that began later.
        idle.work(3 * S, 6 * S, 2 * S, 7 * S);
        assert_eq!(idle.look(2 * S, 8 * S), None);
    }

    #[test]
    fn idleness_that_goes_on_is_told_while_it_does_and_not_again_when_it_ends() {
        let mut idle = Idle::default();
        idle.work(S, 2 * S, 2 * S, 2 * S);
        assert_eq!(idle.look(2 * S, 5 * S), None);
        assert_eq!(idle.look(2 * S, 5 * S + 1), Some(3 * S + 1));
        assert_eq!(idle.look(2 * S, 9 * S), None);
        idle.work(9 * S, 10 * S, 2 * S, 10 * S);
        assert_eq!(idle.look(2 * S, 11 * S + 5), None);
        assert_eq!(idle.look(2 * S, 13 * S + 1), Some(3 * S + 1), "the next one");
    }
}
