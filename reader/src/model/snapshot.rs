//! What the model hands to whoever draws or prints it: plain data, no references into anything live.

use super::timeline::WorkShares;
use serde::Serialize;

/// The state of one tap at one instant, and everything counted since attaching.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    pub target: Target,
    /// Since the reader attached.
    pub elapsed_ns: u64,
    /// Events of each kind that there were any of, in the order of the kinds.
    pub kinds: Vec<KindCount>,
    /// Sorted by total time, longest first. Bounded: beyond the model's limit kernels fold into one row "(other)".
    pub kernels: Vec<KernelRow>,
    /// One row a direction that was seen.
    pub copies: Vec<CopyRow>,
    pub memsets: u64,
    pub memset_bytes: u64,
    /// Graphs that were recorded as a whole.
    pub graphs: Total,
    /// How the host waited, by kind.
    pub syncs: Vec<NamedTotal>,
    /// What CUPTI, the driver and the compiler took for themselves, by kind.
    pub overheads: Vec<NamedTotal>,
    /// Calls of the runtime's and the driver's API, by CUPTI's number of the function.
    pub runtime_calls: Vec<NamedTotal>,
    pub driver_calls: Vec<NamedTotal>,
    pub memory: MemoryInUse,
    pub in_flight: InFlight,
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
    /// Of the last ten seconds, what the streams were busy with.
    pub work: WorkShares,
    /// CLOCK_MONOTONIC of all this.
    pub time_ns: u64,
    /// How old kernels are when this reader gets them; absent until one has ended since it attached.
    pub freshness: Option<Freshness>,
    /// The reader's own libcupti that gives `cupti_crc`; empty until one has answered.
    pub cupti_crc_by: String,
    /// What the shim has spent inside the process.
    pub cost: Cost,
    pub clock: Clock,
    /// What went less well than asked for, in words, each once: no lease, no CUPTI checksum, ...
    pub notes: Vec<String>,
}

/// Events of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KindCount {
    /// `kernel`, `memcpy`, ...
    pub kind: &'static str,
    pub count: u64,
}

/// How often, and for how long in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Total {
    pub count: u64,
    /// Of these, with times that cannot be believed: in no other figure.
    pub flagged: u64,
    pub total_ns: u64,
    pub max_ns: u64,
}

/// A total of one of many. Bounded: beyond the model's limit they fold into one without an id, the last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NamedTotal {
    /// CUPTI's number of it.
    pub id: Option<u32>,
    /// Empty where only the number is known.
    pub name: &'static str,
    #[serde(flatten)]
    pub total: Total,
}

impl NamedTotal {
    pub(super) fn new(id: Option<u32>, name_of: impl Fn(u32) -> &'static str, total: Total) -> NamedTotal {
        NamedTotal { id, name: id.map_or("(other)", name_of), total }
    }
}

/// Memory by the records of allocations and releases since this reader attached: what was allocated before is not in it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MemoryInUse {
    pub rows: Vec<MemoryRow>,
    /// Releases of what was not seen to be allocated.
    pub unknown_releases: u64,
    /// Addresses that were given out again without a release that was seen.
    pub missed_releases: u64,
    /// Allocations that found no room to be remembered, and are in no sum.
    pub not_tracked: u64,
    /// By device and address, where pools are recorded.
    pub pools: Vec<PoolRow>,
    /// Records of pools that found no room to be remembered.
    pub pools_not_tracked: u64,
}

/// A pool of stream-ordered memory, as its latest record said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolRow {
    pub device_id: u32,
    pub address: u64,
    pub is_alive: bool,
    /// Reserved by the pool, and of that in use.
    pub size_bytes: u64,
    pub used_bytes: u64,
    /// The most that it had reserved at any record.
    pub high_water_bytes: u64,
    pub release_threshold_bytes: u64,
    pub trims: u64,
}

/// Memory of one kind on one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryRow {
    pub device_id: u32,
    /// `device`, `managed`, `pinned`, ...
    pub kind: String,
    pub in_use_bytes: u64,
    pub high_water_bytes: u64,
    pub allocations: u64,
    pub releases: u64,
}

/// What was launched and has not finished, where launches are recorded. A graph that is not recorded as a whole counts as
/// finished with as many nodes as its launch before had, and as long as that is not known with its first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InFlight {
    /// Launches seen in all; 0 where they are not recorded, and then nothing is known.
    pub launches: u64,
    /// Of these, not known to have finished.
    pub open: u64,
    /// Of the open ones, those whose record may be among the lost.
    pub uncertain: u64,
    /// Uncertain ones that later work has left behind: not open any more, and never seen to finish.
    pub given_up: u64,
    /// Launches that found no room to be followed.
    pub not_tracked: u64,
    /// Of the open ones, the oldest first; bounded.
    pub oldest: Vec<InFlightRow>,
}

/// One launch that is not known to have finished.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InFlightRow {
    /// The kernel's name, or `(graph)`.
    pub name: String,
    pub age_ns: u64,
    /// CLOCK_MONOTONIC.
    pub launched_ns: u64,
    pub correlation: u64,
    /// The kernel's id of the thread that launched it.
    pub thread: u32,
    pub context: u32,
    /// Records were lost since, its own perhaps among them.
    pub uncertain: bool,
}

/// The clock of the records, and wall time beside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// What CUPTI reads: `wall`, which the shim converts, or `monotonic`. Times are of CLOCK_MONOTONIC in any case.
    pub source: &'static str,
    /// The tap's latest reading of both clocks.
    pub point: Option<ClockPoint>,
    /// Times that the wall clock was set while CUPTI followed it.
    pub steps: u64,
    /// Times of records near such a step, counted by the shim since it started; a record may have two.
    pub doubtful_times: u64,
}

/// CLOCK_MONOTONIC and CLOCK_REALTIME at one instant, within `error_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockPoint {
    pub monotonic_ns: u64,
    pub realtime_ns: u64,
    pub error_ns: u64,
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
    /// The newest CUDA that the driver knows, `13.0`; empty while unknown.
    pub driver_version: String,
    /// Kinds of events that are being recorded, by name.
    pub kinds: Vec<&'static str>,
    /// Kinds that this process can never record; `notes` say why.
    pub unavailable: Vec<&'static str>,
    /// What the tap itself says, a line each.
    pub notes: Vec<String>,
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
    /// Calls with a time that cannot be believed: they are in `calls` and in no other figure.
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
    /// CLOCK_MONOTONIC of the first load, 0 where unknown.
    pub first_load_ns: u64,
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
    /// Records with a time that cannot be right, or need not be: counted here, never averaged. The sum of `flags`.
    pub flagged_times: u64,
    pub flags: Flags,
}

/// What is wrong with the times of records: of each the first that applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flags {
    /// Without an end: CUPTI delivered them before the work had finished, and does not deliver them again.
    pub unfinished: u64,
    /// Without a start, or without any time.
    pub zero: u64,
    /// With an end before the start.
    pub negative: u64,
    /// Near an instant at which the wall clock was set while CUPTI follows it.
    pub doubtful: u64,
}

impl Flags {
    pub fn sum(&self) -> u64 {
        let Flags { unfinished, zero, negative, doubtful } = *self;
        [zero, negative, doubtful].into_iter().fold(unfinished, u64::saturating_add)
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Lost {
    /// A stable name: `overwritten`, `no_lane`, `cupti_dropped`, ...
    pub reason: String,
    pub count: u64,
    /// True where the count is known to be incomplete.
    pub unknown: bool,
}
