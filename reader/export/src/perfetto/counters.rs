//! Curves beside the events: how busy a device is, how fast it copies, how much memory is in use.

use std::collections::{BTreeMap, HashMap};

/// A point for each 10 ms in which something changes.
pub const BIN_NS: u64 = 10_000_000;
/// A copy that takes more than 100 s is spread over these; it does not exist, but may be recorded.
const BINS_MAX: u64 = 10_000;
/// Allocations that are known at a time; later ones are in no sum.
const ALLOCATIONS_MAX: usize = 1 << 18;

/// The share of time in which at least one kernel ran. A point stands for the bin that it begins.
#[derive(Debug, Default)]
pub struct Busy {
    bin: u64,
    busy_ns: u64,
    covered_ns: u64,
    given: Option<f64>,
}

impl Busy {
    /// To be called in the order of starts; what lies before the open bin is not counted twice, and not at all.
    pub fn add(&mut self, start_ns: u64, end_ns: u64, give: &mut impl FnMut(u64, f64)) {
        let start_ns = start_ns.max(self.covered_ns).max(self.bin * BIN_NS);
        if end_ns <= start_ns {
            return;
        }
        self.covered_ns = end_ns;
        self.go_to(start_ns / BIN_NS, give);
        let last = end_ns / BIN_NS;
        if last == self.bin {
            self.busy_ns += end_ns - start_ns;
            return;
        }
        let full_from = self.bin + 1;
        self.busy_ns += full_from * BIN_NS - start_ns;
        self.close(give);
        if full_from < last {
            self.point(full_from, 100.0, give);
        }
        (self.bin, self.busy_ns) = (last, end_ns - last * BIN_NS);
    }

    pub fn finish(&mut self, give: &mut impl FnMut(u64, f64)) {
        if self.covered_ns > 0 {
            self.close(give);
            self.point(self.bin + 1, 0.0, give);
        }
    }

    fn go_to(&mut self, bin: u64, give: &mut impl FnMut(u64, f64)) {
        if bin == self.bin {
            return;
        }
        if self.given.is_some() || self.busy_ns > 0 {
            self.close(give);
            if self.bin + 1 < bin {
                self.point(self.bin + 1, 0.0, give);
            }
        }
        (self.bin, self.busy_ns) = (bin, 0);
    }

    fn close(&mut self, give: &mut impl FnMut(u64, f64)) {
        self.point(self.bin, self.busy_ns as f64 * 100.0 / BIN_NS as f64, give);
    }

    fn point(&mut self, bin: u64, percent: f64, give: &mut impl FnMut(u64, f64)) {
        if self.given != Some(percent) {
            give(bin.saturating_mul(BIN_NS), percent);
            self.given = Some(percent);
        }
    }
}

/// Bytes a second, each copy's spread evenly over its time.
#[derive(Debug, Default)]
pub struct Rate {
    open: BTreeMap<u64, f64>,
    /// All bins before it have been given.
    next: u64,
    given: Option<f64>,
}

impl Rate {
    /// To be called in the order of starts.
    pub fn add(&mut self, start_ns: u64, end_ns: u64, bytes: u64, give: &mut impl FnMut(u64, f64)) {
        self.give_before(start_ns / BIN_NS, give);
        let first = (start_ns / BIN_NS).max(self.next);
        let last = (end_ns / BIN_NS).clamp(first, first.saturating_add(BINS_MAX - 1));
        let length_ns = end_ns.min((last + 1).saturating_mul(BIN_NS)).saturating_sub(start_ns);
        for bin in first..=last {
            let from_ns = start_ns.max(bin * BIN_NS);
            let to_ns = end_ns.min((bin + 1).saturating_mul(BIN_NS));
            let share = match to_ns.saturating_sub(from_ns) {
                _ if first == last => 1.0,
                part_ns => part_ns as f64 / length_ns as f64,
            };
            *self.open.entry(bin).or_default() += bytes as f64 * share;
        }
    }

    pub fn finish(&mut self, give: &mut impl FnMut(u64, f64)) {
        if let Some(last) = self.open.keys().next_back().copied() {
            self.give_before(last + 1, give);
            self.point(last + 1, 0.0, give);
        }
    }

    fn give_before(&mut self, bin: u64, give: &mut impl FnMut(u64, f64)) {
        while let Some(entry) = self.open.first_entry().filter(|entry| *entry.key() < bin) {
            let (at, bytes) = entry.remove_entry();
            if self.given.is_some() && self.next < at {
                self.point(self.next, 0.0, give);
            }
            self.point(at, bytes * 1e9 / BIN_NS as f64, give);
            self.next = at + 1;
        }
        if self.given.is_some() && self.next < bin {
            self.point(self.next, 0.0, give);
        }
        self.next = self.next.max(bin);
    }

    fn point(&mut self, bin: u64, bytes_per_s: f64, give: &mut impl FnMut(u64, f64)) {
        if self.given != Some(bytes_per_s) {
            give(bin.saturating_mul(BIN_NS), bytes_per_s);
            self.given = Some(bytes_per_s);
        }
    }
}

/// Device memory in use since the recording began, by device.
#[derive(Debug, Default)]
pub struct Memory {
    live: HashMap<u64, (u32, u64)>,
    in_use_bytes: HashMap<u32, u64>,
}

const ALLOCATION: u8 = 1;
/// `CUpti_ActivityMemoryKind`: pageable and pinned memory are the host's.
const FIRST_KIND_OF_DEVICE: u8 = 3;

impl Memory {
    /// The device and what is in use of it, if that has changed. What was allocated before the recording is not known, and
    /// its release changes nothing.
    pub fn changed(&mut self, event: &gputap_ringbuf::event::MemoryEvent) -> Option<(u32, u64)> {
        if event.memory_kind < FIRST_KIND_OF_DEVICE {
            return None;
        }
        if event.operation != ALLOCATION {
            let (device, bytes) = self.live.remove(&event.address)?;
            return Some((device, self.give_back(device, bytes)));
        }
        if self.live.len() >= ALLOCATIONS_MAX {
            return None;
        }
        // The same address again: its release was lost.
        if let Some((device, bytes)) = self.live.insert(event.address, (event.device_id, event.bytes)) {
            self.give_back(device, bytes);
        }
        let in_use_bytes = self.in_use_bytes.entry(event.device_id).or_default();
        *in_use_bytes = in_use_bytes.saturating_add(event.bytes);
        Some((event.device_id, *in_use_bytes))
    }

    fn give_back(&mut self, device: u32, bytes: u64) -> u64 {
        let in_use_bytes = self.in_use_bytes.entry(device).or_default();
        *in_use_bytes = in_use_bytes.saturating_sub(bytes);
        *in_use_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputap_ringbuf::event::MemoryEvent;

    const MS: u64 = 1_000_000;

    #[test]
    fn busy_time_is_the_union_of_kernels() {
        let mut points = Vec::new();
        let mut give = |at_ns: u64, percent: f64| points.push((at_ns / MS, percent));
        let mut busy = Busy::default();
        // 2 ms and 3 ms that overlap by 1; then one over three bins; then nothing; then one more.
        for (start, end) in [(100, 102), (101, 104), (115, 135), (161, 162)] {
            busy.add(start * MS, end * MS, &mut give);
        }
        busy.finish(&mut give);
        assert_eq!(points, [(100, 40.0), (110, 50.0), (120, 100.0), (130, 50.0), (140, 0.0), (160, 10.0), (170, 0.0)]);
    }

    #[test]
    fn an_endless_kernel_is_few_points() {
        let mut points = 0;
        let mut busy = Busy::default();
        busy.add(1, u64::MAX, &mut |_, _| points += 1);
        busy.finish(&mut |_, _| points += 1);
        assert!(points <= 4, "{points}");
        let mut rate = Rate::default();
        rate.add(1, u64::MAX, 1000, &mut |_, _| points += 1);
        rate.finish(&mut |_, _| points += 1);
        assert!(points as u64 <= BINS_MAX + 8, "{points}");
    }

    #[test]
    fn copied_bytes_are_spread_over_their_time() {
        let mut points = Vec::new();
        let mut give = |at_ns: u64, rate: f64| points.push((at_ns / MS, rate.round() as u64));
        let mut rate = Rate::default();
        rate.add(105 * MS, 115 * MS, 1_000, &mut give);
        rate.add(112 * MS, 112 * MS, 100, &mut give);
        rate.add(151 * MS, 152 * MS, 300, &mut give);
        rate.finish(&mut give);
        assert_eq!(points, [(100, 50_000), (110, 60_000), (120, 0), (150, 30_000), (160, 0)]);
    }

    #[test]
    fn memory_in_use_follows_addresses() {
        let event = |operation, address, bytes, memory_kind| MemoryEvent {
            operation,
            address,
            bytes,
            memory_kind,
            ..MemoryEvent::default()
        };
        let mut memory = Memory::default();
        assert_eq!(memory.changed(&event(1, 10, 100, 3)), Some((0, 100)));
        assert_eq!(memory.changed(&event(1, 20, 50, 5)), Some((0, 150)));
        assert_eq!(memory.changed(&event(1, 30, 50, 2)), None, "pinned memory is the host's");
        assert_eq!(memory.changed(&event(2, 99, 7, 3)), None, "allocated before the recording");
        assert_eq!(memory.changed(&event(2, 10, 0, 3)), Some((0, 50)));
        assert_eq!(memory.changed(&event(1, 20, 60, 5)), Some((0, 60)), "its release was lost");
    }
}
