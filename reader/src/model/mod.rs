//! Running figures of one tap, in bounded memory whatever the tap sends.
//!
//! Fed with events and names, it hands out [`snapshot::Snapshot`]s. It does no I/O; the time is passed in.

mod copies;
mod doubt;
mod early;
mod freshness;
mod graph_runs;
mod intervals;
mod kernel;
mod kernels;
mod launches;
pub mod ledger;
mod memory;
mod modules;
mod names;
mod pools;
mod rates;
pub mod snapshot;
mod steps;
mod streams;
pub mod timeline;
pub(crate) mod timing;
mod totals;

pub use copies::{Copied, Copies, direction as copies_direction};
pub use kernel::{KernelStats, QUANTILE_MAX_NS, SIGNIFICANT_DIGITS};
pub use kernels::{MAX_KERNELS, MAX_NAME_BYTES, MAX_NAME_SLOTS};
pub use launches::{MAX_OPEN, MAX_ROWS as MAX_IN_FLIGHT_ROWS};
pub use memory::{MAX_ALLOCATIONS, Memory};
pub use modules::MAX_MODULES;
pub use streams::MAX_STREAMS;
pub use timing::{Flaw, Timing};
pub use totals::MAX_KEYS;

use crate::clock::Now;
use doubt::Doubt;
use freshness::Ages;
use gputap_cupti::constants::{DRIVER_TRACE_CBID_cuGraphLaunch, DRIVER_TRACE_CBID_cuGraphLaunch_ptsz};
use gputap_ringbuf::event::{Event, EventKind, LaunchEvent};
use kernels::Kernels;
use launches::Launches;
pub(crate) use modules::{Module, Modules};
use pools::Pools;
use rates::Rates;
use snapshot::{
    Counts, Flags, Freshness, KindCount, MemoryInUse, ModuleCounts, ModuleRow, NamedTotal, Snapshot, Total,
};
use streams::Streams;
use timeline::{Stretch, Timeline, Work};
use totals::Totals;

const GRAPH_LAUNCHES: [u32; 2] = [DRIVER_TRACE_CBID_cuGraphLaunch, DRIVER_TRACE_CBID_cuGraphLaunch_ptsz];
/// What [`Snapshot::work`] is of.
pub const WORK_SPAN_NS: u64 = 10_000_000_000;
/// Kinds are numbered from 1 on.
const KINDS: usize = EventKind::ALL.len() + 1;

/// The figures since attaching.
#[derive(Debug)]
pub struct Model {
    /// By the number of the kind.
    by_kind: [u64; KINDS],
    flags: Flags,
    doubt: Doubt,
    kernels: Kernels,
    copies: Copies,
    memsets: u64,
    memset_bytes: u64,
    graphs: Total,
    syncs: Totals,
    overheads: Totals,
    runtime_calls: Totals,
    driver_calls: Totals,
    memory: Memory,
    pools: Pools,
    launches: Launches,
    rates: Rates,
    streams: Streams,
    ages: Ages,
    pub(crate) modules: Modules,
}

impl Model {
    /// Figures from `began` on.
    pub fn new(began: Now) -> Model {
        Model {
            by_kind: [0; KINDS],
            flags: Flags::default(),
            doubt: Doubt::default(),
            kernels: Kernels::default(),
            copies: Copies::default(),
            memsets: 0,
            memset_bytes: 0,
            graphs: Total::default(),
            syncs: Totals::default(),
            overheads: Totals::default(),
            runtime_calls: Totals::default(),
            driver_calls: Totals::default(),
            memory: Memory::default(),
            pools: Pools::default(),
            launches: Launches::default(),
            rates: Rates::default(),
            streams: Streams::since(began.monotonic_ns),
            ages: Ages::new(began.monotonic_ns),
            modules: Modules::default(),
        }
    }

    /// Whether the name in this slot of the definitions has been given.
    pub fn knows_name(&self, slot: u32) -> bool {
        self.kernels.knows_name(slot)
    }

    /// Gives the mangled name of a slot. Slots with the same content count as one kernel; a slot is never renamed.
    pub fn name(&mut self, slot: u32, mangled: &[u8]) {
        self.kernels.name(slot, mangled);
    }

    /// Launches are asked for: what ends from now on may be a launch's that is read later.
    pub fn expect_launches(&mut self) {
        self.launches.expect();
    }

    /// Records were lost, or may have been: what is open may have ended unseen.
    pub fn lost_records(&mut self, now: Now) {
        self.launches.lost_records(now);
    }

    /// A cubin, where its row comes from a recording. What is given again of a slot stands.
    pub fn module(&mut self, row: ModuleRow) {
        let first_ns = row.first_load_ns;
        self.modules.put(row.slot, Module { row, first_ns });
    }

    /// The wall clock was set between these two times of CLOCK_MONOTONIC, and CUPTI follows it: times of records around
    /// are not averaged.
    pub fn clock_step(&mut self, after_ns: u64, before_ns: u64) {
        self.doubt.step(after_ns, before_ns);
    }

    /// Counts one event. `now` decides whether it still matters for the rates.
    pub fn event(&mut self, event: &Event, now: Now) {
        let timing = self.doubt.judge(Timing::of(event));
        self.count(event.kind(), timing);
        match event {
            Event::Kernel(kernel) => {
                let work = self.kernels.count(kernel, timing);
                self.rates.count(kernel, timing, now);
                self.streams.count(work, (kernel.device_id, kernel.context_id, kernel.stream_id), timing, now);
                self.ages.count(timing, now);
                self.work_ended(kernel.graph_id, kernel.correlation_id, timing, now);
            }
            Event::Memcpy(copy) => {
                self.copies.count(copy, timing);
                self.streams.count(Work::Copy, (copy.device_id, copy.context_id, copy.stream_id), timing, now);
                self.launches.copy_ended(copy.graph_id, copy.correlation_id);
            }
            Event::Memset(memset) => {
                self.memsets = self.memsets.saturating_add(1);
                self.memset_bytes = self.memset_bytes.saturating_add(memset.bytes);
                self.streams.count(Work::Set, (memset.device_id, memset.context_id, memset.stream_id), timing, now);
                self.launches.copy_ended(memset.graph_id, memset.correlation_id);
            }
            Event::Graph(graph) => {
                totals::add(&mut self.graphs, timing);
                self.streams.count(Work::Compute, (graph.device_id, graph.context_id, graph.stream_id), timing, now);
                self.work_ended(0, graph.correlation_id, timing, now);
            }
            Event::Sync(sync) => self.syncs.count(sync.sync_kind, timing),
            Event::Overhead(overhead) => self.overheads.count(overhead.overhead_kind, timing),
            Event::Runtime(call) => self.runtime_calls.count(call.callback_id, timing),
            Event::Driver(call) => self.driver_calls.count(call.callback_id, timing),
            Event::Memory(memory) => self.memory.count(memory),
            Event::Launch(launch) => self.launches.launched(launch, now),
            Event::Pool(pool) => self.pools.count(pool),
            Event::Marker(_) => {}
        }
    }

    fn count(&mut self, kind: EventKind, timing: Timing) {
        let count = &mut self.by_kind[kind as usize];
        *count = count.saturating_add(1);
        let flag = match timing.flaw() {
            None => return,
            Some(Flaw::Unfinished) => &mut self.flags.unfinished,
            Some(Flaw::Zero) => &mut self.flags.zero,
            Some(Flaw::Negative) => &mut self.flags.negative,
            Some(Flaw::Doubtful) => &mut self.flags.doubtful,
        };
        *flag = flag.saturating_add(1);
    }

    /// `graph_id`: of the graph that it is a node of; 0 for a kernel by itself, and for a whole graph.
    fn work_ended(&mut self, graph_id: u32, correlation_id: u64, timing: Timing, now: Now) {
        if timing.flaw() == Some(Flaw::Unfinished) {
            // CUPTI does not deliver it again when it has ended.
            self.launches.lost_records(now);
        } else {
            self.launches.node_ended(graph_id, correlation_id);
        }
    }

    /// The figures as rows. Who the target is, how long it has run and what was lost is the session's to fill in.
    pub fn snapshot(&self, now: Now) -> Snapshot {
        let rates = self.rates.last_whole_second(now);
        Snapshot {
            kinds: self.kinds(),
            kernels: self.kernels.rows(),
            copies: self.copies.rows(),
            memsets: self.memsets,
            memset_bytes: self.memset_bytes,
            graphs: self.graphs,
            syncs: self.syncs.rows(|key, total| NamedTotal::new(key, names::sync_kind, total)),
            overheads: self.overheads.rows(|key, total| NamedTotal::new(key, names::overhead_kind, total)),
            runtime_calls: self.runtime_calls.rows(|key, total| NamedTotal::new(key, |_| "", total)),
            driver_calls: self.driver_calls.rows(|key, total| NamedTotal::new(key, |_| "", total)),
            memory: MemoryInUse {
                pools: self.pools.rows(),
                pools_not_tracked: self.pools.not_tracked,
                ..self.memory.in_use()
            },
            in_flight: self.launches.in_flight(now, |launch| self.launched_name(launch)),
            modules: self.modules.rows(),
            module_counts: self.modules.counts(),
            counts: Counts { flagged_times: self.flags.sum(), flags: self.flags, ..Default::default() },
            kernels_per_s: rates.kernels_per_s,
            gpu_busy: rates.busy,
            devices: rates.devices,
            work: self.streams.shares(self.settled_ns(now), WORK_SPAN_NS),
            time_ns: now.monotonic_ns,
            freshness: self.ages.freshness(),
            ..Default::default()
        }
    }

    /// What the snapshot says of the records' times, of the cubins that were read, and of the delay.
    pub(crate) fn standing(&self) -> (Flags, ModuleCounts, Option<Freshness>) {
        (self.flags, self.modules.counts(), self.ages.freshness())
    }

    /// How busy each stream was, up to `stretch.end_ns`, or where that is 0 up to the latest of which all records should
    /// be here.
    pub fn timeline(&self, stretch: Stretch, now: Now) -> Timeline {
        let end_ns = if stretch.end_ns == 0 { self.settled_ns(now) } else { stretch.end_ns };
        self.streams.timeline(Stretch { end_ns, ..stretch })
    }

    /// How long a step takes, where the work of the last seconds repeats itself. Costs some milliseconds.
    pub fn step_ns(&self, now: Now) -> Option<u64> {
        self.streams.step_ns(self.settled_ns(now))
    }

    fn settled_ns(&self, now: Now) -> u64 {
        now.monotonic_ns.saturating_sub(rates::LAG_NS)
    }

    fn kinds(&self) -> Vec<KindCount> {
        let counts =
            EventKind::ALL.iter().map(|kind| KindCount { kind: kind.name(), count: self.by_kind[*kind as usize] });
        counts.filter(|row| row.count > 0).collect()
    }

    fn launched_name(&self, launch: &LaunchEvent) -> String {
        if GRAPH_LAUNCHES.contains(&launch.callback_id) {
            "(graph)".to_owned()
        } else {
            self.kernels.name_of(launch.name_id).to_owned()
        }
    }
}

#[cfg(test)]
mod tests;
