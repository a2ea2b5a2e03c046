//! What a job did, by its own count.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A number of copies or memsets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfers {
    pub count: u64,
    pub bytes: u64,
}

/// All that a job did between its start and its last synchronization.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobReport {
    pub kernels: u64,
    /// By mangled name.
    pub kernels_by_name: BTreeMap<String, u64>,
    pub host_to_device: Transfers,
    pub device_to_host: Transfers,
    pub device_to_device: Transfers,
    pub memsets: Transfers,
    /// Loads that CUPTI would tell of: a lazy module counts at the first launch of one of its kernels.
    pub module_loads: u64,
    /// Bytes of the cubins of all loads.
    pub loaded_bytes: u64,
    /// Different cubins among the loads, and their bytes.
    pub modules: u64,
    pub cubin_bytes: u64,
    pub threads: u64,
    pub streams: u64,
    pub steps: u64,
    pub elapsed_ns: u64,
}

impl Transfers {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}
