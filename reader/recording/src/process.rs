//! What a segment says beside events: whose they are, which modules were loaded, what was lost.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The process that was recorded. Every segment begins with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// As the process sees itself.
    pub pid: u32,
    /// As the recorder saw it, where that could be told; another number where the process is in a container.
    pub pid_outside: Option<u32>,
    /// Inode of its pid namespace.
    pub pid_namespace: u64,
    /// Field 22 of /proc/PID/stat, clock ticks since boot.
    pub start_ticks: u64,
    /// Hexadecimal.
    pub boot_id: String,
    /// Hexadecimal; no two taps have the same.
    pub nonce: String,
    pub host: String,
    pub command: Vec<String>,
    /// Its rank, from the first of the variables that launchers set; absent where there is none.
    pub rank: Option<u32>,
    /// Variables that say which process of a job this is: `RANK`, `LOCAL_RANK`, `WORLD_SIZE`, `SLURM_PROCID`, ...
    pub variables: BTreeMap<String, String>,
    pub devices: Vec<Device>,
    /// As `cuptiGetVersion` gives it; 0 where unknown.
    pub cupti_version: u32,
    /// The newest CUDA that the driver knows, as 12080; 0 where unknown.
    pub driver_version: u32,
    /// Which clock CUPTI reads: `wall` or `monotonic`. Events are CLOCK_MONOTONIC in both cases.
    pub clock_source: String,
    /// Both clocks when the recording began.
    pub clock: Option<Clock>,
    /// Of gputap.
    pub recorder_version: String,
}

impl Process {
    /// What tells it from all other processes of all hosts.
    pub fn key(&self) -> (String, u32, u64, String) {
        (self.boot_id.clone(), self.pid, self.start_ticks, self.nonce.clone())
    }

    /// As people call it: `rank 3`, or `pid 123`.
    pub fn label(&self) -> String {
        self.rank.map_or_else(|| format!("pid {}", self.pid), |rank| format!("rank {rank}"))
    }
}

/// A GPU that the process sees, by CUDA's number of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    pub ordinal: u32,
    /// `GPU-…`; empty where unknown.
    pub uuid: String,
    pub name: String,
}

/// Both clocks at one instant, nanoseconds: wall time is `time_ns - monotonic_ns + realtime_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clock {
    pub monotonic_ns: u64,
    pub realtime_ns: u64,
    /// The two were read within so long.
    pub error_ns: u64,
}

impl Clock {
    /// Wall time, nanoseconds since 1970, of a time of the events.
    pub fn wall_ns(&self, time_ns: u64) -> u64 {
        time_ns.wrapping_sub(self.monotonic_ns).wrapping_add(self.realtime_ns)
    }
}

/// A distinct cubin that the process loaded. Written again when what is known of it changes: the last one stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    /// Of the tap's store; what tells the modules of a process apart.
    pub slot: u32,
    /// Of all bytes, zlib's.
    pub crc32: u32,
    pub size_bytes: u64,
    /// In the folder `cubins`; absent where it could not be kept.
    pub file: Option<String>,
    /// How often these very bytes were loaded.
    pub loads: u64,
    /// CLOCK_MONOTONIC of the first load.
    pub first_load_ns: u64,
    /// What `cuptiGetCubinCrc` gives.
    pub cupti_crc: Option<u64>,
}

/// How many records there were and where they went, so far. The last one of a process stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// CLOCK_MONOTONIC of this status.
    pub time_ns: u64,
    /// Both clocks now.
    pub clock: Option<Clock>,
    /// `attempted` = `delivered` + the sum of `lost` + `pending`.
    pub attempted: u64,
    pub delivered: u64,
    pub pending: u64,
    pub lost: Vec<Loss>,
    /// State of the tap: `recording`, `exited`, ...
    pub state: String,
    /// What went less well than asked for, in words.
    pub notes: Vec<String>,
    /// The recording ended here in order, everything was written.
    pub complete: bool,
}

/// Records that were lost for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Loss {
    pub reason: String,
    pub count: u64,
    /// Some of this loss cannot be counted.
    pub unknown: bool,
}
