//! The time, read in one place and handed to everything else.

use rustix::time::{ClockId, clock_gettime};

/// One instant on the two clocks that a tap's figures refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// CLOCK_MONOTONIC, nanoseconds: the times in the records, heartbeats, uptimes, pacing.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME, nanoseconds: wall time, for people.
    pub realtime_ns: u64,
}

impl Now {
    /// Reads both clocks.
    pub fn read() -> Now {
        Now { monotonic_ns: read_ns(ClockId::Monotonic), realtime_ns: read_ns(ClockId::Realtime) }
    }

    /// Nanoseconds of CLOCK_MONOTONIC since `earlier`, 0 if that lies in the future.
    pub fn since_ns(self, earlier: Now) -> u64 {
        self.monotonic_ns.saturating_sub(earlier.monotonic_ns)
    }
}

fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_run_forwards() {
        let first = Now::read();
        let second = Now::read();
        assert!(second.monotonic_ns >= first.monotonic_ns);
        assert_eq!(first.since_ns(Now { monotonic_ns: u64::MAX, realtime_ns: 0 }), 0);
    }
}
