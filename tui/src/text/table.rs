//! Plain tables for pipes, files and terminals that cannot do more.

use std::fmt::Write;

use gputap_reader::model::snapshot::{KernelRow, Snapshot};

use super::{
    bytes, bytes_per_s, clean, count, cupti_version, duration_ns, kernel_name, loss, pad, per_s, percent, work,
};

const NAME_MAX_COLUMNS: usize = 120;

/// One tap: who, how, and its longest kernels.
pub fn of_snapshot(snapshot: &Snapshot, kernels_max: usize) -> String {
    let target = &snapshot.target;
    let mut text = format!("{}   pid {}   {}", clean(&target.command), target.pid, target.state);
    if !target.reason.is_empty() {
        text += &format!(" ({})", clean(&target.reason));
    }
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "   CUPTI {}   kernels {}   GPU busy {}",
        cupti_version(target.cupti_version),
        per_s(snapshot.kernels_per_s),
        percent(snapshot.gpu_busy)
    );
    text += &(loss::line(&snapshot.counts) + "\n");
    for line in work::in_flight(&snapshot.in_flight).into_iter().chain(work::lines(snapshot)) {
        text += &(line + "\n");
    }
    for note in &snapshot.notes {
        text += &format!("note: {}\n", clean(note));
    }
    text += &kernels(&snapshot.kernels, kernels_max);
    text
}

/// Kernels by time, the longest first.
pub fn kernels(rows: &[KernelRow], rows_max: usize) -> String {
    let mut text = line(["SHARE", "TOTAL", "CALLS", "MEAN", "P50", "P99", "MAX"].map(str::to_owned), "KERNEL");
    let time = |ns: u64| duration_ns(ns as f64);
    for row in rows.iter().take(rows_max) {
        let cells = [
            percent(row.share),
            time(row.total_ns),
            count(row.calls),
            duration_ns(row.mean_ns),
            time(row.p50_ns),
            time(row.p99_ns),
            time(row.max_ns),
        ];
        text += &line(cells, &kernel_name(&row.name, NAME_MAX_COLUMNS));
    }
    if rows.len() > rows_max {
        text += &format!("        and {} more kernels\n", rows.len() - rows_max);
    }
    text
}

/// Copies by direction, what was loaded, and all else that was recorded, a line each where there was any.
pub fn others(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for row in &snapshot.copies {
        let rate = bytes_per_s(row.bytes, row.total_ns);
        text += &format!("{} {} in {} copies, {rate}\n", row.direction, bytes(row.bytes), count(row.copies));
    }
    if snapshot.module_counts.stored > 0 {
        let counts = &snapshot.module_counts;
        text += &format!("{} cubins, {} in all", count(counts.stored), bytes(counts.bytes));
        if loss::any(&counts.refused) {
            text += &format!("; not kept: {}", loss::reasons(&counts.refused));
        }
        text.push('\n');
    }
    let further = work::lines(snapshot).into_iter().chain(work::in_flight(&snapshot.in_flight));
    further.fold(text, |text, line| text + &line + "\n")
}

/// Rows of equal length; each column as wide as its widest cell, the last one as it is.
pub fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| super::width(cell)).max();
    let widths: Vec<usize> = (0..columns).map(|column| widest(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| pad(cell, width, false));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn line(cells: [String; 7], name: &str) -> String {
    let numbers: Vec<String> = cells.iter().map(|cell| pad(cell, 8, true)).collect();
    format!("{} {name}\n", numbers.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let rows = [vec!["PID".to_owned(), "STATE".to_owned()], vec!["12345".to_owned(), "核".to_owned()]];
        assert_eq!(aligned(&rows), "PID    STATE\n12345  核\n");
    }

    #[test]
    fn a_table_says_what_it_leaves_out() {
        let rows = vec![KernelRow { name: "k\n".into(), calls: 3, ..Default::default() }; 5];
        let text = kernels(&rows, 2);
        assert_eq!(text.lines().count(), 4);
        assert!(text.contains("and 3 more kernels"), "{text}");
    }
}
