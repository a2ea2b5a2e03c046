//! The picture: a pure function of the view's state, the time and the size.

mod copies;
mod foot;
mod grid;
mod happened;
mod head;
mod in_flight;
mod kernels;
mod memory;
mod modules;
mod output;
mod overlay;
mod playback;
mod ranks;
mod streams;
#[cfg(test)]
mod tests;

use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::glyphs;
use super::layout::Areas;
use super::pages::Tab;
use super::panes::Pane;
use super::state::{Overlay, View};
use super::theme::Theme;

pub fn draw(frame: &mut Frame, view: &View, theme: Theme, now: Instant) {
    let areas = Areas::of(frame.area());
    head::draw(frame, areas.head, view, theme);
    head::draw_tabs(frame, areas.tabs, view, theme);
    let body = match &view.panes.playback {
        // A recording has its clock in the last line.
        Some(playback) if areas.body.height >= 4 => {
            let lines = areas.body.height - 1;
            let clock = Rect { y: areas.body.y + lines, height: 1, ..areas.body };
            playback::draw(frame, clock, playback, theme);
            Rect { height: lines, ..areas.body }
        }
        _ => areas.body,
    };
    page(frame, body, view, theme);
    foot::draw(frame, areas.foot, view, theme, now);
    match view.overlay {
        Overlay::None => {}
        Overlay::Help => overlay::help(frame, theme),
        Overlay::Detail => overlay::detail(frame, view, theme),
        Overlay::Leave => overlay::leave(frame, theme),
    }
    if theme.ascii {
        glyphs::to_ascii(frame.buffer_mut());
    }
}

/// Each view in the place that all of them share.
fn page(frame: &mut Frame, body: Rect, view: &View, theme: Theme) {
    let table = with_margin(body);
    match view.tab {
        Tab::Kernels => kernels::draw(frame, table, view, theme),
        Tab::Copies => copies::draw(frame, table, view, theme),
        Tab::Modules => modules::draw(frame, table, view, theme),
        Tab::Streams => streams::draw(frame, table, &view.panes.timeline, view.panes.scrolled(Pane::Streams), theme),
        Tab::Ranks => ranks::draw(frame, table, &view.panes.peers, view.panes.selected(), theme),
        Tab::InFlight => {
            in_flight::draw(frame, table, &view.snapshot, view.panes.scrolled(Pane::InFlight), theme);
        }
        Tab::Happened => {
            let back = view.panes.scrolled(Pane::Happened);
            happened::draw(frame, table, &view.panes.happened, back, view.snapshot.time_ns, theme);
        }
        Tab::Output => output::draw(frame, body, view, theme),
    }
}

/// Columns of time that the streams have in a window so wide.
pub fn timeline_columns(width: u16) -> u64 {
    streams::columns(with_margin(Rect { width, ..Rect::default() }).width).into()
}

/// Tables stand below the words of the head where there is room for it.
fn with_margin(area: Rect) -> Rect {
    if area.width < 60 { area } else { Rect { x: area.x + 1, width: area.width - 2, ..area } }
}

/// Line `index` of `area`, if it has that many.
fn line_at(frame: &mut Frame, area: Rect, index: u16, line: &Line) {
    if index < area.height && area.width > 0 {
        frame.buffer_mut().set_line(area.x, area.y + index, line, area.width);
    }
}

/// A few words in the middle of an empty table.
fn empty(frame: &mut Frame, area: Rect, theme: Theme, words: &[String]) {
    let top = area.height.saturating_sub(words.len() as u16) / 2;
    for (index, words) in words.iter().enumerate() {
        let line = Line::styled(crate::text::clip(words, area.width.into()), theme.faint());
        let left = usize::from(area.width).saturating_sub(line.width()) as u16 / 2;
        let row = Rect { x: area.x + left, width: area.width - left, ..area };
        line_at(frame, row, top + index as u16, &line);
    }
}
