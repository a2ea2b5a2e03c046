//! Which rows a table shows, in which order. Ties are settled by name, so that nothing jumps while one reads.

use std::cmp::Ordering;

use gputap_reader::model::snapshot::{CopyRow, KernelRow, ModuleRow, Snapshot};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Share,
    Total,
    Calls,
    Mean,
    Min,
    Max,
    P50,
    P99,
    Shape,
    Registers,
    Name,
    Direction,
    Copies,
    Bytes,
    Time,
    Rate,
    MeanSize,
    Size,
    Loads,
    Crc32,
    CuptiCrc,
    FunctionCount,
    Architecture,
    Functions,
}

/// The columns that `s` goes through, the first of which is where a table begins.
pub const KERNEL_SORTS: &[Column] = &[
    Column::Total,
    Column::Calls,
    Column::Mean,
    Column::Min,
    Column::Max,
    Column::P50,
    Column::P99,
    Column::Registers,
    Column::Name,
];
pub const COPY_SORTS: &[Column] =
    &[Column::Bytes, Column::Copies, Column::Time, Column::Rate, Column::MeanSize, Column::Direction];
pub const MODULE_SORTS: &[Column] = &[Column::Size, Column::Loads, Column::FunctionCount, Column::Crc32];

#[derive(Clone, Copy, Debug)]
pub struct Sort {
    pub column: Column,
    /// Against the natural direction: numbers from the largest, names from A.
    pub reversed: bool,
}

pub fn kernels(snapshot: &Snapshot, filter: &str, sort: Sort) -> Vec<usize> {
    let rows = &snapshot.kernels;
    let mut kept = matching(rows.iter().map(|row| row.name.as_str()), filter);
    kept.sort_by(|&a, &b| directed(compare_kernels(&rows[a], &rows[b], sort.column), sort).then(a.cmp(&b)));
    kept
}

pub fn copies(snapshot: &Snapshot, filter: &str, sort: Sort) -> Vec<usize> {
    let rows = &snapshot.copies;
    let mut kept = matching(rows.iter().map(|row| row.direction.as_str()), filter);
    kept.sort_by(|&a, &b| directed(compare_copies(&rows[a], &rows[b], sort.column), sort));
    kept
}

pub fn modules(snapshot: &Snapshot, filter: &str, sort: Sort) -> Vec<usize> {
    let rows = &snapshot.modules;
    let wanted = filter.to_lowercase();
    let matches = |row: &ModuleRow| {
        row.functions.iter().any(|name| name.to_lowercase().contains(&wanted))
            || row.crc32.is_some_and(|crc| format!("{crc:08x}").contains(&wanted))
    };
    let mut kept: Vec<usize> = (0..rows.len()).filter(|&i| wanted.is_empty() || matches(&rows[i])).collect();
    kept.sort_by(|&a, &b| directed(compare_modules(&rows[a], &rows[b], sort.column), sort).then(a.cmp(&b)));
    kept
}

/// What stays the same about a row while its numbers change.
pub fn kernel_key(row: &KernelRow) -> &str {
    if row.mangled.is_empty() { &row.name } else { &row.mangled }
}

fn matching<'a>(names: impl Iterator<Item = &'a str>, filter: &str) -> Vec<usize> {
    let wanted = filter.to_lowercase();
    let kept = names.enumerate().filter(|(_, name)| wanted.is_empty() || name.to_lowercase().contains(&wanted));
    kept.map(|(index, _)| index).collect()
}

fn directed(ordering: Ordering, sort: Sort) -> Ordering {
    if sort.reversed { ordering.reverse() } else { ordering }
}

fn compare_kernels(a: &KernelRow, b: &KernelRow, column: Column) -> Ordering {
    let by_column = match column {
        Column::Calls => b.calls.cmp(&a.calls),
        Column::Mean => b.mean_ns.total_cmp(&a.mean_ns),
        Column::Min => b.min_ns.cmp(&a.min_ns),
        Column::Max => b.max_ns.cmp(&a.max_ns),
        Column::P50 => b.p50_ns.cmp(&a.p50_ns),
        Column::P99 => b.p99_ns.cmp(&a.p99_ns),
        Column::Registers => b.registers_per_thread.cmp(&a.registers_per_thread),
        Column::Name => Ordering::Equal,
        _ => b.total_ns.cmp(&a.total_ns),
    };
    by_column.then_with(|| a.name.cmp(&b.name))
}

fn compare_copies(a: &CopyRow, b: &CopyRow, column: Column) -> Ordering {
    let rate = |row: &CopyRow| row.bytes as f64 / row.total_ns.max(1) as f64;
    let mean = |row: &CopyRow| row.bytes / row.copies.max(1);
    let by_column = match column {
        Column::Copies => b.copies.cmp(&a.copies),
        Column::Time => b.total_ns.cmp(&a.total_ns),
        Column::Rate => rate(b).total_cmp(&rate(a)),
        Column::MeanSize => mean(b).cmp(&mean(a)),
        Column::Direction => Ordering::Equal,
        _ => b.bytes.cmp(&a.bytes),
    };
    by_column.then_with(|| a.direction.cmp(&b.direction))
}

fn compare_modules(a: &ModuleRow, b: &ModuleRow, column: Column) -> Ordering {
    let by_column = match column {
        Column::Loads => b.loads.cmp(&a.loads),
        Column::FunctionCount => b.function_count.cmp(&a.function_count),
        Column::Crc32 => a.crc32.cmp(&b.crc32),
        _ => b.size_bytes.cmp(&a.size_bytes),
    };
    by_column.then_with(|| a.crc32.cmp(&b.crc32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        let row = |name: &str, total_ns, calls| KernelRow { name: name.into(), total_ns, calls, ..Default::default() };
        Snapshot { kernels: vec![row("b", 10, 3), row("a", 10, 9), row("C", 30, 1)], ..Default::default() }
    }

    #[test]
    fn sorts_with_ties_by_name() {
        let by = |column, reversed| kernels(&snapshot(), "", Sort { column, reversed });
        assert_eq!(by(Column::Total, false), [2, 1, 0]);
        assert_eq!(by(Column::Total, true), [0, 1, 2]);
        assert_eq!(by(Column::Calls, false), [1, 0, 2]);
        assert_eq!(by(Column::Name, false), [2, 1, 0]);
    }

    #[test]
    fn filters_without_regard_to_case() {
        let kept = kernels(&snapshot(), "c", Sort { column: Column::Total, reversed: false });
        assert_eq!(kept, [2]);
    }
}
