//! What happened, the latest at the bottom.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::line_at;
use crate::text;
use crate::view::happened::{Entry, Happened, Sort};
use crate::view::theme::Theme;

const SORT_COLUMNS: usize = 8;
const PID_COLUMNS: usize = 8;
/// Below it neither pid nor sort.
const NARROW: u16 = 50;

/// `back`: so many lines from the end. `now_ns`, CLOCK_MONOTONIC, for how long ago something was where no wall time is known.
pub fn draw(frame: &mut Frame, area: Rect, happened: &Happened, back: usize, now_ns: u64, theme: Theme) {
    let entries = happened.entries();
    if entries.is_empty() {
        return super::empty(frame, area, theme, &["nothing has happened yet".to_owned()]);
    }
    let titles =
        format!("{:<12} {}WHAT HAPPENED", "TIME (UTC)", if area.width < NARROW { "" } else { "     PID          " });
    line_at(frame, area, 0, &Line::styled(titles, theme.column_title(false)));
    let page = usize::from(area.height.saturating_sub(1));
    let back = back.min(entries.len().saturating_sub(page));
    let end = entries.len() - back;
    let first = end.saturating_sub(page);
    for (place, entry) in entries.range(first..end).enumerate() {
        line_at(frame, area, place as u16 + 1, &row(entry, now_ns, area.width, theme));
    }
    if happened.gone() > 0 && first == 0 && area.height > 0 {
        let words = format!("{} earlier ones are not kept", text::grouped(happened.gone()));
        let left = area.width.saturating_sub(words.len() as u16);
        line_at(
            frame,
            Rect { x: area.x + left, width: area.width - left, ..area },
            0,
            &Line::styled(words, theme.warning()),
        );
    }
}

fn row(entry: &Entry, now_ns: u64, width: u16, theme: Theme) -> Line<'static> {
    let mut line = Line::from(Span::styled(text::pad(&time(entry, now_ns), 12, false) + " ", theme.faint()));
    if width >= NARROW {
        let pid = if entry.pid == 0 { String::new() } else { entry.pid.to_string() };
        line.push_span(Span::styled(text::pad(&pid, PID_COLUMNS, true), theme.faint()));
        let (name, style) = sort(entry.sort, theme);
        line.push_span(Span::styled(format!("  {}", text::pad(name, SORT_COLUMNS, false)), style));
    }
    let style = if entry.sort == Sort::Loss { theme.bad() } else { Style::new() };
    let room = usize::from(width).saturating_sub(line.width());
    line.push_span(Span::styled(text::clip(&entry.words, room), style));
    line
}

/// Of the day, in UTC, to the millisecond; else how long ago.
fn time(entry: &Entry, now_ns: u64) -> String {
    if entry.wall_ns == 0 {
        return format!("-{}", text::duration_ns(now_ns.saturating_sub(entry.time_ns) as f64));
    }
    let ms = entry.wall_ns / 1_000_000;
    format!("{:02}:{:02}:{:02}.{:03}", ms / 3_600_000 % 24, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000)
}

fn sort(sort: Sort, theme: Theme) -> (&'static str, Style) {
    match sort {
        Sort::Process => ("process", theme.strong()),
        Sort::State => ("state", theme.accent()),
        Sort::Module => ("module", theme.good()),
        Sort::Loss => ("loss", theme.bad()),
        Sort::Clock => ("clock", theme.warning()),
        Sort::Note => ("note", theme.warning()),
    }
}

#[cfg(test)]
mod tests {
    use gputap_reader::model::snapshot::Snapshot;
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn happened(changes: u64) -> Happened {
        let mut happened = Happened::default();
        for second in 0..changes {
            let mut snapshot = Snapshot { time_ns: (second + 1) * 1_000_000_000, ..Snapshot::default() };
            snapshot.target.pid = 4_194_303;
            snapshot.target.state = "recording".into();
            snapshot.target.reason = format!("reason {second}");
            // 12:34:56.789 on some day.
            happened.look(&snapshot, 86_400_000_000_000 * 20_000 + 45_296_789_000_000 + second * 1_000_000_000);
        }
        happened
    }

    fn picture(width: u16, height: u16, happened: &Happened, back: usize) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let theme = Theme::colored(false);
        terminal.draw(|frame| draw(frame, frame.area(), happened, back, 5, theme)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_latest_stand_at_the_bottom() {
        let shown = picture(80, 5, &happened(9), 0);
        assert_eq!(shown[0], "TIME (UTC)        PID          WHAT HAPPENED");
        assert_eq!(shown[4], "12:35:04.789  4194303  state   recording (reason 8)");
        let earlier = picture(80, 5, &happened(9), 3);
        assert!(earlier[4].ends_with("(reason 5)"), "{}", earlier.join("\n"));
    }

    #[test]
    fn what_is_not_kept_any_more_is_said() {
        let happened = happened(2_010);
        assert!(!picture(80, 5, &happened, 0)[0].contains("not kept"), "not where it does not matter");
        assert!(picture(80, 5, &happened, usize::MAX)[0].ends_with("11 earlier ones are not kept"));
    }

    proptest! {
        #[test]
        fn any_size(width in 1u16..220, height in 1u16..70, changes in 0u64..100, back in 0usize..200) {
            picture(width, height, &happened(changes), back);
        }
    }
}
