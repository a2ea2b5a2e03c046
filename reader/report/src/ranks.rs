//! Which rank the others wait for.
//!
//! Ranks that meet in collectives all take as long as the slowest, and the others spend the difference in the collective. So
//! their other kernels are compared, by the call, those that every rank ran: a rank's slowdown is how much longer it would
//! take for the median rank's calls than the median of the ranks.

use crate::report::Straggler;
use crate::sum::{KernelSum, Name, OfProcess, Sum};

/// From here on a rank is called a straggler: what ranks differ by without a cause is less.
const STRAGGLES_FROM: f64 = 0.03;

/// Of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    pub calls: u64,
    pub kernel_ns: u64,
    pub collective_ns: u64,
    pub slowdown: Option<f64>,
}

/// All processes beside each other.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    /// In the order of the sum's processes.
    pub rows: Vec<Row>,
    pub straggler: Option<Straggler>,
}

/// A kernel that all ranks ran.
struct Common<'a> {
    name: &'a Name,
    calls: f64,
    median_ns: f64,
    /// A call's mean, by rank.
    mean_ns: Vec<f64>,
}

/// Whether a kernel is one in which ranks wait for each other.
pub fn is_collective(name: &Name) -> bool {
    let Name::Mangled(mangled) = name else { return false };
    let has = |word: &[u8]| mangled.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    mangled.len() <= 4096 && (has(b"nccl") || has(b"nvshmem"))
}

pub fn compare(sum: &Sum, labels: &[String]) -> Ranks {
    let position = |number: usize| sum.processes.iter().position(|one| one.number == number);
    let mut rows = vec![Row::default(); sum.processes.len()];
    for (name, kernel) in &sum.kernels {
        for (at, one) in kernel.by_process.iter().filter_map(|one| Some((position(one.number)?, one))) {
            let row = &mut rows[at];
            row.calls += one.calls;
            row.kernel_ns = row.kernel_ns.saturating_add(one.total_ns);
            if is_collective(name) {
                row.collective_ns = row.collective_ns.saturating_add(one.total_ns);
            }
        }
    }
    // A loader of data, say, is a process, and no rank.
    let ranks: Vec<usize> = (0..rows.len()).filter(|&at| rows[at].calls > 0).collect();
    let common = common(sum, ranks.len());
    let whole_ns: f64 = common.iter().map(|one| one.calls * one.median_ns).sum();
    if whole_ns <= 0.0 {
        return Ranks { rows, straggler: None };
    }
    for (rank, &at) in ranks.iter().enumerate() {
        let own_ns: f64 = common.iter().map(|one| one.calls * one.mean_ns[rank]).sum();
        rows[at].slowdown = Some(own_ns / whole_ns - 1.0);
    }
    let straggler = straggler(sum, labels, &ranks, &rows, &common);
    Ranks { rows, straggler }
}

/// What every one of `ranks` ranks ran, collectives left out.
fn common(sum: &Sum, ranks: usize) -> Vec<Common<'_>> {
    let ran_by_all = |kernel: &KernelSum| kernel.by_process.iter().filter(|one| one.timed > 0).count() == ranks;
    let kernels = sum.kernels.iter().filter(|(name, kernel)| ranks > 1 && ran_by_all(kernel) && !is_collective(name));
    let mut common: Vec<Common<'_>> = kernels.map(|(name, kernel)| of_all(name, &kernel.by_process)).collect();
    // Sums of floating point depend on their order.
    common.sort_by(|a, b| a.name.cmp(b.name));
    common
}

fn of_all<'a>(name: &'a Name, by_process: &[OfProcess]) -> Common<'a> {
    let mean_ns: Vec<f64> = by_process.iter().map(|one| one.total_ns as f64 / one.timed as f64).collect();
    let calls: Vec<f64> = by_process.iter().map(|one| one.calls as f64).collect();
    Common { name, calls: median(&calls), median_ns: median(&mean_ns), mean_ns }
}

/// `ranks`: the places in `rows` of those that are compared.
fn straggler(sum: &Sum, labels: &[String], ranks: &[usize], rows: &[Row], common: &[Common<'_>]) -> Option<Straggler> {
    let slowdown = |rank: usize| rows[ranks[rank]].slowdown.unwrap_or(0.0);
    let rank = (0..ranks.len()).max_by(|&a, &b| slowdown(a).total_cmp(&slowdown(b)))?;
    if slowdown(rank) < STRAGGLES_FROM {
        return None;
    }
    let added_ns = |one: &Common<'_>| one.calls * (one.mean_ns[rank] - one.median_ns);
    let worst = common.iter().max_by(|a, b| added_ns(a).total_cmp(&added_ns(b)))?;
    Some(Straggler {
        label: labels[sum.processes[ranks[rank]].number].clone(),
        slowdown: slowdown(rank),
        kernel: worst.name.readable(),
        kernel_slowdown: worst.mean_ns[rank] / worst.median_ns.max(1.0) - 1.0,
    })
}

/// The lower one of two in the middle: of two ranks the faster one is the measure.
fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0.0)
}
