use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::line_at;
use crate::text;
use crate::view::pages::Tab;
use crate::view::state::{Job, View};
use crate::view::theme::Theme;

const KEYS: [(&str, &str); 8] = [
    ("q", "quit"),
    ("?", "help"),
    ("/", "filter"),
    ("s", "sort"),
    ("r", "reverse"),
    ("space", "freeze"),
    ("⏎", "detail"),
    ("Tab", "views"),
];

pub fn draw(frame: &mut Frame, area: Rect, view: &View, theme: Theme, now: Instant) {
    let mut line = Line::from(" ");
    if view.filter_typed {
        line.push_span(Span::styled("/", theme.accent()));
        // The end of a long filter is where one types.
        let room = usize::from(area.width).saturating_sub(4);
        let skipped = text::width(&view.filter).saturating_sub(room);
        line.push_span(view.filter.chars().skip(skipped).collect::<String>());
        line.push_span(Span::styled("▏", theme.accent()));
    } else if let Some(words) = view.status(now) {
        line.push_span(Span::styled(words.to_owned(), theme.accent()));
    } else {
        notices(&mut line, view, theme);
        for (key, what) in KEYS {
            line.push_span(Span::styled(theme.key(key), theme.strong()));
            line.push_span(Span::styled(format!(" {what}  "), theme.faint()));
        }
    }
    line_at(frame, area, 0, &line);
}

/// What must not be overlooked, before the keys.
fn notices(line: &mut Line, view: &View, theme: Theme) {
    if view.frozen {
        line.push_span(Span::styled("FROZEN", theme.warning()));
        line.push_span("  ");
    }
    if !view.filter.is_empty() && view.tab != Tab::Output {
        line.push_span(Span::styled(format!("/{}", text::clip(&view.filter, 20)), theme.accent()));
        line.push_span(Span::styled(format!(" {} rows", view.rows.len()), theme.faint()));
        line.push_span("  ");
    }
    if view.tab == Tab::Output && view.log_back > 0 {
        line.push_span(Span::styled(format!("{} lines back", view.log_back), theme.warning()));
        line.push_span("  ");
    }
    let target = &view.snapshot.target;
    match &view.job {
        Job::Ended(how) => line.push_span(Span::styled(format!("the job ended: {how}"), theme.strong())),
        Job::Foreign if !target.alive && target.pid != 0 => {
            line.push_span(Span::styled("the process has ended", theme.strong()));
        }
        _ => return,
    }
    line.push_span("  ");
}
