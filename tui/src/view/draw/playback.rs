//! Where a recording is, in a line.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::line_at;
use crate::tap::Playback;
use crate::text;
use crate::view::theme::Theme;

const BAR_MAX_COLUMNS: usize = 60;

/// `▶ ×1   00:00:12.3 of 00:01:40.0  ━━━━━╸──────  12:34:56 UTC  space . [ ]`.
pub fn draw(frame: &mut Frame, area: Rect, playback: &Playback, theme: Theme) {
    let passed_ns = playback.at_ns() - playback.began_ns;
    let all_ns = playback.end_ns - playback.began_ns;
    let (mark, words) = match (playback.is_at_end(), playback.is_paused()) {
        (true, _) => ("●", "end"),
        (_, true) => ("║", "paused"),
        _ => ("▶", "replay"),
    };
    let speed = text::pad(&playback.speed().to_string(), 5, false);
    let tenths = |ns: u64| format!("{}.{}", text::age(ns), ns / 100_000_000 % 10);
    let mut line = Line::from(vec![
        Span::styled(format!(" {mark} {words:<6} {speed} "), theme.badge()),
        Span::styled(format!("  {}", tenths(passed_ns)), theme.strong()),
        Span::styled(format!(" of {}  ", tenths(all_ns)), theme.faint()),
    ]);
    let seconds = playback.at_ns() / 1_000_000_000;
    let wall = format!("  {:02}:{:02}:{:02} UTC", seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let room = usize::from(area.width).saturating_sub(line.width() + wall.len() + 1).min(BAR_MAX_COLUMNS);
    let done = (playback.share() * room as f64).round() as usize;
    line.push_span(Span::styled("━".repeat(done.min(room)), theme.accent()));
    line.push_span(Span::styled("─".repeat(room - done.min(room)), theme.faint()));
    line.push_span(Span::styled(wall, theme.faint()));
    line_at(frame, area, 0, &line);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn picture(width: u16, playback: &Playback) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 1)).unwrap();
        terminal.draw(|frame| draw(frame, frame.area(), playback, Theme::colored(false))).unwrap();
        let buffer = terminal.backend().buffer();
        (0..width).map(|x| buffer[(x, 0)].symbol()).collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn it_says_where_and_how_fast() {
        let second = 1_000_000_000;
        let noon = 1_796_126_400 * second;
        let mut playback = Playback::new(noon, noon + 10 * second);
        (0..25).for_each(|_| playback.step());
        let shown = picture(80, &playback);
        assert!(shown.starts_with(" ║ paused ×1      00:00:02.5 of 00:00:10.0  ━━━"), "{shown}");
        assert!(shown.ends_with("12:00:02 UTC"), "{shown}");
        assert_eq!(shown.matches('━').count(), (shown.matches(['━', '─']).count() as f64 / 4.0).round() as usize);
        (0..100).for_each(|_| playback.step());
        assert!(picture(80, &playback).starts_with(" ● end"));
        (1..80).for_each(|width| drop(picture(width, &playback)));
    }
}
