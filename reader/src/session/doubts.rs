//! What makes figures doubtful: records that were lost, and a wall clock that was set.

use super::lanes::Tally;
use crate::clock::Now;
use crate::model::Model;
use gputap_ringbuf::attach::Counters;
use gputap_ringbuf::event::EventKind;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::{ClockPoint, ClockSource, Status, is_clock_step};

/// What was seen at the last look.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    clock_steps: u64,
    looked_ns: u64,
    lost: u64,
    work: u64,
}

impl Doubts {
    /// `points` say when the clock was set before this reader came, as far back as they reach.
    pub fn new(status: &Status, counters: &Counters, points: &[ClockPoint], model: &mut Model, now: Now) -> Doubts {
        if status.clock_source == ClockSource::Realtime {
            steps(points).for_each(|(after_ns, before_ns)| model.clock_step(after_ns, before_ns));
        }
        let clock_steps = counters.get(Counter::ClockSteps);
        Doubts { clock_steps, looked_ns: now.monotonic_ns, ..Doubts::default() }
    }

    /// Before events are read: whether the clock was set since the last look.
    pub fn look_at_clock(&mut self, counters: &Counters, model: &mut Model, now: Now) {
        let before_ns = std::mem::replace(&mut self.looked_ns, now.monotonic_ns);
        let steps = counters.get(Counter::ClockSteps);
        if std::mem::replace(&mut self.clock_steps, steps) != steps {
            model.clock_step(before_ns, now.monotonic_ns);
        }
    }

    /// After events were read: whether any were lost, or may have been, since kernels were switched off.
    pub fn look_at_loss(&mut self, status: &Status, counters: &Counters, tally: &Tally, model: &mut Model, now: Now) {
        let by_shim = counters.lost().map(|(_, count)| count);
        let unknown = [Counter::PoolEmpty, Counter::YieldGaps].map(|counter| counters.get(counter));
        let by_reader = [tally.drained.missed(), tally.undecodable];
        let lost = by_shim.chain(unknown).chain(by_reader).fold(0, u64::saturating_add);
        let work = status.kinds & (EventKind::Kernel.bit() | EventKind::Graph.bit());
        let before = std::mem::replace(&mut self.lost, lost);
        let worked = std::mem::replace(&mut self.work, work);
        if lost > before || worked & !work != 0 {
            model.lost_records(now);
        }
    }
}

/// Between which two times the clocks jumped apart.
fn steps(points: &[ClockPoint]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let pairs = points.windows(2).filter_map(|pair| pair.first().zip(pair.last()));
    let has_step = |(one, two): &(&ClockPoint, &ClockPoint)| is_clock_step(one.ahead_ns(), two.ahead_ns());
    pairs.filter(has_step).map(|(one, two)| (one.monotonic_ns, two.monotonic_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_lies_between_the_points_that_show_it() {
        let point = |monotonic_ns, ahead_ns: u64| ClockPoint {
            monotonic_ns,
            realtime_ns: monotonic_ns.wrapping_add(ahead_ns),
            error_ns: 1,
        };
        let points = [point(10, 1 << 60), point(20, (1 << 60) + 999_999), point(30, 5_000_000), point(40, 5_000_000)];
        assert_eq!(steps(&points).collect::<Vec<_>>(), [(20, 30)]);
        assert_eq!(steps(&points[..1]).count(), 0);
        assert_eq!(steps(&[point(0, 0), point(0, u64::MAX / 2)]).count(), 1);
    }
}
