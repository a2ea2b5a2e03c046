use gputap_reader::model::snapshot::CopyRow;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::grid::{Cell, Grid, Spec, bar, spec};
use super::{line_at, memory};
use crate::text;
use crate::view::order::Column;
use crate::view::state::View;
use crate::view::theme::Theme;

const SPECS: &[Spec] = &[
    spec(Column::Direction, "DIRECTION", 10, false, 0),
    spec(Column::Bytes, "BYTES", 9, true, 1),
    spec(Column::Copies, "COPIES", 8, true, 3),
    spec(Column::Time, "TIME", 8, true, 4),
    spec(Column::MeanSize, "MEAN SIZE", 10, true, 5),
    spec(Column::Rate, "RATE", 10, true, 2),
    spec(Column::Share, "OF ALL BYTES", 0, false, 0),
];
const BAR_MAX_COLUMNS: usize = 40;

pub fn draw(frame: &mut Frame, area: Rect, view: &View, theme: Theme) {
    let grid = Grid {
        specs: SPECS,
        last_min: usize::from(area.width) / 6,
        sort: view.sort(),
        selected: view.selected(),
        offset: view.table().offset,
    };
    let snapshot = &view.snapshot;
    let all: u64 = snapshot.copies.iter().fold(0, |sum, row| sum.saturating_add(row.bytes));
    grid.draw(frame, area, theme, &view.rows, |row, column, width| {
        cell(&snapshot.copies[row], column, width, all, theme)
    });
    let has_copies = !view.rows.is_empty();
    // Where there are copies, their titles and rows; then what there is beside.
    let shown = view.rows.len().saturating_sub(view.table().offset).max(1) as u16 + 1;
    if !has_copies {
        line_at(frame, area, 1, &Line::styled("no copy yet", theme.faint()));
    }
    let mut below = shown;
    if snapshot.memsets > 0 {
        let words = format!("{} memsets, {}", text::count(snapshot.memsets), text::bytes(snapshot.memset_bytes));
        line_at(frame, area, below, &Line::from(Span::styled(words, theme.faint())));
        below += 1;
    }
    below += 1;
    if below < area.height {
        let rest = Rect { y: area.y + below, height: area.height - below, ..area };
        memory::draw(frame, rest, snapshot, theme);
    }
}

fn cell(row: &CopyRow, column: Column, width: usize, all: u64, theme: Theme) -> Cell {
    let plain = Style::new();
    match column {
        Column::Direction => (words_for(&row.direction), theme.strong()),
        Column::Bytes => (text::bytes(row.bytes), plain),
        Column::Copies => (text::count(row.copies), plain),
        Column::Time => (text::duration_ns(row.total_ns as f64), plain),
        Column::MeanSize => (text::bytes(row.bytes / row.copies.max(1)), theme.faint()),
        Column::Rate => (text::bytes_per_s(row.bytes, row.total_ns), theme.good()),
        _ => (bar(row.bytes as f64 / all.max(1) as f64, width.min(BAR_MAX_COLUMNS)), theme.accent()),
    }
}

/// Device and host as people draw them.
fn words_for(direction: &str) -> String {
    direction.replacen("to", " → ", 1)
}
