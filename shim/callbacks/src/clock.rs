//! The times of CUPTI's records as CLOCK_MONOTONIC.
//!
//! CUPTI reads CLOCK_REALTIME unless it is given a callback. That clock can be set; between two times that it is, it
//! differs from CLOCK_MONOTONIC by a constant, an *era*. The timer notes eras, callbacks convert by them.

use gputap_ringbuf::{
    header::status::CLOCK_DOUBT_NS,
    process::{monotonic_ns, realtime_ns},
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What CUPTI may be given to read instead of CLOCK_REALTIME.
///
/// # Safety
/// None is needed: the type is CUPTI's.
pub unsafe extern "C" fn read_monotonic() -> u64 {
    monotonic_ns()
}

/// What CUPTI reads by itself, for when it is given back.
///
/// # Safety
/// None is needed: the type is CUPTI's.
pub unsafe extern "C" fn read_realtime() -> u64 {
    realtime_ns()
}

/// Eras kept: records reach us some seconds late at most.
const ERAS: usize = 4;
/// CUPTI's conversion may be a little off: a record may seem to end after its delivery.
const SLACK_NS: u64 = 10_000_000;

#[derive(Default)]
struct Era {
    began_monotonic_ns: AtomicU64,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, modulo 2^64.
    ahead_ns: AtomicU64,
    /// It began because the clock was set, and not because CUPTI was given another one.
    was_set: AtomicBool,
}

/// By how much the times of records differ from CLOCK_MONOTONIC, and since when. Written by the timer thread alone.
#[derive(Default)]
pub struct Clock {
    eras: [Era; ERAS],
    /// Eras ever noted.
    count: AtomicU64,
}

/// A time of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converted {
    pub monotonic_ns: u64,
    /// The clock was set near that time: it may be off by as much.
    pub doubtful: bool,
}

impl Clock {
    /// Timer thread: CUPTI reads a clock from now on that is `ahead_ns` ahead.
    pub fn begin_era(&self, monotonic_ns: u64, ahead_ns: u64) {
        self.begin(monotonic_ns, ahead_ns, false);
    }

    /// Timer thread: CUPTI's clock was set, and from some time on is `ahead_ns` ahead; before `monotonic_ns` it was not.
    pub fn step(&self, monotonic_ns: u64, ahead_ns: u64) {
        self.begin(monotonic_ns, ahead_ns, true);
    }

    fn begin(&self, monotonic_ns: u64, ahead_ns: u64, was_set: bool) {
        let count = self.count.load(Ordering::Relaxed);
        let era = &self.eras[count as usize % ERAS];
        era.began_monotonic_ns.store(monotonic_ns, Ordering::Relaxed);
        era.ahead_ns.store(ahead_ns, Ordering::Relaxed);
        era.was_set.store(was_set, Ordering::Relaxed);
        // SYNC: pairs with the Acquire load in `convert`. An era that is being written over is older than any record.
        self.count.store(count + 1, Ordering::Release);
    }

    /// The era that lasts.
    pub fn ahead_ns(&self) -> Option<u64> {
        let count = self.count.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.eras[count as usize % ERAS].ahead_ns.load(Ordering::Relaxed))
    }

    /// The time `at_ns` of a record that is delivered at `now_ns` of CLOCK_MONOTONIC. 0, unknown, stays 0.
    ///
    /// Set back, the clock shows some times twice: the newest era in which the time has already been is taken.
    pub fn convert(&self, at_ns: u64, now_ns: u64) -> Converted {
        // SYNC: pairs with the Release store in `begin_era`.
        let count = self.count.load(Ordering::Acquire);
        if at_ns == 0 || count == 0 {
            return Converted { monotonic_ns: at_ns, doubtful: false };
        }
        let oldest = count.saturating_sub(ERAS as u64);
        let mut monotonic_ns = at_ns;
        for number in (oldest..count).rev() {
            let era = &self.eras[number as usize % ERAS];
            let began_ns = era.began_monotonic_ns.load(Ordering::Relaxed);
            monotonic_ns = at_ns.wrapping_sub(era.ahead_ns.load(Ordering::Relaxed));
            if number == 0 || (began_ns..=now_ns.saturating_add(SLACK_NS)).contains(&monotonic_ns) {
                break;
            }
        }
        let doubtful = self.is_near_step(monotonic_ns, oldest, count);
        // 0 means unknown.
        Converted { monotonic_ns: monotonic_ns.max(1), doubtful }
    }

    fn is_near_step(&self, monotonic_ns: u64, oldest: u64, count: u64) -> bool {
        (oldest..count).map(|number| &self.eras[number as usize % ERAS]).any(|era| {
            let step_ns = era.began_monotonic_ns.load(Ordering::Relaxed);
            era.was_set.load(Ordering::Relaxed) && monotonic_ns.abs_diff(step_ns) < CLOCK_DOUBT_NS
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn at(clock: &Clock, at_ns: u64, now_ns: u64) -> (u64, bool) {
        let converted = clock.convert(at_ns, now_ns);
        (converted.monotonic_ns, converted.doubtful)
    }

    #[test]
    fn one_era_is_a_subtraction_and_zero_stays_zero() {
        let clock = Clock::default();
        assert_eq!(at(&clock, 77, 100), (77, false));
        clock.begin_era(10 * S, 1000 * S);
        assert_eq!(clock.ahead_ns(), Some(1000 * S));
        assert_eq!(at(&clock, 1011 * S, 12 * S), (11 * S, false));
        assert_eq!(at(&clock, 0, 12 * S), (0, false));
        // Before the first era began: the same clock.
        assert_eq!(at(&clock, 1009 * S, 12 * S), (9 * S, false));
    }

    #[test]
    fn set_forward_every_time_has_its_era() {
        let clock = Clock::default();
        clock.begin_era(10 * S, 1000 * S);
        clock.step(50 * S, 4600 * S);
        assert_eq!(at(&clock, 1040 * S, 60 * S), (40 * S, false));
        assert_eq!(at(&clock, 4655 * S, 60 * S), (55 * S, false));
        assert_eq!(at(&clock, 1049 * S + S / 2, 60 * S), (49 * S + S / 2, true));
        assert_eq!(at(&clock, 4650 * S, 60 * S), (50 * S, true));
    }

    #[test]
    fn set_back_no_time_lies_ahead() {
        let clock = Clock::default();
        clock.begin_era(10 * S, 1000 * S);
        clock.step(50 * S, 970 * S);
        // 1040 was shown at 40 s, and will be shown again at 70 s.
        assert_eq!(at(&clock, 1040 * S, 60 * S), (40 * S, false));
        assert_eq!(at(&clock, 1025 * S, 60 * S), (55 * S, false));
        assert_eq!(at(&clock, 1015 * S, 60 * S), (15 * S, false));
    }

    #[test]
    fn a_clock_that_is_set_again_and_again_is_followed() {
        let clock = Clock::default();
        for n in 0..20 {
            clock.step(n * 10 * S, n * 1000 * S);
        }
        assert_eq!(at(&clock, 19_191 * S, 195 * S), (191 * S, false));
        assert_eq!(at(&clock, 18_185 * S, 195 * S), (185 * S, false));
        assert_eq!(clock.ahead_ns(), Some(19_000 * S));
    }

    #[test]
    fn another_clock_is_no_doubt() {
        let clock = Clock::default();
        clock.begin_era(10 * S, 1000 * S);
        clock.begin_era(50 * S, 0);
        assert_eq!(at(&clock, 1049 * S + S / 2, 60 * S), (49 * S + S / 2, false));
        assert_eq!(at(&clock, 50 * S + 1, 60 * S), (50 * S + 1, false));
    }

    #[test]
    fn what_cupti_may_read_is_what_it_says() {
        // SAFETY: none is needed.
        let (monotonic, realtime) = unsafe { (read_monotonic(), read_realtime()) };
        assert!(monotonic_ns() - monotonic < 10 * S && realtime_ns() - realtime < 10 * S);
    }
}
