//! What the model hands to whoever draws or prints it: plain data, no references into anything live.

use serde::Serialize;

/// The state of one tap at one instant, and everything counted since attaching.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    pub target: Target,
    /// Since the reader attached.
    pub elapsed_ns: u64,
    /// Sorted by total time, longest first. Bounded: beyond the model's limit kernels fold into one row "(other)".
    pub kernels: Vec<KernelRow>,
    /// One row a direction that was seen.
    pub copies: Vec<CopyRow>,
    pub memsets: u64,
    pub memset_bytes: u64,
    /// In the order of their first load. Bounded: see `module_counts.not_shown`.
    pub modules: Vec<ModuleRow>,
    pub module_counts: ModuleCounts,
    pub counts: Counts,
    /// Of the last whole second, from the records themselves.
    pub kernels_per_s: f64,
    /// Share of the last whole second in which at least one kernel ran on some device, 0 to 1.
    pub gpu_busy: f64,
    /// The same second by device, in the order of their ids; only devices on which a kernel ran.
    pub devices: Vec<DeviceRow>,
    /// How old kernels are when this reader gets them; absent until one has ended since it attached.
    pub freshness: Option<Freshness>,
    /// The reader's own libcupti that gives `cupti_crc`; empty until one has answered.
    pub cupti_crc_by: String,
    /// What the shim has spent inside the process.
    pub cost: Cost,
    /// What went less well than asked for, in words, each once: no lease, no CUPTI checksum, ...
    pub notes: Vec<String>,
}

/// From a kernel's end on the device to its arrival in this reader, since attaching; within 1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Freshness {
    pub p50_ns: u64,
    pub p95_ns: u64,
    pub max_ns: u64,
}

/// The shim's own time inside the tapped process since it started, from its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// In module-loaded callbacks, on the application's threads: all of them, and the longest.
    pub module_callback_ns: u64,
    pub module_callback_max_ns: u64,
    /// In buffer-completed callbacks, on CUPTI's own thread.
    pub completed_ns: u64,
    pub buffers_completed: u64,
    /// In flushes, on the timer thread: all of them, and the longest.
    pub flush_ns: u64,
    pub flush_max_ns: u64,
    pub flushes: u64,
}

/// One device in the last whole second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DeviceRow {
    /// CUDA's ordinal in the tapped process.
    pub device_id: u32,
    pub kernels_per_s: f64,
    /// Share of the second in which at least one kernel ran on this device, 0 to 1.
    pub busy: f64,
}

/// Whom the tap sits in, and how it does.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Target {
    /// In the reader's pid namespace where it can be told, else as the process sees itself.
    pub pid: u32,
    pub command: String,
    pub alive: bool,
    /// `idle`, `recording`, `black box`, `yielded`, `off`, `starting`, `exited`.
    pub state: String,
    /// Why the state is what it is, empty where there is nothing to say.
    pub reason: String,
    /// 0 where CUPTI was not found.
    pub cupti_version: u32,
    pub cupti_path: String,
    /// `shm` or `memfd`.
    pub backing: String,
    pub uptime_ns: u64,
    /// Age of the shim's heartbeat; large in a process that is stopped.
    pub heartbeat_age_ns: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelRow {
    /// Demangled.
    pub name: String,
    pub mangled: String,
    pub calls: u64,
    /// Calls with a zero, unfinished or reversed time: they are in `calls` and in no other figure.
    pub flagged: u64,
    pub total_ns: u64,
    pub min_ns: u64,
    pub max_ns: u64,
    pub mean_ns: f64,
    /// From a bounded histogram: within 1 % of the true value.
    pub p50_ns: u64,
    pub p99_ns: u64,
    /// Of all kernel time seen, 0 to 1.
    pub share: f64,
    /// Of the latest launch.
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers_per_thread: u16,
    pub static_shared_bytes: u32,
    pub dynamic_shared_bytes: u32,
    pub last_end_ns: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct CopyRow {
    /// `HtoD`, `DtoH`, `DtoD`, `PtoP`, ...
    pub direction: String,
    pub copies: u64,
    pub bytes: u64,
    pub total_ns: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ModuleRow {
    /// Its slot in the store of the tap.
    pub slot: u32,
    pub size_bytes: u64,
    /// How often the process loaded this very cubin.
    pub loads: u64,
    /// `crc32fast` over the whole cubin; absent until computed.
    pub crc32: Option<u32>,
    /// CUPTI's own, absent with a reason in `cupti_crc_reason`.
    pub cupti_crc: Option<u64>,
    pub cupti_crc_reason: String,
    /// Demangled names of the functions it holds (bounded).
    pub functions: Vec<String>,
    /// How many functions it holds in all.
    pub function_count: u64,
    /// `sm_90`, ...; empty where the ELF header does not say.
    pub architecture: String,
    /// Whether it was built with line information; absent where it could not be parsed.
    pub line_info: Option<bool>,
    /// Why the ELF could not be parsed, empty where it could.
    pub parse_error: String,
}

/// Module loads: attempted = stored + duplicates + the sum of refused.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ModuleCounts {
    /// Loads that reached the shim.
    pub attempted: u64,
    /// Distinct cubins kept by the shim.
    pub stored: u64,
    /// Loads of a cubin that was already kept.
    pub duplicates: u64,
    /// Loads whose bytes were not kept, by reason.
    pub refused: Vec<Lost>,
    /// True where modules may have been loaded unseen (while yielded).
    pub unknown: bool,
    /// Bytes of the distinct cubins that this reader has read.
    pub bytes: u64,
    /// Cubins read but beyond the rows that are kept.
    pub not_shown: u64,
}

/// attempted = delivered + the sum of lost + pending, always; pending is 0 once a target has ended.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    pub attempted: u64,
    pub delivered: u64,
    /// Counted by the shim, not yet read by this reader.
    pub pending: u64,
    pub lost: Vec<Lost>,
    /// Records with a zero, unfinished or reversed time: counted here, never averaged.
    pub flagged_times: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Lost {
    /// A stable name: `overwritten`, `no_lane`, `cupti_dropped`, ...
    pub reason: String,
    pub count: u64,
    /// True where the count is known to be incomplete.
    pub unknown: bool,
}
