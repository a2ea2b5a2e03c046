//! Pairs of readings of the two clocks: CUPTI's timestamps are of CLOCK_REALTIME, which can be set.

use gputap_ringbuf::{
    header::status::ClockPoint,
    process::{monotonic_ns, realtime_ns},
};

const TRIES: usize = 5;

/// The best of a few readings of CLOCK_REALTIME bracketed by two of CLOCK_MONOTONIC.
pub fn read() -> ClockPoint {
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
