//! What lies over the tables: help, the detail of a kernel, the question before leaving.

use gputap_reader::model::snapshot::{KernelRow, ModuleRow};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Clear, Padding, Paragraph};

use crate::text;
use crate::view::pages::Tab;
use crate::view::state::View;
use crate::view::theme::Theme;

const DETAIL_COLUMNS: u16 = 100;
/// Border and padding, both sides.
const FRAME_COLUMNS: u16 = 6;

const HELP: [(&str, &str); 19] = [
    ("1 2 3 4", "kernels, streams over time, copies and memory, modules"),
    ("5 6 7 8", "processes, in flight, what happened, the job's output"),
    ("Tab h l ← →", "next and previous view"),
    ("↑ ↓ j k", "hold a row: it stays held as the order changes"),
    ("PgUp PgDn", "a page (^U ^D half of one)"),
    ("g G", "start and end; g lets go of the row"),
    ("⏎", "all about the held kernel or module"),
    ("s", "sort by the next column"),
    ("r", "reverse the order"),
    ("/", "show only what contains these letters"),
    ("space", "freeze the picture, go on"),
    ("z Z + -", "streams: closer and farther"),
    ("p . [ ] 0", "a recording: pause (space too), step, slower, faster, start"),
    ("q", "quit"),
    ("^C", "quit; to a job started here: interrupt it"),
    ("", ""),
    ("*  ▲", "processes: the one that all views show (⏎ changes it); the slowest"),
    ("lost", "records that no reader gets, by reason; all others arrive"),
    ("busy", "share of the last second with a kernel running"),
];

pub fn help(frame: &mut Frame, theme: Theme) {
    let lines = HELP.map(|(key, what)| {
        Line::from(vec![Span::styled(text::pad(theme.key(key), 11, false), theme.accent()), Span::raw(what)])
    });
    popup(frame, theme, " keys ", lines.to_vec(), 74);
}

pub fn leave(frame: &mut Frame, theme: Theme) {
    let key = |key, what| Line::from(vec![Span::styled(key, theme.accent()), Span::raw(what)]);
    let lines = vec![
        Line::from("The job still runs. Its terminal is here, so it cannot go on by itself."),
        Line::default(),
        key("e    ", "end it (SIGTERM) and quit"),
        key("f    ", "leave the view; the job goes on in front, ^C ends it"),
        key("Esc  ", "stay"),
    ];
    popup(frame, theme, " quit? ", lines, 78);
}

/// All about the held row.
pub fn detail(frame: &mut Frame, view: &View, theme: Theme) {
    let Some(row) = view.selected().map(|at| view.rows[at]) else { return };
    let snapshot = &view.snapshot;
    match view.tab {
        Tab::Kernels => kernel(frame, &snapshot.kernels[row], theme),
        Tab::Modules => module(frame, &snapshot.modules[row], theme),
        _ => {}
    }
}

fn kernel(frame: &mut Frame, row: &KernelRow, theme: Theme) {
    let time = |ns: u64| text::duration_ns(ns as f64);
    let [gx, gy, gz] = row.grid;
    let [bx, by, bz] = row.block;
    let (mean, p50, p99) = (text::duration_ns(row.mean_ns), time(row.p50_ns), time(row.p99_ns));
    let (fixed, dynamic) = (row.static_shared_bytes.into(), row.dynamic_shared_bytes.into());
    let facts = [
        ("calls", format!("{}   {} of all kernel time", text::grouped(row.calls), text::percent(row.share))),
        ("total", time(row.total_ns)),
        ("mean", format!("{mean}   p50 {p50}   p99 {p99}")),
        ("range", format!("{} to {}", time(row.min_ns), time(row.max_ns))),
        ("launch", format!("grid {gx} × {gy} × {gz}   block {bx} × {by} × {bz}   (the latest)")),
        ("registers", format!("{} a thread", row.registers_per_thread)),
        ("shared", format!("{} static, {} dynamic", text::bytes(fixed), text::bytes(dynamic))),
    ];
    let mut lines = long(frame, &row.name, theme.strong());
    lines.push(Line::default());
    lines.extend(facts.into_iter().map(|(name, value)| fact(name, value, theme)));
    if row.flagged > 0 {
        lines.push(fact("odd times", format!("{} calls, counted but not timed", text::grouped(row.flagged)), theme));
    }
    if row.mangled != row.name && !row.mangled.is_empty() {
        lines.push(Line::default());
        lines.extend(long(frame, &row.mangled, theme.faint()));
    }
    popup(frame, theme, " kernel ", lines, DETAIL_COLUMNS);
}

fn module(frame: &mut Frame, row: &ModuleRow, theme: Theme) {
    let crc32 = row.crc32.map_or("not computed yet".to_owned(), |crc| format!("{crc:08x}"));
    let cupti_crc = row.cupti_crc.map_or("none".to_owned(), |crc| format!("{crc:x}"));
    let line_info = match row.line_info {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    };
    let facts = [
        ("size", format!("{} bytes", text::grouped(row.size_bytes))),
        ("loads", text::grouped(row.loads)),
        ("built for", text::clean(&row.architecture)),
        ("line info", line_info.to_owned()),
        ("CRC32", crc32),
        ("CUPTI CRC", cupti_crc),
    ];
    let mut lines: Vec<Line> = facts.into_iter().map(|(name, value)| fact(name, value, theme)).collect();
    for reason in [&row.cupti_crc_reason, &row.parse_error].into_iter().filter(|reason| !reason.is_empty()) {
        lines.extend(long(frame, reason, theme.faint()));
    }
    lines.push(Line::default());
    lines.push(fact("functions", text::grouped(row.function_count), theme));
    let columns = detail_columns(frame);
    lines.extend(row.functions.iter().map(|name| Line::from(text::kernel_name(name, columns))));
    popup(frame, theme, " module ", lines, DETAIL_COLUMNS);
}

fn fact(name: &str, value: String, theme: Theme) -> Line<'static> {
    Line::from(vec![Span::styled(text::pad(name, 11, false), theme.faint()), Span::raw(value)])
}

/// A text without words, over as many lines as it takes.
fn long(frame: &Frame, words: &str, style: Style) -> Vec<Line<'static>> {
    text::broken(words, detail_columns(frame)).into_iter().map(|line| Line::styled(line, style)).collect()
}

fn detail_columns(frame: &Frame) -> usize {
    usize::from(frame.area().width.min(DETAIL_COLUMNS).saturating_sub(FRAME_COLUMNS)).max(1)
}

/// As large as its lines, within the window.
fn popup(frame: &mut Frame, theme: Theme, title: &'static str, lines: Vec<Line<'static>>, columns: u16) {
    let screen = frame.area();
    let width = screen.width.min(columns);
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2).min(screen.height);
    let area =
        Rect { x: screen.x + (screen.width - width) / 2, y: screen.y + (screen.height - height) / 2, width, height };
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.accent())
        .title(Span::styled(title, theme.strong()))
        .padding(Padding::horizontal(2));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
