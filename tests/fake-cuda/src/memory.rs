//! Device addresses, which have nothing behind them, and the pools that some of them come from.

use std::collections::HashMap;

use crate::hook_abi::PoolFacts;

const FIRST_ADDRESS: u64 = 0x7f00_0000_0000;
const FIRST_POOL_ADDRESS: u64 = 0x6d00_0000_0000;
/// A pool grows by so much at a time.
const POOL_STEP_BYTES: u64 = 2 << 20;

/// An allocation that has not been freed.
#[derive(Clone, Copy)]
pub struct Allocation {
    pub bytes: u64,
    /// Its pool's address; 0 for none.
    pub pool: u64,
}

pub struct Memory {
    next_address: u64,
    allocations: HashMap<u64, Allocation>,
    pools: HashMap<u64, PoolFacts>,
    pools_made: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self { next_address: FIRST_ADDRESS, allocations: HashMap::new(), pools: HashMap::new(), pools_made: 0 }
    }
}

impl Memory {
    /// A device address; addresses are never used again. `pool` is an existing pool's address, or 0.
    pub fn allocate(&mut self, bytes: u64, pool: u64) -> u64 {
        let address = self.next_address;
        self.next_address += bytes.next_multiple_of(512);
        self.allocations.insert(address, Allocation { bytes, pool });
        if let Some(pool) = self.pools.get_mut(&pool) {
            pool.used_bytes += bytes;
            pool.size_bytes = pool.size_bytes.max(pool.used_bytes.next_multiple_of(POOL_STEP_BYTES));
        }
        address
    }

    /// None if nothing is allocated there.
    pub fn free(&mut self, address: u64) -> Option<Allocation> {
        let gone = self.allocations.remove(&address)?;
        if let Some(pool) = self.pools.get_mut(&gone.pool) {
            pool.used_bytes -= gone.bytes;
        }
        Some(gone)
    }

    pub fn create_pool(&mut self) -> PoolFacts {
        let address = FIRST_POOL_ADDRESS + self.pools_made * 0x1000;
        self.pools_made += 1;
        let pool = PoolFacts { address, ..PoolFacts::default() };
        self.pools.insert(address, pool);
        pool
    }

    /// All zero for an address that is no pool's.
    pub fn pool(&self, address: u64) -> PoolFacts {
        self.pools.get(&address).copied().unwrap_or_default()
    }

    pub fn destroy_pool(&mut self, address: u64) -> Option<PoolFacts> {
        self.pools.remove(&address)
    }

    pub fn trim_pool(&mut self, address: u64, keep_bytes: u64) -> Option<PoolFacts> {
        let pool = self.pools.get_mut(&address)?;
        pool.size_bytes = pool.size_bytes.min(keep_bytes.max(pool.used_bytes));
        Some(*pool)
    }
}
