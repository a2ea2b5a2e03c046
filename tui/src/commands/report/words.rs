//! A report as people read it.

use gputap_report::{CopyRow, DeviceReport, GapRow, GroupRow, KernelRow, LossRow, ProcessRow, Report};

use crate::text::{self, duration_ns, grouped, kernel_name, loss, percent, table};

const NAME_MAX_COLUMNS: usize = 100;
const GAP_NAME_COLUMNS: usize = 44;
const GAPS_SHOWN: usize = 5;

pub fn of(report: &Report, rows_max: usize) -> String {
    let sections = [
        head(report),
        kernels(report, rows_max),
        groups(report, rows_max),
        copies(report),
        devices(report),
        memory(report),
        ranks(report),
        losses(report),
    ];
    let filled: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    filled.join("\n")
}

fn time(ns: u64) -> String {
    duration_ns(ns as f64)
}

fn titles(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn head(report: &Report) -> String {
    let began = report.began.as_deref().map_or("at an unknown time".to_owned(), text::clean);
    let mut words = format!("{}: {} processes, began {began}\n", text::clean(&report.dir), report.processes.len());
    if let Some(between) = &report.between {
        let (from, to) = (text::clean(&between.from), text::clean(&between.to));
        words += &format!("only what started between {from} and {to}; busy time is cut there\n");
    }
    if let Some(filter) = &report.filter {
        words += &format!("only kernels that match {}\n", text::clean(filter));
    }
    words
}

fn kernels(report: &Report, rows_max: usize) -> String {
    let calls: u64 = report.kernels.iter().map(|row| row.calls).sum();
    let mut words =
        format!("{} kernels of {} names, {} of GPU time", grouped(calls), report.kernels.len(), time(report.kernel_ns));
    words += &format!(" (percentiles within {:.0} %)\n", report.percentile_error * 100.0);
    if report.kernels.is_empty() {
        return words;
    }
    let mut rows = vec![titles(&["SHARE", "CALLS", "TOTAL", "MEAN", "P50", "P99", "MAX", "GRID×BLOCK", "KERNEL"])];
    rows.extend(
        report.kernels.iter().take(limit(rows_max)).map(|row| kernel(row, &kernel_name(&row.name, NAME_MAX_COLUMNS))),
    );
    words += &table::aligned(&rows);
    words + &more(report.kernels.len(), rows_max, "kernels")
}

fn kernel(row: &KernelRow, name: &str) -> Vec<String> {
    let varies = if row.shape_varies { " …" } else { "" };
    let flagged =
        if row.flagged > 0 { format!("  [{} without good times]", grouped(row.flagged)) } else { String::new() };
    vec![
        percent(row.share),
        grouped(row.calls),
        time(row.total_ns),
        duration_ns(row.mean_ns),
        time(row.p50_ns),
        time(row.p99_ns),
        time(row.max_ns),
        text::shape(row.grid, row.block) + varies,
        name.to_owned() + &flagged,
    ]
}

fn groups(report: &Report, rows_max: usize) -> String {
    if report.by.is_none() {
        return String::new();
    }
    let mut rows = vec![titles(&["SHARE", "CALLS", "TOTAL", "MEAN", "P50", "P99", "MAX", "", "BY"])];
    for group in report.groups.iter().take(limit(rows_max)) {
        rows.push(group_row(group));
        rows.extend(group.kernels.iter().take(3).map(|part| {
            let name = kernel_name(&part.name, NAME_MAX_COLUMNS - 4);
            let cells = [String::new(), grouped(part.calls), time(part.total_ns)];
            let blank = std::iter::repeat_n(String::new(), 5);
            cells.into_iter().chain(blank).chain([format!("  {name}")]).collect()
        }));
    }
    table::aligned(&rows) + &more(report.groups.len(), rows_max, "rows")
}

fn group_row(group: &GroupRow) -> Vec<String> {
    let mut row = kernel(&group.figures, &text::clip(&group.label, NAME_MAX_COLUMNS));
    row[7].clear();
    row
}

fn copies(report: &Report) -> String {
    let mut words = String::new();
    if !report.copies.is_empty() {
        let mut rows = vec![titles(&["COPIES", "NUMBER", "BYTES", "TIME", "RATE"])];
        rows.extend(report.copies.iter().map(copy));
        words += &table::aligned(&rows);
    }
    if report.memsets > 0 {
        let (number, bytes) = (grouped(report.memsets), text::bytes(report.memset_bytes));
        words += &format!("{number} sets of memory, {bytes}, {}\n", time(report.memset_time.total_ns));
    }
    if report.graphs.count > 0 {
        words += &format!("{} graphs as a whole, {}\n", grouped(report.graphs.count), time(report.graphs.total_ns));
    }
    words
}

fn copy(row: &CopyRow) -> Vec<String> {
    let rate = row.gb_per_s.map_or("-".to_owned(), |rate| format!("{rate:.2} GB/s"));
    let flagged =
        if row.flagged > 0 { format!(" ({} without good times)", grouped(row.flagged)) } else { String::new() };
    vec![row.direction.to_owned(), grouped(row.copies), text::bytes(row.bytes), time(row.total_ns), rate + &flagged]
}

fn devices(report: &Report) -> String {
    report.devices.iter().map(device).collect()
}

fn device(device: &DeviceReport) -> String {
    let mut words = format!(
        "{} ({}): kernels ran {} of {} ({}), nothing at all {} ({}), {} gaps\n",
        text::clean(&device.label),
        text::clean(&device.processes.join(", ")),
        time(device.busy_ns),
        time(device.window_ns),
        percent(device.busy),
        time(device.idle_ns),
        percent(device.idle),
        grouped(device.gap_count)
    );
    if device.late > 0 {
        let (late, at_most) = (grouped(device.late), time(device.late_ns));
        words += &format!("  {late} records came too late to be placed: it was busy for up to {at_most} more\n");
    }
    device.gaps.iter().take(GAPS_SHOWN).fold(words, |words, row| words + &gap(row))
}

fn gap(gap: &GapRow) -> String {
    let name = |name: &Option<String>| match name {
        Some(name) => kernel_name(name, GAP_NAME_COLUMNS),
        None => "(the edge of the time asked for)".to_owned(),
    };
    let (length, before, after) = (time(gap.duration_ns), name(&gap.before), name(&gap.after));
    format!("  idle {length} at {:.3} s, after {before}, before {after}\n", gap.start_s)
}

fn memory(report: &Report) -> String {
    if report.memory.is_empty() {
        return String::new();
    }
    let mut rows = vec![titles(&["MEMORY", "GPU", "KIND", "HIGH WATER", "AT THE END", "ALLOCATIONS", "RELEASES"])];
    rows.extend(report.memory.iter().map(|row| {
        vec![
            text::clean(&row.process),
            row.device_id.to_string(),
            row.kind.clone(),
            text::bytes(row.high_water_bytes),
            text::bytes(row.in_use_bytes),
            grouped(row.allocations),
            grouped(row.releases),
        ]
    }));
    let uncertain: u64 = report.memory.iter().map(|row| row.uncertain).max().unwrap_or(0);
    let doubt = match uncertain {
        0 => String::new(),
        number => {
            format!("  {} allocations or releases have no counterpart: memory may be off by them\n", grouped(number))
        }
    };
    table::aligned(&rows) + &doubt
}

fn ranks(report: &Report) -> String {
    let mut rows =
        vec![titles(&["PROCESS", "PID", "HOST", "CALLS", "KERNELS", "IN COLLECTIVES", "SLOWER BY", "COMMAND"])];
    rows.extend(report.processes.iter().map(rank));
    let mut words = table::aligned(&rows);
    match &report.straggler {
        Some(one) => {
            words += &format!(
                "{} holds the others up: its kernels but for collectives take {} longer; most of it is {} ({} longer)\n",
                text::clean(&one.label),
                percent(one.slowdown),
                kernel_name(&one.kernel, NAME_MAX_COLUMNS),
                percent(one.kernel_slowdown)
            );
        }
        None if report.processes.iter().filter(|one| one.slowdown.is_some()).count() > 1 => {
            words += "no rank holds the others up\n";
        }
        None => {}
    }
    words
}

fn rank(row: &ProcessRow) -> Vec<String> {
    let slower = row.slowdown.map_or("-".to_owned(), |slowdown| format!("{:.1}%", slowdown * 100.0));
    vec![
        text::clean(&row.label),
        row.pid.to_string(),
        text::clean(&row.host),
        grouped(row.calls),
        time(row.kernel_ns),
        time(row.collective_ns),
        slower,
        text::clip(&row.command.join(" "), 60),
    ]
}

fn losses(report: &Report) -> String {
    let mut words = String::new();
    for one in &report.processes {
        words += &format!("{}: {}\n", text::clean(&one.label), lost(&one.loss));
    }
    if report.flags.sum() > 0 {
        let (all, kinds) = (grouped(report.flags.sum()), loss::flags(&report.flags));
        words += &format!("odd times {all} ({kinds}): counted as calls, in no time\n");
    }
    if report.without_time > 0 {
        words += &format!("{} records without any time are left out\n", grouped(report.without_time));
    }
    report.problems.iter().fold(words, |words, problem| words + &format!("problem: {}\n", text::clean(problem)))
}

fn lost(row: &LossRow) -> String {
    if row.attempted == 0 && row.delivered == 0 && row.lost.is_empty() && !row.known {
        return "loss unknown: the recording has no word on it".to_owned();
    }
    let number = row.lost.iter().fold(0_u64, |sum, lost| sum.saturating_add(lost.count));
    let reasons: Vec<String> = row.lost.iter().filter(|lost| lost.count > 0 || lost.unknown).map(reason).collect();
    let mut words = format!("lost {}", grouped(number));
    if !row.known {
        words += " or more";
    }
    if !reasons.is_empty() {
        words += &format!(" ({})", reasons.join(", "));
    }
    words += &format!(
        "   attempted {}   delivered {}   pending {}",
        grouped(row.attempted),
        grouped(row.delivered),
        grouped(row.pending)
    );
    if !row.complete {
        words += "   what came after this is unknown";
    }
    words
}

fn reason(lost: &gputap_report::Loss) -> String {
    let reason = text::clip(&lost.reason, 40);
    match (lost.count, lost.unknown) {
        (0, true) => format!("{reason} unknown"),
        (count, true) => format!("{reason} {} or more", grouped(count)),
        (count, false) => format!("{reason} {}", grouped(count)),
    }
}

fn limit(rows_max: usize) -> usize {
    if rows_max == 0 { usize::MAX } else { rows_max }
}

fn more(rows: usize, rows_max: usize, what: &str) -> String {
    match rows.saturating_sub(limit(rows_max)) {
        0 => String::new(),
        left => format!("and {left} more {what}; --rows 0 shows all\n"),
    }
}
