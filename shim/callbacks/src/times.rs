//! The times of records: converted, and counted where they are not what they should be. Never mended: a reader sees
//! what CUPTI gave.

use crate::tapped::Tapped;
use gputap_ringbuf::header::counters::Counter;

/// Converts the times of one buffer's records.
#[derive(Clone, Copy)]
pub struct Times<'a> {
    tapped: &'a Tapped,
    delivered_ns: u64,
}

impl<'a> Times<'a> {
    /// The buffer was delivered at `delivered_ns` of CLOCK_MONOTONIC.
    pub fn new(tapped: &'a Tapped, delivered_ns: u64) -> Times<'a> {
        Times { tapped, delivered_ns }
    }

    pub fn at(&self, at_ns: u64) -> u64 {
        if at_ns == 0 {
            self.tapped.tap.count(Counter::ZeroTimes, 1);
        }
        let [time_ns] = self.converted([at_ns]);
        time_ns
    }

    /// Start and end.
    pub fn span(&self, start_ns: u64, end_ns: u64) -> (u64, u64) {
        let flaw = match () {
            () if end_ns == 0 => Some(Counter::Unfinished),
            () if start_ns == 0 => Some(Counter::ZeroTimes),
            () if end_ns < start_ns => Some(Counter::NegativeTimes),
            () => None,
        };
        if let Some(flaw) = flaw {
            self.tapped.tap.count(flaw, 1);
        }
        self.converted([start_ns, end_ns]).into()
    }

    /// The times of one record.
    fn converted<const N: usize>(&self, times_ns: [u64; N]) -> [u64; N] {
        let converted = times_ns.map(|at_ns| self.tapped.clock.convert(at_ns, self.delivered_ns));
        if converted.iter().any(|time| time.doubtful) {
            self.tapped.tap.count(Counter::ClockDoubtful, 1);
        }
        converted.map(|time| time.monotonic_ns)
    }
}
