//! The clock of CUPTI's records: which one it is, and how far from CLOCK_MONOTONIC.

use super::guard::Guard;
use gputap_callbacks::tapped::Tapped;
use gputap_ringbuf::{
    header::{
        counters::Counter,
        status::{ClockPoint, ClockSource, is_clock_step},
    },
    process::{monotonic_ns, realtime_ns},
};

const TRIES: usize = 5;

/// Keeps callbacks able to convert, and says which clock it is. Owned by the timer.
pub struct Clock {
    wanted: ClockSource,
    source: ClockSource,
    last: ClockPoint,
}

impl Clock {
    pub fn new(tapped: &Tapped, wanted: ClockSource) -> Clock {
        let last = read();
        tapped.clock.begin_era(last.monotonic_ns, last.ahead_ns());
        Clock { wanted, source: ClockSource::Realtime, last }
    }

    /// CUPTI has just become ours: it reads the clock that is wanted, if it can be told to.
    pub fn begin(&mut self, tapped: &Tapped, guard: &mut Guard) {
        if self.wanted == ClockSource::Monotonic {
            match guard.use_monotonic_clock() {
                Some(true) => self.change(tapped, ClockSource::Monotonic),
                Some(false) => self.end(tapped, guard),
                None => {}
            }
        }
        tapped.tap.status().set_clock_source(self.source);
    }

    /// CUPTI is about to be given back.
    pub fn end(&mut self, tapped: &Tapped, guard: &mut Guard) {
        if self.wanted == ClockSource::Monotonic {
            let _ = guard.use_wall_clock();
            self.change(tapped, ClockSource::Realtime);
        }
    }

    fn change(&mut self, tapped: &Tapped, source: ClockSource) {
        if self.source != source {
            self.source = source;
            self.last = read();
            let ahead_ns = if source == ClockSource::Monotonic { 0 } else { self.last.ahead_ns() };
            tapped.clock.begin_era(self.last.monotonic_ns, ahead_ns);
        }
    }

    /// Once a turn: notices that the wall clock was set.
    pub fn look(&mut self, tapped: &Tapped) {
        let before = std::mem::replace(&mut self.last, read());
        let ahead_ns = self.last.ahead_ns();
        let was_set = is_clock_step(tapped.clock.ahead_ns().unwrap_or(ahead_ns), ahead_ns);
        if self.source == ClockSource::Realtime && was_set {
            tapped.clock.step(before.monotonic_ns, ahead_ns);
            tapped.tap.count(Counter::ClockSteps, 1);
        }
    }

    /// The last look, for readers that want wall time beside.
    pub fn point(&self) -> ClockPoint {
        self.last
    }
}

/// The best of a few readings of CLOCK_REALTIME bracketed by two of CLOCK_MONOTONIC.
fn read() -> ClockPoint {
    let reading = |_| {
        let before = monotonic_ns();
        let realtime_ns = realtime_ns();
        let width = monotonic_ns().saturating_sub(before);
        ClockPoint { monotonic_ns: before + width / 2, realtime_ns, error_ns: width.div_ceil(2) }
    };
    (0..TRIES).map(reading).min_by_key(|p| p.error_ns).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_reading_is_sane_and_its_error_small() {
        let (one, two) = (super::read(), super::read());
        assert!(two.monotonic_ns >= one.monotonic_ns);
        assert!(one.realtime_ns > 1_600_000_000_000_000_000 && one.error_ns < 1_000_000_000);
    }
}
