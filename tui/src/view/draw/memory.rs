//! Memory in use by device and kind, and pools of stream-ordered memory: below the copies.

use gputap_reader::model::snapshot::{MemoryRow, PoolRow, Snapshot};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::grid::bar;
use super::line_at;
use crate::text;
use crate::view::theme::Theme;

const BAR_MAX_COLUMNS: usize = 30;
/// Of a row without its bar.
const ROW_COLUMNS: usize = 61;

/// How many lines there are to draw; `draw` leaves out what has no room.
pub fn draw(frame: &mut Frame, area: Rect, snapshot: &Snapshot, theme: Theme) {
    let lines = lines(snapshot, area.width.into(), theme);
    let room = usize::from(area.height);
    let is_cut = lines.len() > room;
    let shown = if is_cut { room.saturating_sub(1) } else { lines.len() };
    for (y, line) in lines.iter().take(shown).enumerate() {
        line_at(frame, area, y as u16, line);
    }
    if is_cut && room > 0 {
        let words = format!("{} lines more: a higher window shows them", lines.len() - shown);
        line_at(frame, area, room as u16 - 1, &Line::styled(words, theme.faint()));
    }
}

fn lines(snapshot: &Snapshot, width: usize, theme: Theme) -> Vec<Line<'static>> {
    let memory = &snapshot.memory;
    let is_recorded = |kind: &str| snapshot.target.kinds.contains(&kind);
    let mut lines = Vec::new();
    if memory.rows.is_empty() {
        let words = if is_recorded("memory") {
            "memory: no allocation since gputap attached"
        } else {
            "memory is not recorded: --kinds kernel,memcpy,memset,memory,pool"
        };
        lines.push(Line::styled(words, theme.faint()));
    } else {
        lines.push(titles("MEMORY", ["IN USE", "AT MOST", "ALLOCS", "RELEASES"], theme));
        lines.extend(memory.rows.iter().map(|row| in_use(row, width, theme)));
        let words = "since gputap attached: what was allocated before is not in it";
        lines.push(Line::styled(words, theme.faint()));
    }
    for (number, what) in [
        (memory.unknown_releases, "releases of what was not seen allocated"),
        (memory.missed_releases, "releases not seen"),
        (memory.not_tracked, "allocations not followed, for want of room"),
        (memory.pools_not_tracked, "records of pools not followed, for want of room"),
    ] {
        if number > 0 {
            lines.push(Line::styled(format!("{} {what}", text::grouped(number)), theme.warning()));
        }
    }
    if !memory.pools.is_empty() {
        lines.push(Line::default());
        lines.push(titles("POOL", ["IN USE", "RESERVED", "AT MOST", "KEEPS"], theme));
        lines.extend(memory.pools.iter().map(|row| pool(row, width, theme)));
    }
    lines
}

fn titles(first: &str, others: [&str; 4], theme: Theme) -> Line<'static> {
    let words = others.iter().map(|title| text::pad(title, 10, true));
    Line::styled(text::pad(first, 21, false) + &words.collect::<String>(), theme.column_title(false))
}

fn in_use(row: &MemoryRow, width: usize, theme: Theme) -> Line<'static> {
    let name = format!("GPU{} {}", row.device_id, text::clip(&row.kind, 16));
    let mut line = Line::from(vec![
        Span::styled(text::pad(&name, 21, false), theme.strong()),
        Span::raw(text::pad(&text::bytes(row.in_use_bytes), 10, true)),
        Span::raw(text::pad(&text::bytes(row.high_water_bytes), 10, true)),
        Span::styled(text::pad(&text::count(row.allocations), 10, true), theme.faint()),
        Span::styled(text::pad(&text::count(row.releases), 10, true), theme.faint()),
    ]);
    line.extend(share(row.in_use_bytes, row.high_water_bytes, width, theme));
    line
}

fn pool(row: &PoolRow, width: usize, theme: Theme) -> Line<'static> {
    let name = format!("GPU{} {:x}", row.device_id, row.address);
    let keeps = if row.release_threshold_bytes == u64::MAX {
        "all".to_owned()
    } else {
        text::bytes(row.release_threshold_bytes)
    };
    let style = if row.is_alive { Style::new() } else { theme.faint() };
    let mut line = Line::from(vec![
        Span::styled(text::pad(&name, 21, false), style),
        Span::styled(text::pad(&text::bytes(row.used_bytes), 10, true), style),
        Span::styled(text::pad(&text::bytes(row.size_bytes), 10, true), style),
        Span::styled(text::pad(&text::bytes(row.high_water_bytes), 10, true), style),
        Span::styled(text::pad(&keeps, 10, true), theme.faint()),
    ]);
    if row.is_alive {
        line.extend(share(row.used_bytes, row.size_bytes, width, theme));
    } else {
        line.push_span(Span::styled("  destroyed", theme.faint()));
    }
    line
}

/// What of the most there was is in use, where there is room to draw it.
fn share(now: u64, most: u64, width: usize, theme: Theme) -> Option<Span<'static>> {
    let room = width.saturating_sub(ROW_COLUMNS + 2).min(BAR_MAX_COLUMNS);
    (room >= 6).then(|| Span::styled(format!("  {}", bar(now as f64 / most.max(1) as f64, room)), theme.accent()))
}

#[cfg(test)]
mod tests {
    use gputap_reader::model::snapshot::MemoryInUse;
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn snapshot(rows: u32, pools: u64) -> Snapshot {
        let row = |device_id: u32| MemoryRow {
            device_id,
            kind: "device".into(),
            in_use_bytes: 12_000_000_000,
            high_water_bytes: 24_000_000_000,
            allocations: 1_500,
            releases: 700,
        };
        let pool = |number: u64| PoolRow {
            address: 0x7f00_0000_0000 + number,
            is_alive: number.is_multiple_of(2),
            size_bytes: 4 << 30,
            used_bytes: 1 << 30,
            high_water_bytes: 6 << 30,
            release_threshold_bytes: u64::MAX,
            ..PoolRow::default()
        };
        let memory = MemoryInUse {
            rows: (0..rows).map(row).collect(),
            pools: (0..pools).map(pool).collect(),
            unknown_releases: 3,
            ..MemoryInUse::default()
        };
        Snapshot { memory, ..Snapshot::default() }
    }

    fn picture(width: u16, height: u16, snapshot: &Snapshot) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, frame.area(), snapshot, Theme::colored(false))).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_picture_that_a_person_has_looked_at() {
        let expected = [
            "MEMORY                   IN USE   AT MOST    ALLOCS  RELEASES",
            "GPU0 device             12.0 GB   24.0 GB     1,500       700  ███████▌",
            "since gputap attached: what was allocated before is not in it",
            "3 releases of what was not seen allocated",
            "",
            "POOL                     IN USE  RESERVED   AT MOST     KEEPS",
            "GPU0 7f0000000000       1.07 GB   4.29 GB   6.44 GB       all  ███▊",
            "GPU0 7f0000000001       1.07 GB   4.29 GB   6.44 GB       all  destroyed",
        ];
        assert_eq!(picture(78, 8, &snapshot(1, 2)), expected);
    }

    #[test]
    fn where_memory_is_not_recorded_it_says_how_to_have_it() {
        assert!(picture(80, 3, &Snapshot::default())[0].contains("--kinds"));
        let mut recorded = Snapshot::default();
        recorded.target.kinds = vec!["memory"];
        assert!(picture(80, 3, &recorded)[0].contains("no allocation"));
    }

    #[test]
    fn what_has_no_room_is_said() {
        assert_eq!(picture(80, 4, &snapshot(9, 0))[3], "9 lines more: a higher window shows them");
    }

    proptest! {
        #[test]
        fn any_size(width in 1u16..220, height in 1u16..40, rows in 0u32..20, pools in 0u64..20) {
            picture(width, height, &snapshot(rows, pools));
        }
    }
}
