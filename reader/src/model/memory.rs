//! Memory in use, from the records of allocations and releases.

use super::early::Early;
use super::names::memory_kind;
use super::snapshot::{MemoryInUse, MemoryRow};
use gputap_cupti::constants::{ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE};
use gputap_ringbuf::event::MemoryEvent;
use std::collections::{BTreeMap, HashMap};

/// Allocations held at a time; later ones are counted, and are in no sum.
pub const MAX_ALLOCATIONS: usize = 1 << 17;
/// Releases that wait for their allocation, which may be read after them.
const MAX_EARLY: usize = 4096;
/// Devices with kinds of memory told apart.
const MAX_ROWS: usize = 256;

/// A device, and a `CUpti_ActivityMemoryKind`.
type Place = (u32, u8);

#[derive(Clone, Copy, Debug)]
struct Allocation {
    place: Place,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Use {
    in_use_bytes: u64,
    high_water_bytes: u64,
    allocations: u64,
    releases: u64,
}

/// Memory in use by place, with its high water.
#[derive(Debug)]
pub struct Memory {
    /// By address: addresses are unique in a process, whatever the device.
    live: HashMap<u64, Allocation>,
    /// Releases of addresses that nothing is known of, by the time of the release.
    early: Early<u64, u64>,
    places: BTreeMap<Place, Use>,
    unknown_releases: u64,
    missed_releases: u64,
    not_tracked: u64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            live: HashMap::new(),
            early: Early::new(MAX_EARLY),
            places: BTreeMap::new(),
            unknown_releases: 0,
            missed_releases: 0,
            not_tracked: 0,
        }
    }
}

impl Memory {
    /// Counts an allocation or a release.
    pub fn count(&mut self, event: &MemoryEvent) {
        match u32::from(event.operation) {
            ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION => self.allocate(event),
            ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE => self.release(event),
            _ => {}
        }
    }

    fn allocate(&mut self, event: &MemoryEvent) {
        if self.live.contains_key(&event.address) {
            // What lay there must have been released, in a record that was lost.
            self.missed_releases = self.missed_releases.saturating_add(1);
            self.end(event.address);
        }
        let place = (event.device_id, event.memory_kind);
        let has_place = self.places.contains_key(&place) || self.places.len() < MAX_ROWS;
        if !has_place || self.live.len() >= MAX_ALLOCATIONS {
            self.not_tracked = self.not_tracked.saturating_add(1);
            return;
        }
        let used = self.places.entry(place).or_default();
        used.allocations = used.allocations.saturating_add(1);
        used.in_use_bytes = used.in_use_bytes.saturating_add(event.bytes);
        used.high_water_bytes = used.high_water_bytes.max(used.in_use_bytes);
        self.live.insert(event.address, Allocation { place, bytes: event.bytes });
        if let Some(released_ns) = self.early.take(&event.address) {
            // Of this allocation, read before it, or of an earlier one that nobody knows.
            if released_ns >= event.time_ns {
                self.unknown_releases = self.unknown_releases.saturating_sub(1);
                self.end(event.address);
            }
        }
    }

    fn release(&mut self, event: &MemoryEvent) {
        if !self.end(event.address) {
            self.unknown_releases = self.unknown_releases.saturating_add(1);
            self.early.hold(event.address, event.time_ns);
        }
    }

    fn end(&mut self, address: u64) -> bool {
        let Some(allocation) = self.live.remove(&address) else { return false };
        if let Some(used) = self.places.get_mut(&allocation.place) {
            used.in_use_bytes = used.in_use_bytes.saturating_sub(allocation.bytes);
            used.releases = used.releases.saturating_add(1);
        }
        true
    }

    /// From now on the high water is that of what follows.
    pub fn begin_high_water(&mut self) {
        self.places.values_mut().for_each(|used| used.high_water_bytes = used.in_use_bytes);
    }

    pub fn in_use(&self) -> MemoryInUse {
        let row = |(place, used): (&Place, &Use)| MemoryRow {
            device_id: place.0,
            kind: memory_kind(place.1).to_owned(),
            in_use_bytes: used.in_use_bytes,
            high_water_bytes: used.high_water_bytes,
            allocations: used.allocations,
            releases: used.releases,
        };
        MemoryInUse {
            rows: self.places.iter().map(row).collect(),
            unknown_releases: self.unknown_releases,
            missed_releases: self.missed_releases,
            not_tracked: self.not_tracked,
            ..MemoryInUse::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALLOCATION: u8 = 1;
    const RELEASE: u8 = 2;
    const DEVICE: u8 = 3;

    fn event(operation: u8, address: u64, bytes: u64, time_ns: u64) -> MemoryEvent {
        MemoryEvent { operation, address, bytes, time_ns, memory_kind: DEVICE, ..Default::default() }
    }

    fn device(memory: &Memory) -> MemoryRow {
        memory.in_use().rows.first().cloned().unwrap_or_default()
    }

    #[test]
    fn what_is_released_is_in_use_no_more_and_the_high_water_stays() {
        let mut memory = Memory::default();
        memory.count(&event(ALLOCATION, 0x1000, 100, 1));
        memory.count(&event(ALLOCATION, 0x2000, 50, 2));
        memory.count(&event(RELEASE, 0x1000, 100, 3));
        memory.count(&event(ALLOCATION, 0x1000, 7, 4));
        let row = device(&memory);
        assert_eq!((row.kind.as_str(), row.in_use_bytes, row.high_water_bytes), ("device", 57, 150));
        assert_eq!((row.allocations, row.releases, memory.in_use().unknown_releases), (3, 1, 0));
    }

    #[test]
    fn devices_and_kinds_are_told_apart() {
        let mut memory = Memory::default();
        memory.count(&MemoryEvent { device_id: 1, ..event(ALLOCATION, 1, 10, 1) });
        memory.count(&MemoryEvent { memory_kind: 2, ..event(ALLOCATION, 2, 20, 1) });
        // A release says nothing of where it was that need be right.
        memory.count(&MemoryEvent { device_id: 7, memory_kind: 0, ..event(RELEASE, 1, 10, 2) });
        let rows: Vec<_> =
            memory.in_use().rows.into_iter().map(|row| (row.device_id, row.kind, row.in_use_bytes)).collect();
        assert_eq!(rows, [(0, "pinned".to_owned(), 20), (1, "device".to_owned(), 0)]);
    }

    #[test]
    fn a_release_that_is_read_first_finds_its_allocation() {
        let mut memory = Memory::default();
        memory.count(&event(RELEASE, 0x1000, 100, 9));
        assert_eq!(memory.in_use().unknown_releases, 1);
        memory.count(&event(ALLOCATION, 0x1000, 100, 5));
        assert_eq!((device(&memory).in_use_bytes, memory.in_use().unknown_releases), (0, 0));
        // One of before the reader came says nothing of a later allocation at its address.
        memory.count(&event(RELEASE, 0x1000, 100, 10));
        memory.count(&event(ALLOCATION, 0x1000, 100, 11));
        assert_eq!((device(&memory).in_use_bytes, memory.in_use().unknown_releases), (100, 1));
    }

    #[test]
    fn an_address_that_is_given_out_again_was_released_unseen() {
        let mut memory = Memory::default();
        memory.count(&event(ALLOCATION, 0x1000, 100, 1));
        memory.count(&event(ALLOCATION, 0x1000, 30, 2));
        assert_eq!((device(&memory).in_use_bytes, memory.in_use().missed_releases), (30, 1));
    }

    #[test]
    fn more_allocations_than_there_is_room_for_are_counted() {
        let mut memory = Memory::default();
        let extra = 3;
        (0..(MAX_ALLOCATIONS as u64 + extra)).for_each(|n| memory.count(&event(ALLOCATION, n + 1, 1, n)));
        assert_eq!((device(&memory).in_use_bytes, memory.in_use().not_tracked), (MAX_ALLOCATIONS as u64, extra));
        (0..(MAX_ALLOCATIONS as u64)).for_each(|n| memory.count(&event(RELEASE, n + 1, 1, n)));
        assert_eq!(device(&memory).in_use_bytes, 0);
    }

    proptest! {
        /// With everything delivered, in any order that keeps an address' own order or turns a pair round, the sum is that
        /// of a model that keeps every byte.
        #[test]
        fn the_sum_is_what_a_naive_model_says(steps in proptest::collection::vec((0u64..30, 1u64..1 << 40, any::<bool>()), 0..200)) {
            let mut memory = Memory::default();
            let mut naive: HashMap<u64, u64> = HashMap::new();
            for (time_ns, &(address, bytes, swapped)) in (1..).step_by(2).zip(&steps) {
                if naive.remove(&address).is_some() {
                    memory.count(&event(RELEASE, address, 0, time_ns));
                } else if swapped {
                    memory.count(&event(RELEASE, address, bytes, time_ns + 1));
                    memory.count(&event(ALLOCATION, address, bytes, time_ns));
                } else {
                    naive.insert(address, bytes);
                    memory.count(&event(ALLOCATION, address, bytes, time_ns));
                }
            }
            prop_assert_eq!(device(&memory).in_use_bytes, naive.values().sum::<u64>());
            prop_assert_eq!(memory.in_use().unknown_releases, 0);
        }
    }
}
