//! Pools of stream-ordered memory, from the records of their making, trimming and end.

use super::snapshot::PoolRow;
use gputap_ringbuf::event::PoolEvent;
use std::collections::BTreeMap;

/// Pools remembered at a time; later ones are counted.
pub const MAX_POOLS: usize = 256;
/// `CUpti_ActivityMemoryPoolOperationType`.
const DESTROYED: u8 = 2;
const TRIMMED: u8 = 3;

#[derive(Debug, Default)]
pub(super) struct Pools {
    /// By device and address.
    pools: BTreeMap<(u32, u64), PoolRow>,
    pub not_tracked: u64,
}

impl Pools {
    pub(super) fn count(&mut self, event: &PoolEvent) {
        let key = (event.device_id, event.address);
        if !self.pools.contains_key(&key) && self.pools.len() >= MAX_POOLS && !self.forget_an_ended_one() {
            self.not_tracked = self.not_tracked.saturating_add(1);
            return;
        }
        let row = self.pools.entry(key).or_default();
        row.device_id = event.device_id;
        row.address = event.address;
        row.is_alive = event.operation != DESTROYED;
        row.release_threshold_bytes = event.release_threshold_bytes;
        row.trims = row.trims.saturating_add(u64::from(event.operation == TRIMMED));
        if row.is_alive {
            (row.size_bytes, row.used_bytes) = (event.size_bytes, event.used_bytes);
        } else {
            (row.size_bytes, row.used_bytes) = (0, 0);
        }
        row.high_water_bytes = row.high_water_bytes.max(event.size_bytes);
    }

    fn forget_an_ended_one(&mut self) -> bool {
        let ended = self.pools.iter().find(|(_, row)| !row.is_alive).map(|(key, _)| *key);
        ended.is_some_and(|key| self.pools.remove(&key).is_some())
    }

    pub(super) fn rows(&self) -> Vec<PoolRow> {
        self.pools.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(operation: u8, address: u64, size_bytes: u64) -> PoolEvent {
        PoolEvent { operation, address, size_bytes, used_bytes: size_bytes / 2, ..Default::default() }
    }

    #[test]
    fn a_pool_is_as_its_latest_record_says_and_its_high_water_stays() {
        let mut pools = Pools::default();
        pools.count(&event(1, 0x10, 100));
        pools.count(&event(TRIMMED, 0x10, 40));
        let row = pools.rows().remove(0);
        assert_eq!((row.size_bytes, row.used_bytes, row.high_water_bytes, row.trims), (40, 20, 100, 1));
        pools.count(&event(DESTROYED, 0x10, 40));
        let row = pools.rows().remove(0);
        assert_eq!((row.size_bytes, row.high_water_bytes, row.is_alive), (0, 100, false));
    }

    #[test]
    fn pools_beyond_their_room_are_counted_and_ended_ones_make_room() {
        let mut pools = Pools::default();
        (0..MAX_POOLS as u64 + 2).for_each(|address| pools.count(&event(1, address, 1)));
        assert_eq!((pools.rows().len(), pools.not_tracked), (MAX_POOLS, 2));
        pools.count(&event(DESTROYED, 5, 1));
        pools.count(&event(1, 9_999, 1));
        assert_eq!((pools.rows().len(), pools.not_tracked), (MAX_POOLS, 2));
    }
}
