use gputap_reader::model::snapshot::KernelRow;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::grid::{self, Cell, Grid, Spec, spec};
use crate::text;
use crate::view::order::Column;
use crate::view::state::{Job, View};
use crate::view::theme::Theme;

const SPECS: &[Spec] = &[
    spec(Column::Share, "SHARE", 12, false, 2),
    spec(Column::Total, "TOTAL", 8, true, 0),
    spec(Column::Calls, "CALLS", 8, true, 1),
    spec(Column::Mean, "MEAN", 6, true, 3),
    spec(Column::P50, "P50", 6, true, 6),
    spec(Column::P99, "P99", 6, true, 4),
    spec(Column::Min, "MIN", 6, true, 7),
    spec(Column::Max, "MAX", 6, true, 5),
    spec(Column::Shape, "GRID×BLOCK", 12, true, 8),
    spec(Column::Registers, "REGS", 4, true, 9),
    spec(Column::Name, "KERNEL", 0, false, 0),
];
/// Of the share column, for its bar.
const BAR_COLUMNS: usize = 6;
/// A tail this far beyond the median is worth a colour.
const LONG_TAIL: u64 = 4;

pub fn draw(frame: &mut Frame, area: Rect, view: &View, theme: Theme) {
    let grid = Grid {
        specs: SPECS,
        last_min: (usize::from(area.width) * 2 / 7).clamp(8, 80),
        sort: view.sort(),
        selected: view.selected(),
        offset: view.table().offset,
    };
    let kernels = &view.snapshot.kernels;
    let largest = kernels.iter().map(|row| row.share).fold(0.0, f64::max);
    grid.draw(frame, area, theme, &view.rows, |row, column, width| cell(&kernels[row], column, width, largest, theme));
    if view.rows.is_empty() {
        super::empty(frame, area, theme, &why_empty(view));
    }
}

/// `largest` is the share that fills the bar.
fn cell(row: &KernelRow, column: Column, width: usize, largest: f64, theme: Theme) -> Cell {
    let plain = Style::new();
    let time = |ns: u64| text::dense_duration_ns(ns as f64);
    match column {
        Column::Share => {
            let bar = grid::bar(row.share / largest, BAR_COLUMNS);
            let padding = BAR_COLUMNS - text::width(&bar);
            let percent = text::pad(&text::percent(row.share), 6, true);
            (format!("{bar}{:padding$}{percent}", ""), theme.accent())
        }
        Column::Total => (text::duration_ns(row.total_ns as f64), theme.strong()),
        Column::Calls => (text::count(row.calls), plain),
        Column::Mean => (text::dense_duration_ns(row.mean_ns), plain),
        Column::Min => (time(row.min_ns), theme.faint()),
        Column::Max => (time(row.max_ns), theme.faint()),
        Column::P50 => (time(row.p50_ns), plain),
        Column::P99 if row.p99_ns / LONG_TAIL > row.p50_ns => (time(row.p99_ns), theme.warning()),
        Column::P99 => (time(row.p99_ns), plain),
        Column::Shape => (text::shape(row.grid, row.block), theme.faint()),
        Column::Registers => (row.registers_per_thread.to_string(), theme.faint()),
        _ => (text::kernel_name(&row.name, width), plain),
    }
}

fn why_empty(view: &View) -> Vec<String> {
    let one = |words: &str| vec![words.to_owned()];
    if !view.filter.is_empty() && !view.snapshot.kernels.is_empty() {
        return vec![format!("no kernel matches \"{}\"", view.filter), "/ then Esc shows all".into()];
    }
    match (&view.job, view.snapshot.target.state.as_str()) {
        (Job::Ended(how), "waiting") => {
            vec![format!("the job ended without using CUDA ({how})"), "its output is under 8".into()]
        }
        (_, "waiting") => one("waiting for the job to start CUDA"),
        (_, "off") => vec!["the tap is off".into(), view.snapshot.target.reason.clone()],
        (_, "yielded") => one("the tap has given way to another profiler: gputap ctl PID resume"),
        _ if view.snapshot.target.alive => one("no kernel yet"),
        _ => one("no kernel was seen"),
    }
}
