//! The report: plain data, for people, JSON and comparisons.

use crate::clocks::Clocks;
use crate::cubins::Cubins;
use crate::error::ReportError;
use crate::gather::gather;
use crate::groups::Key;
use crate::moment::rfc3339_of;
use crate::ranks;
use crate::select::{By, Options};
use crate::sum::{DeviceSum, GroupSum, KernelSum, Name, ProcessSum, Sum};
use crate::tally::Wanted;
use gputap_reader::model::KernelStats;
use gputap_reader::model::snapshot::{Flags, Total};
use gputap_recording::{Loss, Process, Recorded, Recording};
use regex_lite::Regex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// What a recording says in sum.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub format: &'static str,
    pub version: u32,
    pub dir: String,
    /// Wall time at which the first process' recording began, RFC 3339 in UTC; absent where no process says.
    pub began: Option<String>,
    pub filter: Option<String>,
    /// As asked for, and nanoseconds since 1970.
    pub between: Option<Between>,
    /// A percentile is off by at most this share of itself.
    pub percentile_error: f64,
    /// Records that the report is made of.
    pub events: u64,
    pub kernel_ns: u64,
    /// By total time, the longest first.
    pub kernels: Vec<KernelRow>,
    pub by: Option<By>,
    pub groups: Vec<GroupRow>,
    pub copies: Vec<CopyRow>,
    pub memsets: u64,
    pub memset_bytes: u64,
    pub memset_time: Total,
    /// Graphs that were recorded as a whole.
    pub graphs: Total,
    pub devices: Vec<DeviceReport>,
    pub memory: Vec<MemoryRow>,
    pub processes: Vec<ProcessRow>,
    pub straggler: Option<Straggler>,
    /// Records with times that cannot be believed: they count as calls, and are in no time.
    pub flags: Flags,
    /// Records without any time, which are in no time that is asked for.
    pub without_time: u64,
    /// What could not be read, or not be told.
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Between {
    pub from: String,
    pub to: String,
    pub from_wall_ns: u64,
    pub to_wall_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelRow {
    pub name: String,
    /// As it was recorded, what is no UTF-8 replaced.
    pub mangled: String,
    pub calls: u64,
    /// Of them, those whose times are in no figure.
    pub flagged: u64,
    pub total_ns: u64,
    /// Of all kernels' time, 0 to 1.
    pub share: f64,
    pub mean_ns: f64,
    pub min_ns: u64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub max_ns: u64,
    /// Of the latest call.
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// There were others.
    pub shape_varies: bool,
    pub registers_per_thread: u16,
    pub static_shared_bytes: u32,
    pub dynamic_shared_bytes: u32,
    /// `crc32` of the cubins that define it, hexadecimal.
    pub cubins: Vec<String>,
    /// The bytes of its name; none for what has no name.
    #[serde(skip)]
    pub key: Option<Vec<u8>>,
}

/// Kernels of one stream, device, rank, graph or cubin.
#[derive(Clone, Debug, Serialize)]
pub struct GroupRow {
    pub label: String,
    #[serde(flatten)]
    pub figures: KernelRow,
    /// The longest of it.
    pub kernels: Vec<PartRow>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartRow {
    pub name: String,
    pub calls: u64,
    pub total_ns: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CopyRow {
    pub direction: &'static str,
    pub copies: u64,
    pub flagged: u64,
    pub bytes: u64,
    pub total_ns: u64,
    /// Of the copies with good times, 1e9 bytes a second; absent where they took no time.
    pub gb_per_s: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct DeviceReport {
    /// `node-a GPU 0`.
    pub label: String,
    pub name: String,
    pub processes: Vec<String>,
    /// From the first start to the last end, or the time asked for.
    pub window_ns: u64,
    /// At least one kernel or graph ran: what overlaps counts once.
    pub busy_ns: u64,
    pub busy: f64,
    /// At least one kernel, graph, copy or set ran.
    pub busy_with_copies_ns: u64,
    /// Nothing ran.
    pub idle_ns: u64,
    pub idle: f64,
    pub gap_count: u64,
    /// The longest.
    pub gaps: Vec<GapRow>,
    /// Records that came too late to be placed exactly, and the time by which the busy times may be too small.
    pub late: u64,
    pub late_ns: u64,
}

/// A time in which nothing ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapRow {
    /// Since the recording began.
    pub start_s: f64,
    /// CLOCK_MONOTONIC of its host.
    pub start_ns: u64,
    pub duration_ns: u64,
    /// What ran last, and what next; absent at the ends of the time asked for.
    pub before: Option<String>,
    pub after: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct MemoryRow {
    pub process: String,
    pub device_id: u32,
    pub kind: String,
    pub high_water_bytes: u64,
    pub in_use_bytes: u64,
    pub allocations: u64,
    pub releases: u64,
    /// Releases of what was not seen to be allocated, addresses given out again unreleased, allocations without room: of all
    /// kinds of memory of the process.
    pub uncertain: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct ProcessRow {
    pub label: String,
    pub pid: u32,
    pub host: String,
    pub rank: Option<u32>,
    pub command: Vec<String>,
    /// From its first start to its last end.
    pub span_ns: u64,
    pub calls: u64,
    pub kernel_ns: u64,
    /// Of it, in collectives (NCCL, NVSHMEM), where ranks wait for each other.
    pub collective_ns: u64,
    /// How much longer its other kernels take than the median rank's, by the call, 0 for just as long; absent where there is
    /// nothing to compare.
    pub slowdown: Option<f64>,
    pub flagged: u64,
    pub loss: LossRow,
}

/// Where a process' records went. `known` false: the recording does not say, or not to its end.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LossRow {
    pub known: bool,
    /// The recording was ended in order.
    pub complete: bool,
    pub attempted: u64,
    pub delivered: u64,
    pub pending: u64,
    pub lost: Vec<Loss>,
}

/// The rank for which the others wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Straggler {
    pub label: String,
    pub slowdown: f64,
    /// The kernel that adds most to it.
    pub kernel: String,
    pub kernel_slowdown: f64,
}

/// Processes of one recording that are read.
const PROCESSES_MAX: usize = u16::MAX as usize;

impl Report {
    /// Reads the recording in `dir`.
    ///
    /// # Errors
    /// `dir` is no recording, or nothing in it is what was asked for.
    pub fn of(dir: &Path, options: &Options) -> Result<Report, ReportError> {
        let recording = Recording::open(dir)?;
        let all = recording.processes();
        let processes = &all[..all.len().min(PROCESSES_MAX)];
        let mut problems: Vec<String> = recording.problems().iter().map(ToString::to_string).collect();
        if processes.is_empty() {
            return Err(ReportError::Unreadable { dir: dir.display().to_string(), problems: problems.join("; ") });
        }
        if processes.len() < all.len() {
            problems.push(format!("only the first {PROCESSES_MAX} of {} processes are in this report", all.len()));
        }
        let clocks = Clocks::of(processes);
        let filter = options.filter.as_deref().map(regex).transpose()?;
        let between = options.between.as_ref().map(|moments| between(moments, &clocks)).transpose()?;
        let (processes, limits) = placed(processes, &clocks, between.as_ref(), &mut problems);
        // Without those that were left out: numbers of processes are places in this list.
        let clocks = Clocks::of(&processes);
        let sum = gather(&processes, &clocks, &limits, &Wanted { limits: None, filter, by: options.by });
        check(&sum, options, &clocks)?;
        let report = Building { processes: &processes, clocks: &clocks, cubins: Cubins::open(dir), options };
        Ok(report.build(dir, sum, between, problems))
    }
}

fn regex(text: &str) -> Result<Regex, ReportError> {
    Regex::new(text).map_err(|error| ReportError::Regex { text: text.to_owned(), why: error.to_string() })
}

fn between(moments: &[crate::Moment; 2], clocks: &Clocks) -> Result<Between, ReportError> {
    let began_ns = clocks.began_wall_ns.ok_or(ReportError::NoClock)?;
    let [from, to] = moments;
    let (from_wall_ns, to_wall_ns) = (from.wall_ns(began_ns), to.wall_ns(began_ns));
    if to_wall_ns <= from_wall_ns {
        return Err(ReportError::Reversed { first: from.text.clone(), second: to.text.clone() });
    }
    Ok(Between { from: from.text.clone(), to: to.text.clone(), from_wall_ns, to_wall_ns })
}

/// The processes whose clock is known, if a time is asked for, with that time by their own clocks.
fn placed(
    processes: &[Recorded],
    clocks: &Clocks,
    between: Option<&Between>,
    problems: &mut Vec<String>,
) -> (Vec<Recorded>, Vec<Option<[u64; 2]>>) {
    let Some(between) = between else { return (processes.to_vec(), vec![None; processes.len()]) };
    let (mut kept, mut limits) = (Vec::new(), Vec::new());
    for (number, one) in processes.iter().enumerate() {
        let at = |wall_ns| clocks.monotonic_ns(number, wall_ns);
        match (at(between.from_wall_ns), at(between.to_wall_ns)) {
            (Some(from), Some(to)) => {
                kept.push(one.clone());
                limits.push(Some([from, to]));
            }
            _ => problems.push(format!(
                "{} (pid {}) is left out: its recording does not say which of its times are between those",
                one.process.label(),
                one.process.pid
            )),
        }
    }
    (kept, limits)
}

fn check(sum: &Sum, options: &Options, clocks: &Clocks) -> Result<(), ReportError> {
    if let Some(filter) = &options.filter
        && !sum.names.values().any(|is_wanted| *is_wanted)
        && sum.kernels.is_empty()
        && !sum.names.is_empty()
    {
        let example = sum.names.keys().map(Name::readable).min().unwrap_or_default();
        return Err(ReportError::NothingMatches { text: filter.clone(), kernels: sum.names.len(), example });
    }
    if options.between.is_some() && sum.events == 0 {
        let began_wall_ns = clocks.began_wall_ns.unwrap_or(0);
        let end_ns = |one: &ProcessSum| {
            let end_ns = one.status.as_ref().map(|status| status.time_ns)?;
            Some(end_ns.saturating_sub(clocks.began_ns(one.number)?))
        };
        let span_ns = sum.processes.iter().filter_map(end_ns).max().unwrap_or(0);
        return Err(ReportError::NothingBetween { span_s: span_ns as f64 / 1e9, began: rfc3339_of(began_wall_ns) });
    }
    Ok(())
}

struct Building<'a> {
    processes: &'a [Recorded],
    clocks: &'a Clocks,
    cubins: Cubins,
    options: &'a Options,
}

impl Building<'_> {
    fn build(&self, dir: &Path, sum: Sum, between: Option<Between>, mut problems: Vec<String>) -> Report {
        let labels = labels(self.processes);
        let kernel_ns = sum.all_kernels.total_ns();
        let ranks = ranks::compare(&sum, &labels);
        problems.extend(sum.problems.iter().map(ToString::to_string));
        problems.extend(self.cut_off(&sum, &labels));
        Report {
            format: "gputap report",
            version: 1,
            dir: dir.display().to_string(),
            began: self.clocks.began_wall_ns.map(rfc3339_of),
            filter: self.options.filter.clone(),
            between,
            percentile_error: crate::PERCENTILE_ERROR,
            events: sum.events,
            kernel_ns,
            kernels: self.kernels(&sum),
            by: self.options.by,
            groups: self.groups(&sum, &labels),
            copies: copies(&sum),
            memsets: sum.sets.sets,
            memset_bytes: sum.sets.bytes,
            memset_time: sum.sets.total,
            graphs: sum.graphs,
            devices: self.devices(&sum, &labels),
            memory: memory(&sum, &labels),
            straggler: ranks.straggler,
            processes: self.processes(&sum, &ranks.rows, &labels),
            flags: sum.flags,
            without_time: sum.placeless,
            problems,
        }
    }

    fn cut_off(&self, sum: &Sum, labels: &[String]) -> Vec<String> {
        let is_cut = |one: &&ProcessSum| one.status.as_ref().is_none_or(|status| !status.complete);
        let cut = sum.processes.iter().filter(is_cut);
        cut.map(|one| {
            let label = &labels[one.number];
            format!("the recording of {label} was not ended in order: what came after its last block is not known")
        })
        .collect()
    }

    fn kernels(&self, sum: &Sum) -> Vec<KernelRow> {
        let all_ns = sum.all_kernels.total_ns();
        let mut rows: Vec<KernelRow> = sum.kernels.iter().map(|(name, one)| self.kernel(name, one, all_ns)).collect();
        rows.sort_by(|a, b| {
            b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)).then_with(|| a.key.cmp(&b.key))
        });
        rows
    }

    fn kernel(&self, name: &Name, sum: &KernelSum, all_ns: u64) -> KernelRow {
        let key = match name {
            Name::Mangled(mangled) => Some(mangled.to_vec()),
            Name::Unnamed | Name::Other => None,
        };
        let cubins = key.as_deref().map_or(&[][..], |mangled| self.cubins.of_kernel(mangled));
        KernelRow {
            name: name.readable(),
            mangled: String::from_utf8_lossy(key.as_deref().unwrap_or_default()).into_owned(),
            cubins: cubins.iter().map(|crc32| format!("{crc32:08x}")).collect(),
            key,
            ..figures(&sum.stats, all_ns)
        }
    }

    fn groups(&self, sum: &Sum, labels: &[String]) -> Vec<GroupRow> {
        let all_ns = sum.all_kernels.total_ns();
        let mut by_label: BTreeMap<String, (KernelStats, Vec<PartRow>)> = BTreeMap::new();
        let mut add = |label: String, stats: &KernelStats, parts: &[PartRow]| {
            let (sum, sum_parts) = by_label.entry(label).or_default();
            sum.merge(stats);
            sum_parts.extend_from_slice(parts);
        };
        match self.options.by {
            None => {}
            Some(By::Cubin) => {
                for (name, one) in &sum.kernels {
                    let part =
                        PartRow { name: name.readable(), calls: one.stats.calls(), total_ns: one.stats.total_ns() };
                    add(self.cubins.label(name), &one.stats, &[part]);
                }
            }
            Some(by) => {
                for group in sum.groups.iter().filter(|group| group.key.is_none() == (by == By::Rank)) {
                    add(self.group_label(group, labels), &group.stats, &group.parts);
                }
            }
        }
        let row = |(label, (stats, mut kernels)): (String, (KernelStats, Vec<PartRow>))| {
            kernels.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
            kernels.truncate(10);
            GroupRow { label, figures: figures(&stats, all_ns), kernels }
        };
        let mut rows: Vec<GroupRow> = by_label.into_iter().map(row).collect();
        rows.retain(|row| row.figures.calls > 0);
        rows.sort_by(|a, b| b.figures.total_ns.cmp(&a.figures.total_ns).then_with(|| a.label.cmp(&b.label)));
        rows
    }

    fn group_label(&self, group: &GroupSum, labels: &[String]) -> String {
        let label = &labels[group.process];
        match group.key {
            None => label.clone(),
            Some(Key::Stream { device_id, context_id, stream_id }) => {
                format!("{label}, GPU {device_id}, context {context_id}, stream {stream_id}")
            }
            Some(Key::Device { device_id }) => device_label(&self.processes[group.process].process, device_id),
            Some(Key::GraphNodes { graph_id: 0 }) => format!("{label}, in no graph"),
            Some(Key::GraphNodes { graph_id }) => format!("{label}, graph {graph_id}"),
            Some(Key::WholeGraph { graph_id }) => format!("{label}, graph {graph_id} as a whole"),
            Some(Key::Other) => format!("{label}, others"),
        }
    }

    /// In the order of the recording, whichever were read first.
    fn processes(&self, sum: &Sum, ranks: &[ranks::Row], labels: &[String]) -> Vec<ProcessRow> {
        let mut rows: Vec<(usize, ProcessRow)> = Vec::new();
        for (one, &rank) in sum.processes.iter().zip(ranks) {
            let (process, label) = (&self.processes[one.number].process, &labels[one.number]);
            rows.push((one.number, process_row(process, label, one, rank)));
        }
        rows.sort_by_key(|(number, _)| *number);
        rows.into_iter().map(|(_, row)| row).collect()
    }

    fn devices(&self, sum: &Sum, labels: &[String]) -> Vec<DeviceReport> {
        let mut devices: Vec<&DeviceSum> = sum.devices.iter().collect();
        devices.sort_by_key(|device| (device.key.process, device.key.ordinal));
        devices.into_iter().map(|device| self.device(device, labels)).collect()
    }

    fn device(&self, device: &DeviceSum, labels: &[String]) -> DeviceReport {
        let process = &self.processes[device.key.process].process;
        let busied = &device.busied;
        let window_ns = busied.window_ns[1] - busied.window_ns[0];
        let idle_ns = window_ns - busied.any_ns.min(window_ns);
        let name = process.devices.iter().find(|one| one.ordinal == device.key.ordinal).map(|one| one.name.clone());
        DeviceReport {
            label: device_label(process, device.key.ordinal),
            name: name.unwrap_or_default(),
            processes: device.processes.iter().map(|&number| labels[number].clone()).collect(),
            window_ns,
            busy_ns: busied.kernels_ns,
            busy: ratio(busied.kernels_ns, window_ns),
            busy_with_copies_ns: busied.any_ns,
            idle_ns,
            idle: ratio(idle_ns, window_ns),
            gap_count: busied.gap_count,
            gaps: device.gaps.clone(),
            late: busied.late,
            late_ns: busied.late_ns,
        }
    }
}

fn device_label(process: &Process, ordinal: u32) -> String {
    format!("{} GPU {ordinal}", process.host)
}

/// What people call the processes; those that would be called the same, with host and pid.
fn labels(processes: &[Recorded]) -> Vec<String> {
    let plain: Vec<String> = processes.iter().map(|one| one.process.label()).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    plain.iter().for_each(|label| *counts.entry(label).or_default() += 1);
    let label = |(label, one): (&String, &Recorded)| match counts[label.as_str()] {
        1 => label.clone(),
        _ => format!("{label} ({}, pid {})", one.process.host, one.process.pid),
    };
    plain.iter().zip(processes).map(label).collect()
}

fn figures(stats: &KernelStats, all_ns: u64) -> KernelRow {
    let row = stats.row(all_ns);
    KernelRow {
        calls: row.calls,
        flagged: row.flagged,
        total_ns: row.total_ns,
        share: row.share,
        mean_ns: row.mean_ns,
        min_ns: row.min_ns,
        p50_ns: row.p50_ns,
        p99_ns: row.p99_ns,
        max_ns: row.max_ns,
        grid: row.grid,
        block: row.block,
        shape_varies: stats.shape_varies(),
        registers_per_thread: row.registers_per_thread,
        static_shared_bytes: row.static_shared_bytes,
        dynamic_shared_bytes: row.dynamic_shared_bytes,
        ..KernelRow::default()
    }
}

fn copies(sum: &Sum) -> Vec<CopyRow> {
    let row = |(direction, copied): (&'static str, gputap_reader::model::Copied)| CopyRow {
        direction,
        copies: copied.copies,
        flagged: copied.flagged,
        bytes: copied.bytes,
        total_ns: copied.total_ns,
        // Bytes a nanosecond are 1e9 bytes a second.
        gb_per_s: (copied.total_ns > 0).then(|| copied.timed_bytes as f64 / copied.total_ns as f64),
    };
    let mut rows: Vec<CopyRow> = sum.copies.by_direction().into_iter().map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    rows
}

fn memory(sum: &Sum, labels: &[String]) -> Vec<MemoryRow> {
    let of_process = |one: &ProcessSum| {
        let in_use = one.memory.clone();
        let uncertain =
            in_use.unknown_releases.saturating_add(in_use.missed_releases).saturating_add(in_use.not_tracked);
        let label = labels[one.number].clone();
        in_use.rows.into_iter().map(move |row| MemoryRow {
            process: label.clone(),
            device_id: row.device_id,
            kind: row.kind,
            high_water_bytes: row.high_water_bytes,
            in_use_bytes: row.in_use_bytes,
            allocations: row.allocations,
            releases: row.releases,
            uncertain,
        })
    };
    sum.processes.iter().flat_map(of_process).collect()
}

fn process_row(process: &Process, label: &str, sum: &ProcessSum, rank: ranks::Row) -> ProcessRow {
    ProcessRow {
        label: label.to_owned(),
        pid: process.pid,
        host: process.host.clone(),
        rank: process.rank,
        command: process.command.clone(),
        span_ns: sum.span_ns.map_or(0, |[first, last]| last - first),
        calls: rank.calls,
        kernel_ns: rank.kernel_ns,
        collective_ns: rank.collective_ns,
        slowdown: rank.slowdown,
        flagged: sum.flagged,
        loss: loss(sum),
    }
}

fn loss(sum: &ProcessSum) -> LossRow {
    let Some(status) = &sum.status else { return LossRow::default() };
    LossRow {
        known: status.complete && status.lost.iter().all(|loss| !loss.unknown),
        complete: status.complete,
        attempted: status.attempted,
        delivered: status.delivered,
        pending: status.pending,
        lost: status.lost.clone(),
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
