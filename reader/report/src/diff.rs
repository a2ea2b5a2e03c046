//! What has changed from one recording to another.

use crate::report::{KernelRow, Report};
use serde::Serialize;
use std::collections::BTreeMap;

/// Kernels with less of the total time than this do not fail a gate.
pub const GATE_SHARE: f64 = 0.01;

/// Two reports beside each other.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    pub format: &'static str,
    pub version: u32,
    pub before: String,
    pub after: String,
    pub before_ns: u64,
    pub after_ns: u64,
    /// Of the total time, 0.05 for 5 % more; absent where there was none before.
    pub change: Option<f64>,
    /// Of both, what has changed most first.
    pub kernels: Vec<Change>,
    pub new: Vec<KernelRow>,
    pub vanished: Vec<KernelRow>,
    pub recompiled: Vec<Recompiled>,
    /// Of both recordings.
    pub problems: Vec<String>,
}

/// A kernel of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    pub name: String,
    pub mangled: String,
    pub calls_before: u64,
    pub calls_after: u64,
    pub total_before_ns: u64,
    pub total_after_ns: u64,
    /// More or less of all calls together.
    pub total_change_ns: i64,
    pub mean_before_ns: f64,
    pub mean_after_ns: f64,
    /// Of a call's time, 0.05 for 5 % more; absent where no call before had a time.
    pub mean_change: Option<f64>,
    /// Of the total time, the greater one of before and after.
    pub share: f64,
}

/// A kernel that another cubin defines now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Recompiled {
    pub name: String,
    pub before: Vec<String>,
    pub after: Vec<String>,
}

/// What a gate found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gate {
    pub fail_over: f64,
    /// A line each; none where the gate is passed.
    pub failures: Vec<String>,
}

impl Diff {
    pub fn of(before: &Report, after: &Report) -> Diff {
        let mut old: BTreeMap<Key<'_>, &KernelRow> = before.kernels.iter().map(|row| (key(row), row)).collect();
        let (mut kernels, mut new, mut recompiled) = (Vec::new(), Vec::new(), Vec::new());
        for row in &after.kernels {
            match old.remove(&key(row)) {
                Some(was) => {
                    kernels.push(change(was, row));
                    recompiled.extend(recompilation(was, row));
                }
                None => new.push(row.clone()),
            }
        }
        kernels.sort_by(|a, b| {
            let size = |one: &Change| one.total_change_ns.unsigned_abs();
            size(b).cmp(&size(a)).then_with(|| a.name.cmp(&b.name))
        });
        let mut vanished: Vec<KernelRow> = old.into_values().cloned().collect();
        vanished.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
        Diff {
            format: "gputap diff",
            version: 1,
            before: before.dir.clone(),
            after: after.dir.clone(),
            before_ns: before.kernel_ns,
            after_ns: after.kernel_ns,
            change: relative(before.kernel_ns as f64, after.kernel_ns as f64),
            kernels,
            new,
            vanished,
            recompiled,
            problems: problems(before).chain(problems(after)).collect(),
        }
    }

    /// Fails where the total time, or that of a call of a kernel with more than `GATE_SHARE` of it, is longer by more than
    /// `fail_over` (0.05 for 5 %).
    pub fn gate(&self, fail_over: f64) -> Gate {
        let percent = |share: f64| format!("{:.2} %", share * 100.0);
        let mut failures = Vec::new();
        if self.before_ns == 0 {
            failures.push(format!("{} has no GPU time to compare with", self.before));
        }
        if let Some(change) = self.change
            && change > fail_over
        {
            failures.push(format!("total GPU time is {} longer, more than {}", percent(change), percent(fail_over)));
        }
        for one in self.kernels.iter().filter(|one| one.share > GATE_SHARE) {
            if let Some(change) = one.mean_change
                && change > fail_over
            {
                let (slower, limit) = (percent(change), percent(fail_over));
                failures.push(format!("a call of {} takes {slower} longer, more than {limit}", one.name));
            }
        }
        Gate { fail_over, failures }
    }
}

/// What could not be read, and what was lost: times that are missing are no change.
fn problems(report: &Report) -> impl Iterator<Item = String> {
    let lost = report.processes.iter().filter_map(|one| {
        let lost = one.loss.lost.iter().fold(0_u64, |sum, lost| sum.saturating_add(lost.count));
        let label = &one.label;
        match (one.loss.known, lost) {
            (true, 0) => None,
            (true, lost) => Some(format!("{lost} records of {label} were lost: their time is missing")),
            (false, lost) => Some(format!("how many records of {label} were lost is not known, {lost} at least")),
        }
    });
    report.problems.iter().cloned().chain(lost).map(|problem| format!("{}: {problem}", report.dir))
}

/// The bytes of its name; what has no name, by what stands for it.
type Key<'a> = (Option<&'a [u8]>, &'a str);

fn key(row: &KernelRow) -> Key<'_> {
    match &row.key {
        Some(bytes) => (Some(bytes), ""),
        None => (None, &row.name),
    }
}

fn change(was: &KernelRow, is: &KernelRow) -> Change {
    Change {
        name: is.name.clone(),
        mangled: is.mangled.clone(),
        calls_before: was.calls,
        calls_after: is.calls,
        total_before_ns: was.total_ns,
        total_after_ns: is.total_ns,
        total_change_ns: is.total_ns.wrapping_sub(was.total_ns) as i64,
        mean_before_ns: was.mean_ns,
        mean_after_ns: is.mean_ns,
        mean_change: relative(was.mean_ns, is.mean_ns),
        share: was.share.max(is.share),
    }
}

fn recompilation(was: &KernelRow, is: &KernelRow) -> Option<Recompiled> {
    let sorted = |row: &KernelRow| {
        let mut cubins = row.cubins.clone();
        cubins.sort();
        cubins
    };
    let (before, after) = (sorted(was), sorted(is));
    // Where one recording does not say, nothing is known to have changed.
    let changed = !before.is_empty() && !after.is_empty() && before != after;
    changed.then(|| Recompiled { name: is.name.clone(), before, after })
}

fn relative(before: f64, after: f64) -> Option<f64> {
    (before > 0.0).then(|| after / before - 1.0)
}
