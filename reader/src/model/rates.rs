//! Kernels per second and busy share of the last whole second, from the records' own times.

use super::intervals::Intervals;
use super::snapshot::DeviceRow;
use super::timing::Timing;
use crate::clock::Now;
use gputap_ringbuf::event::KernelEvent;

const SECOND_NS: u64 = 1_000_000_000;
/// A second counts as whole once this much has passed since its end: records reach the reader late.
pub(super) const LAG_NS: u64 = 250_000_000;
/// Seconds kept: the one reported, the one under way, one ahead, and some for records that come late.
const KEPT: u64 = 8;
/// Records further ahead than this do not count: the record lies.
const AHEAD: u64 = 1;
/// Devices told apart; later ones count as the last.
const MAX_DEVICES: usize = 32;

/// The figures of one second.
#[derive(Debug, Default)]
pub(super) struct LastSecond {
    pub kernels_per_s: f64,
    /// Share in which a kernel ran on some device.
    pub busy: f64,
    pub devices: Vec<DeviceRow>,
}

#[derive(Debug, Default)]
struct Second {
    index: u64,
    devices: Vec<Device>,
}

#[derive(Debug, Default)]
struct Device {
    id: u32,
    kernels: u64,
    busy: Intervals,
}

#[derive(Debug, Default)]
pub(super) struct Rates {
    seconds: [Second; KEPT as usize],
}

impl Rates {
    /// A kernel counts in the second in which it ended, and is busy in all the kept seconds that it spans.
    pub(super) fn count(&mut self, kernel: &KernelEvent, timing: Timing, now: Now) {
        let Timing::Good { start_ns, end_ns } = timing else { return };
        let newest = now.monotonic_ns / SECOND_NS + AHEAD;
        let oldest = (newest + 1).saturating_sub(KEPT);
        let (first, last) = (start_ns / SECOND_NS, end_ns / SECOND_NS);
        if last < oldest || last > newest {
            return;
        }
        for index in first.max(oldest)..=last {
            let from = if index == first { start_ns % SECOND_NS } else { 0 };
            let to = if index == last { end_ns % SECOND_NS } else { SECOND_NS };
            let device = self.second(index).device(kernel.device_id);
            device.kernels += u64::from(index == last);
            // Both are at most a second of nanoseconds, which fits.
            device.busy.add(from as u32, to as u32);
        }
    }

    fn second(&mut self, index: u64) -> &mut Second {
        let second = &mut self.seconds[(index % KEPT) as usize];
        if second.index != index {
            *second = Second { index, ..Default::default() };
        }
        second
    }

    pub(super) fn last_whole_second(&self, now: Now) -> LastSecond {
        let index = (now.monotonic_ns.saturating_sub(LAG_NS) / SECOND_NS).saturating_sub(1);
        let second = &self.seconds[(index % KEPT) as usize];
        if second.index != index {
            return LastSecond::default();
        }
        let mut all = Intervals::default();
        second.devices.iter().for_each(|device| all.extend(&device.busy));
        let share = |busy: &Intervals| (busy.covered() as f64 / SECOND_NS as f64).min(1.0);
        let mut devices: Vec<DeviceRow> = second
            .devices
            .iter()
            .map(|device| DeviceRow {
                device_id: device.id,
                kernels_per_s: device.kernels as f64,
                busy: share(&device.busy),
            })
            .collect();
        devices.sort_by_key(|row| row.device_id);
        LastSecond { kernels_per_s: devices.iter().map(|row| row.kernels_per_s).sum(), busy: share(&all), devices }
    }
}

impl Second {
    fn device(&mut self, id: u32) -> &mut Device {
        let found = self.devices.iter().position(|device| device.id == id);
        let at = found.unwrap_or_else(|| {
            if self.devices.len() < MAX_DEVICES {
                self.devices.push(Device { id, ..Default::default() });
            }
            self.devices.len() - 1
        });
        &mut self.devices[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, nanoseconds: u64) -> u64 {
        seconds * SECOND_NS + nanoseconds
    }

    fn now(monotonic_ns: u64) -> Now {
        Now { monotonic_ns, realtime_ns: 0 }
    }

    fn count(rates: &mut Rates, device_id: u32, start_ns: u64, end_ns: u64, now_ns: u64) {
        let kernel = KernelEvent { start_ns, end_ns, device_id, ..Default::default() };
        rates.count(&kernel, Timing::Good { start_ns, end_ns }, now(now_ns));
    }

    #[test]
    fn overlapping_kernels_are_busy_once_and_devices_apart() {
        let mut rates = Rates::default();
        let t = at(100, 300_000_000);
        count(&mut rates, 0, at(99, 0), at(99, 500_000_000), t);
        count(&mut rates, 0, at(99, 250_000_000), at(99, 600_000_000), t);
        count(&mut rates, 1, at(99, 700_000_000), at(99, 800_000_000), t);
        let last = rates.last_whole_second(now(t));
        assert_eq!((last.kernels_per_s, last.busy), (3.0, 0.7));
        let devices: Vec<_> = last.devices.iter().map(|row| (row.device_id, row.kernels_per_s, row.busy)).collect();
        assert_eq!(devices, [(0, 2.0, 0.6), (1, 1.0, 0.1)]);
    }

    #[test]
    fn a_kernel_across_seconds_is_busy_in_both_and_counts_where_it_ends() {
        let mut rates = Rates::default();
        let t = at(101, 300_000_000);
        count(&mut rates, 0, at(99, 750_000_000), at(100, 250_000_000), t);
        assert_eq!(rates.last_whole_second(now(t)).busy, 0.25);
        assert_eq!(rates.last_whole_second(now(t)).kernels_per_s, 1.0);
        let before = rates.last_whole_second(now(at(100, 300_000_000)));
        assert_eq!((before.busy, before.kernels_per_s), (0.25, 0.0));
    }

    #[test]
    fn a_quiet_second_is_zero_and_a_second_under_way_is_not_reported() {
        let mut rates = Rates::default();
        count(&mut rates, 0, at(99, 0), at(99, 1000), at(99, 2000));
        assert_eq!(rates.last_whole_second(now(at(99, 900_000_000))).kernels_per_s, 0.0);
        assert_eq!(rates.last_whole_second(now(at(100, LAG_NS))).kernels_per_s, 1.0);
        assert_eq!(rates.last_whole_second(now(at(101, LAG_NS))).kernels_per_s, 0.0);
    }

    #[test]
    fn records_that_lie_about_the_time_cost_nothing() {
        let mut rates = Rates::default();
        let t = at(100, 300_000_000);
        count(&mut rates, 0, 1, u64::MAX, t);
        count(&mut rates, 0, u64::MAX - 1, u64::MAX, t);
        count(&mut rates, 0, 1, 2, t);
        count(&mut rates, 0, 1, at(99, 500_000_000), t);
        let last = rates.last_whole_second(now(t));
        assert_eq!((last.kernels_per_s, last.busy), (1.0, 0.5));
        for device in 0..1000 {
            count(&mut rates, device, at(99, 0), at(99, 10), t);
        }
        assert_eq!(rates.last_whole_second(now(t)).devices.len(), MAX_DEVICES);
        assert_eq!(rates.last_whole_second(now(t)).kernels_per_s, 1001.0);
    }
}
