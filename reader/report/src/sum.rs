//! The sums of all processes together.

use crate::busy::{Busied, Gap, Ran, Work};
use crate::clocks::Clocks;
use crate::gather::{DeviceKey, Gathered};
use crate::groups::{Group, Key};
use crate::kernel_names::{self, Kernels};
use crate::report::{GapRow, PartRow};
use crate::tally::{Sets, Tally};
use gputap_reader::model::copies_direction;
use gputap_reader::model::snapshot::{Flags, MemoryInUse, Total};
use gputap_reader::model::{Copies, KernelStats};
use gputap_reader::symbols::demangle;
use gputap_recording::{Problem, Recorded, Status};
use std::collections::HashMap;
use std::sync::Arc;

pub const UNNAMED: &str = "(unnamed)";
pub const OTHER: &str = "(other)";
/// Kernels listed in a group.
const PARTS_MAX: usize = 10;

/// A kernel of all processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    Mangled(Arc<[u8]>),
    Unnamed,
    Other,
}

impl Name {
    pub fn readable(&self) -> String {
        match self {
            Name::Mangled(mangled) => demangle(mangled),
            Name::Unnamed => UNNAMED.to_owned(),
            Name::Other => OTHER.to_owned(),
        }
    }

    fn of(number: usize, kernels: &Kernels) -> Name {
        match number {
            kernel_names::UNNAMED => Name::Unnamed,
            kernel_names::OTHER => Name::Other,
            number => Name::Mangled(Arc::clone(&kernels.all[number].mangled)),
        }
    }
}

/// Of one kernel.
#[derive(Debug, Default)]
pub struct KernelSum {
    pub stats: KernelStats,
    pub by_process: Vec<OfProcess>,
}

/// The calls of a kernel in one process.
#[derive(Clone, Copy, Debug)]
pub struct OfProcess {
    pub number: usize,
    pub calls: u64,
    /// With good times: those of `total_ns`.
    pub timed: u64,
    pub total_ns: u64,
}

/// Of one process.
#[derive(Debug)]
pub struct ProcessSum {
    pub number: usize,
    pub span_ns: Option<[u64; 2]>,
    pub status: Option<Status>,
    pub flagged: u64,
    pub memory: MemoryInUse,
}

/// Of one group, under its label.
#[derive(Debug)]
pub struct GroupSum {
    pub process: usize,
    pub key: Option<Key>,
    pub stats: KernelStats,
    pub parts: Vec<PartRow>,
}

/// Of one device.
#[derive(Debug)]
pub struct DeviceSum {
    pub key: DeviceKey,
    pub busied: Busied,
    pub gaps: Vec<GapRow>,
    /// Numbers of the processes that used it.
    pub processes: Vec<usize>,
}

#[derive(Debug, Default)]
pub struct Sum {
    pub kernels: HashMap<Name, KernelSum>,
    pub all_kernels: KernelStats,
    pub copies: Copies,
    pub sets: Sets,
    pub graphs: Total,
    pub flags: Flags,
    pub placeless: u64,
    pub events: u64,
    pub processes: Vec<ProcessSum>,
    pub devices: Vec<DeviceSum>,
    pub groups: Vec<GroupSum>,
    /// Kernels that there are, and whether the filter lets them through.
    pub names: HashMap<Name, bool>,
    pub problems: Vec<Problem>,
}

impl Sum {
    /// Adds processes that were read together.
    pub fn add(&mut self, gathered: Gathered, processes: &[Recorded], clocks: &Clocks) {
        let Gathered { mut tallies, devices, problems } = gathered;
        let numbers: Vec<usize> = tallies.iter().map(|(number, _)| *number).collect();
        for (key, busied) in devices {
            let began_ns = clocks.began_ns(key.process).unwrap_or(busied.window_ns[0]);
            let gaps = busied.gaps.iter().map(|gap| gap_row(gap, began_ns, &tallies)).collect();
            let uses = |number: &&usize| match key.uuid.is_empty() {
                true => **number == key.process,
                false => processes[**number].process.devices.iter().any(|device| key.uuid.ends_with(&device.uuid)),
            };
            let used_by = numbers.iter().filter(uses).copied().collect();
            self.devices.push(DeviceSum { key, busied, gaps, processes: used_by });
        }
        tallies.drain(..).for_each(|(number, tally)| self.process(number, tally));
        self.problems.extend(problems);
    }

    fn process(&mut self, number: usize, mut tally: Tally) {
        for (key, group) in tally.groups.take().map(crate::groups::Groups::into_all).unwrap_or_default() {
            let parts = parts(&group, &tally.kernels);
            self.groups.push(GroupSum { process: number, key: Some(key), stats: group.stats, parts });
        }
        let mut of_process = GroupSum { process: number, key: None, stats: KernelStats::default(), parts: Vec::new() };
        for (at, kernel) in tally.kernels.all.iter().enumerate() {
            let name = Name::of(at, &tally.kernels);
            if at > kernel_names::OTHER {
                self.names.insert(name.clone(), kernel.is_wanted);
            }
            if kernel.stats.calls() == 0 {
                continue;
            }
            let sum = self.kernels.entry(name).or_default();
            sum.stats.merge(&kernel.stats);
            let (calls, timed, total_ns) = (kernel.stats.calls(), kernel.stats.timed(), kernel.stats.total_ns());
            sum.by_process.push(OfProcess { number, calls, timed, total_ns });
            of_process.stats.merge(&kernel.stats);
        }
        self.all_kernels.merge(&of_process.stats);
        let by_kernel = tally.kernels.all.iter().map(|kernel| (kernel.stats.calls(), kernel.stats.total_ns()));
        let all = Group { stats: KernelStats::default(), kernels: by_kernel.collect() };
        of_process.parts = parts(&all, &tally.kernels);
        self.groups.push(of_process);
        self.copies.merge(&tally.copies);
        self.sets.sets += tally.sets.sets;
        self.sets.bytes = self.sets.bytes.saturating_add(tally.sets.bytes);
        merge(&mut self.sets.total, &tally.sets.total);
        merge(&mut self.graphs, &tally.graphs);
        let Flags { unfinished, zero, negative, doubtful } = tally.flags;
        self.flags.unfinished += unfinished;
        self.flags.zero += zero;
        self.flags.negative += negative;
        self.flags.doubtful += doubtful;
        self.placeless += tally.placeless;
        self.events += tally.events;
        self.processes.push(ProcessSum {
            number,
            span_ns: tally.span_ns,
            status: tally.status,
            flagged: tally.flags.sum(),
            memory: tally.memory.in_use(),
        });
    }
}

fn merge(sum: &mut Total, one: &Total) {
    sum.count += one.count;
    sum.flagged += one.flagged;
    sum.total_ns = sum.total_ns.saturating_add(one.total_ns);
    sum.max_ns = sum.max_ns.max(one.max_ns);
}

/// The longest kernels of a group.
fn parts(group: &Group, kernels: &Kernels) -> Vec<PartRow> {
    let mut all: Vec<(usize, (u64, u64))> =
        group.kernels.iter().copied().enumerate().filter(|(_, (calls, _))| *calls > 0).collect();
    all.sort_by(|(a_at, (_, a)), (b_at, (_, b))| b.cmp(a).then(a_at.cmp(b_at)));
    all.truncate(PARTS_MAX);
    all.into_iter()
        .map(|(at, (calls, total_ns))| PartRow { name: Name::of(at, kernels).readable(), calls, total_ns })
        .collect()
}

fn gap_row(gap: &Gap, began_ns: u64, tallies: &[(usize, Tally)]) -> GapRow {
    GapRow {
        start_s: (gap.start_ns as f64 - began_ns as f64) / 1e9,
        start_ns: gap.start_ns,
        duration_ns: gap.duration_ns(),
        before: ran(gap.before, tallies),
        after: ran(gap.after, tallies),
    }
}

fn ran(ran: Ran, tallies: &[(usize, Tally)]) -> Option<String> {
    let kernel = |index: u32| {
        let (_, tally) = tallies.iter().find(|(number, _)| *number == usize::from(ran.process))?;
        Some(Name::of(index as usize, &tally.kernels).readable())
    };
    match ran.work {
        Work::Edge => None,
        Work::Kernel => kernel(ran.index),
        Work::Graph => Some(format!("(graph {})", ran.index)),
        Work::Copy => Some(format!("(copy {})", copies_direction(u8::try_from(ran.index).unwrap_or(u8::MAX)))),
        Work::Set => Some("(memset)".to_owned()),
    }
}
