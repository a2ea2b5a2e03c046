use gputap_reader::model::snapshot::{ModuleRow, Snapshot};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::grid::{Cell, Grid, Spec, spec};
use crate::text;
use crate::view::order::Column;
use crate::view::state::View;
use crate::view::theme::Theme;

const SPECS: &[Spec] = &[
    spec(Column::Size, "SIZE", 8, true, 0),
    spec(Column::Loads, "LOADS", 6, true, 2),
    spec(Column::Crc32, "CRC32", 8, true, 1),
    spec(Column::Time, "LOADED AT", 9, true, 6),
    spec(Column::CuptiCrc, "CUPTI CRC", 16, true, 3),
    spec(Column::FunctionCount, "FUNCS", 6, true, 4),
    spec(Column::Architecture, "ARCH", 6, false, 5),
    spec(Column::Functions, "FUNCTIONS", 0, false, 0),
];

pub fn draw(frame: &mut Frame, area: Rect, view: &View, theme: Theme) {
    let grid = Grid {
        specs: SPECS,
        last_min: (usize::from(area.width) / 4).clamp(8, 60),
        sort: view.sort(),
        selected: view.selected(),
        offset: view.table().offset,
    };
    let modules = &view.snapshot.modules;
    grid.draw(frame, area, theme, &view.rows, |row, column, width| {
        cell(&view.snapshot, &modules[row], column, width, theme)
    });
    if view.rows.is_empty() {
        super::empty(frame, area, theme, &["no module yet".to_owned()]);
    }
}

fn cell(snapshot: &Snapshot, row: &ModuleRow, column: Column, width: usize, theme: Theme) -> Cell {
    let plain = Style::new();
    match column {
        Column::Size => (text::bytes(row.size_bytes), theme.strong()),
        Column::Loads => (text::count(row.loads), plain),
        Column::Time => (loaded_at(snapshot, row), theme.faint()),
        Column::Crc32 => match row.crc32 {
            Some(crc) => (format!("{crc:08x}"), plain),
            None => ("…".into(), theme.faint()),
        },
        Column::CuptiCrc => match row.cupti_crc {
            Some(crc) => (format!("{crc:x}"), theme.good()),
            None if row.cupti_crc_reason.is_empty() => ("…".into(), theme.faint()),
            None => ("none".into(), theme.faint()),
        },
        Column::FunctionCount => (text::count(row.function_count), plain),
        Column::Architecture => (row.architecture.clone(), theme.faint()),
        Column::Functions if !row.parse_error.is_empty() => (row.parse_error.clone(), theme.warning()),
        _ => (functions(&row.functions, width), plain),
    }
}

/// How long the process had been up.
fn loaded_at(snapshot: &Snapshot, row: &ModuleRow) -> String {
    if row.first_load_ns == 0 {
        return "-".into();
    }
    let ago_ns = snapshot.time_ns.saturating_sub(row.first_load_ns);
    text::duration_ns(snapshot.target.uptime_ns.saturating_sub(ago_ns) as f64)
}

fn functions(names: &[String], width: usize) -> String {
    let mut words = String::new();
    for name in names {
        if !words.is_empty() {
            words.push_str(", ");
        }
        words.push_str(&text::kernel_name(name, width));
        if text::width(&words) >= width {
            break;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_told_by_how_long_the_process_was_up() {
        let mut snapshot = Snapshot { time_ns: 100_000_000_000, ..Snapshot::default() };
        snapshot.target.uptime_ns = 60_000_000_000;
        let row = |first_load_ns| ModuleRow { first_load_ns, ..ModuleRow::default() };
        assert_eq!(loaded_at(&snapshot, &row(42_500_000_000)), "2.50 s");
        assert_eq!(loaded_at(&snapshot, &row(0)), "-");
        assert_eq!(loaded_at(&snapshot, &row(1)), "0 ns", "before it was up: not a time that can be");
    }
}
