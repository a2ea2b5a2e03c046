//! The lines above the tables: who is tapped, how it goes, and what was lost.

use std::collections::VecDeque;

use gputap_reader::model::snapshot::{Counts, InFlight, Snapshot};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::line_at;
use crate::text;
use crate::view::pages::Tab;
use crate::view::state::{Job, View};
use crate::view::theme::Theme;

const SPARK_MAX_COLUMNS: usize = 40;

pub fn draw(frame: &mut Frame, area: Rect, view: &View, theme: Theme) {
    let width = area.width.into();
    let lines = match area.height {
        0 => vec![],
        1 => vec![everything(view, theme)],
        2 => vec![pace(view, width, theme), records(&view.snapshot.counts, width, theme)],
        _ => vec![
            who(view, width, theme),
            pace(view, width, theme),
            records(&view.snapshot.counts, width, theme),
            remarks(&view.snapshot, theme),
        ],
    };
    for (index, line) in lines.iter().enumerate() {
        line_at(frame, area, index as u16, line);
    }
}

pub fn draw_tabs(frame: &mut Frame, area: Rect, view: &View, theme: Theme) {
    let long = tab_line(view, theme, Tab::title);
    let line = if long.width() <= usize::from(area.width) { long } else { tab_line(view, theme, Tab::short_title) };
    line_at(frame, area, 0, &line);
}

fn tab_line(view: &View, theme: Theme, title: fn(Tab) -> &'static str) -> Line<'static> {
    let mut line = Line::default();
    for &tab in Tab::ALL {
        let number = tab.count(view).map(|number| format!(" {number}")).unwrap_or_default();
        let label = format!(" {} {}{number} ", tab.digit(), title(tab));
        line.push_span(Span::styled(label, if tab == view.tab { theme.badge() } else { theme.faint() }));
    }
    line
}

/// For a window of a few lines: the state, the pace and the loss.
fn everything(view: &View, theme: Theme) -> Line<'static> {
    let snapshot = &view.snapshot;
    let lost = text::loss::total(&snapshot.counts.lost);
    let style = if lost > 0 { theme.bad() } else { theme.good() };
    Line::from(vec![
        Span::styled("● ", theme.state(&snapshot.target.state)),
        Span::styled(format!("lost {}", text::count(lost).replace(' ', "")), style),
        Span::raw(format!(" {} ", text::per_s(snapshot.kernels_per_s).replace(' ', ""))),
        Span::raw(format!("{:.0}%", snapshot.gpu_busy.clamp(0.0, 1.0) * 100.0)),
        Span::styled(format!("  {}", snapshot.target.state), theme.faint()),
    ])
}

fn who(view: &View, width: usize, theme: Theme) -> Line<'static> {
    let target = &view.snapshot.target;
    let mut facts = Vec::new();
    if target.pid != 0 {
        facts.push(format!("pid {}", target.pid));
    }
    if target.cupti_version != 0 {
        facts.push(format!("CUPTI {}", text::cupti_version(target.cupti_version)));
    }
    facts.push(format!("up {}", text::age(target.uptime_ns)));
    let facts = facts.join(" · ");
    let badge = " gputap ";
    let room = width.saturating_sub(text::width(badge) + text::width(&facts) + 4);
    Line::from(vec![
        Span::styled(badge, theme.badge()),
        Span::raw(" "),
        Span::styled(text::pad(&target.command, room, false), theme.strong()),
        Span::styled(format!("  {facts}"), theme.faint()),
    ])
}

fn pace(view: &View, width: usize, theme: Theme) -> Line<'static> {
    let snapshot = &view.snapshot;
    let busy = snapshot.gpu_busy;
    let mut line = Line::from(vec![Span::raw(" ")]);
    line.extend(state(snapshot, &view.job, width, theme));
    line.extend([
        Span::styled("   kernels ", theme.faint()),
        Span::styled(text::pad(&text::per_s(snapshot.kernels_per_s), 9, true), theme.strong()),
        Span::styled("   GPU busy ", theme.faint()),
        Span::styled(text::pad(&text::percent(busy), 6, true), theme.busy(busy)),
        Span::raw(" "),
    ]);
    if snapshot.devices.len() > 1 {
        for device in &snapshot.devices {
            line.push_span(Span::styled(format!(" GPU{} ", device.device_id), theme.faint()));
            line.push_span(Span::styled(text::percent(device.busy), theme.busy(device.busy)));
        }
        line.push_span(" ");
    }
    let room = width.saturating_sub(line.width() + 1).min(SPARK_MAX_COLUMNS);
    line.push_span(Span::styled(sparkline(&view.busy_history, room), theme.accent()));
    line
}

fn state(snapshot: &Snapshot, job: &Job, width: usize, theme: Theme) -> Vec<Span<'static>> {
    let target = &snapshot.target;
    let style = theme.state(&target.state);
    // A black box records without a reader; whoever sees this is one.
    let name = if target.state == "black box" { "recording" } else { target.state.as_str() };
    let mut words = vec![Span::styled("● ", style), Span::styled(text::clip(name, 20), style)];
    // A heartbeat that stops while the process lives: stopped by a signal or a debugger, or starved.
    let silent = target.alive && target.heartbeat_age_ns > 2_000_000_000 && target.state != "waiting";
    let remark = match (job, silent) {
        (_, true) => format!("silent for {}", text::duration_ns(target.heartbeat_age_ns as f64)),
        _ => target.reason.clone(),
    };
    if !remark.is_empty() {
        let style = if silent { theme.warning() } else { theme.faint() };
        words.push(Span::styled(format!(" ({})", text::clip(&remark, (width / 3).max(12))), style));
    }
    words
}

/// Every record counted, and loss first: a narrow window cuts the end. Exact where there is room.
fn records(counts: &Counts, width: usize, theme: Theme) -> Line<'static> {
    let exact = records_with(counts, text::grouped, theme);
    if exact.width() <= width { exact } else { records_with(counts, text::count, theme) }
}

fn records_with(counts: &Counts, number: fn(u64) -> String, theme: Theme) -> Line<'static> {
    let mut line = Line::from(" ");
    let lost = text::grouped(text::loss::total(&counts.lost));
    if text::loss::any(&counts.lost) {
        let words = format!("lost {lost} ({})", text::loss::reasons(&counts.lost));
        line.push_span(Span::styled(words, theme.bad()));
    } else {
        line.push_span(Span::styled(format!("lost {lost}"), theme.good()));
    }
    for (name, count) in [("attempted", counts.attempted), ("delivered", counts.delivered), ("pending", counts.pending)]
    {
        line.push_span(Span::styled(format!("   {name} "), theme.faint()));
        line.push_span(Span::raw(number(count)));
    }
    if counts.flagged_times > 0 {
        line.push_span(Span::styled("   odd times ", theme.faint()));
        line.push_span(Span::styled(number(counts.flagged_times), theme.warning()));
        line.push_span(Span::styled(format!(" ({})", text::loss::flags(&counts.flags)), theme.faint()));
    }
    line
}

/// What is in flight, where that is known; then what went less well than asked for, or else what recording costs.
fn remarks(snapshot: &Snapshot, theme: Theme) -> Line<'static> {
    let refused = &snapshot.module_counts.refused;
    let mut line = Line::default();
    if let Some(words) = text::work::in_flight(&snapshot.in_flight) {
        let style = if hangs(&snapshot.in_flight) { theme.warning() } else { theme.faint() };
        line.push_span(Span::styled(format!(" {words} "), style));
    }
    let mut words = Vec::new();
    if text::loss::any(refused) {
        words.push(format!("cubins not kept: {}", text::loss::reasons(refused)));
    }
    words.extend(snapshot.notes.iter().map(|note| text::clean(note)));
    if !words.is_empty() {
        line.push_span(Span::styled(format!(" {}", words.join(" · ")), theme.warning()));
    } else if let Some(words) = text::work::overhead(snapshot) {
        line.push_span(Span::styled(format!(" {words}"), theme.faint()));
    }
    line
}

/// Something certain has been in flight for so long that records on their way do not explain it.
fn hangs(in_flight: &InFlight) -> bool {
    in_flight.oldest.iter().any(|row| !row.uncertain && row.age_ns > 2_000_000_000)
}

/// The latest seconds, newest at the right.
pub fn sparkline(history: &VecDeque<f64>, columns: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let skipped = history.len().saturating_sub(columns);
    let level = |share: &f64| {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        LEVELS[((share * 8.0) as usize).min(7)]
    };
    history.iter().skip(skipped).map(level).collect()
}
