//! The last seconds of each stream, side by side in time. What a stream did most in a column is told by colour and by
//! glyph, so that it is seen without colours too; how full the column was by the height of the glyph.

use gputap_reader::model::timeline::{Slice, Stretch, Timeline, TimelineRow, Work};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::line_at;
use crate::text;
use crate::view::theme::Theme;

/// `GPU0    7   87.2% `.
const LABEL_COLUMNS: u16 = 19;
/// In a narrow window: `0:7  87% `.
const NARROW_LABEL_COLUMNS: u16 = 10;
const NARROW: u16 = 50;
/// Lines of a stream, where there is room.
const TALL_MAX: u16 = 3;

/// Columns of the time itself in a window so wide: what to ask the source for.
pub fn columns(width: u16) -> u16 {
    width.saturating_sub(label_columns(width))
}

fn label_columns(width: u16) -> u16 {
    if width < NARROW { NARROW_LABEL_COLUMNS } else { LABEL_COLUMNS }
}

pub fn draw(frame: &mut Frame, area: Rect, timeline: &Timeline, offset: usize, theme: Theme) {
    if timeline.rows.is_empty() {
        return super::empty(frame, area, theme, &["no work on any stream in the last minute".to_owned()]);
    }
    let labels = label_columns(area.width).min(area.width);
    let time = Rect { x: area.x + labels, width: area.width - labels, ..area };
    titles(frame, area, theme);
    line_at(frame, time, 0, &axis(timeline.stretch, time.width.into(), theme));
    let legend_lines = u16::from(area.height >= 6);
    let body = area.height.saturating_sub(1 + legend_lines);
    let count = timeline.rows.len() as u16;
    // A line between streams where each has several.
    let tall = (1..=TALL_MAX).rev().find(|&tall| count.saturating_mul(tall + gap(tall)) <= body).unwrap_or(1);
    let each = tall + gap(tall);
    let shown = usize::from(body / each).max(1);
    let offset = offset.min(timeline.rows.len().saturating_sub(shown));
    for (place, row) in timeline.rows.iter().skip(offset).take(shown).enumerate() {
        let top = 1 + place as u16 * each;
        if top > body {
            break;
        }
        line_at(frame, Rect { width: labels, ..area }, top + tall - 1, &label(timeline, row, area.width, theme));
        for line in 0..tall {
            // The lowest line of several is filled first.
            let floor = tall - 1 - line;
            line_at(frame, time, top + line, &slices(row, time.width.into(), (floor, tall), theme));
        }
    }
    if legend_lines > 0 {
        let hidden = timeline.rows.len().saturating_sub(shown);
        line_at(frame, area, area.height - 1, &legend(timeline, hidden, theme));
    }
}

fn gap(tall: u16) -> u16 {
    u16::from(tall > 1)
}

fn titles(frame: &mut Frame, area: Rect, theme: Theme) {
    let words = if area.width < NARROW { "STREAM BUSY" } else { "GPU  STREAM   BUSY" };
    let width = label_columns(area.width).saturating_sub(1).min(area.width);
    line_at(frame, Rect { width, ..area }, 0, &Line::styled(words, theme.column_title(false)));
}

fn label(timeline: &Timeline, row: &TimelineRow, width: u16, theme: Theme) -> Line<'static> {
    // Two contexts may number their streams alike.
    let is_told = |other: &TimelineRow| other.device_id == row.device_id && other.stream_id == row.stream_id;
    let stream = match timeline.rows.iter().filter(|other| is_told(other)).count() {
        1 => row.stream_id.to_string(),
        _ => format!("{}@{}", row.stream_id, row.context_id),
    };
    let busy = row.shares.busy().min(1.0);
    if width < NARROW {
        let name = text::pad(&format!("{}:{stream}", row.device_id), 5, false);
        let percent = format!("{:>3.0}% ", busy * 100.0);
        return Line::from(vec![Span::raw(name), Span::styled(percent, theme.busy(busy))]);
    }
    Line::from(vec![
        Span::styled(text::pad(&row.device_id.to_string(), 3, true), theme.faint()),
        Span::raw(text::pad(&stream, 8, true)),
        Span::styled(text::pad(&text::percent(busy), 7, true), theme.busy(busy)),
        Span::raw(" "),
    ])
}

/// `floor` of `tall` lines, counted from below.
fn slices(row: &TimelineRow, width: usize, (floor, tall): (u16, u16), theme: Theme) -> Line<'static> {
    let missing = width.saturating_sub(row.slices.len());
    let mut line = Line::from(" ".repeat(missing));
    let mut run = String::new();
    let mut run_style = Style::new();
    // The latest are at the right, where the window is narrower than what was asked for.
    for slice in row.slices.iter().skip(row.slices.len().saturating_sub(width)) {
        let (glyph, style) = cell(*slice, floor, tall, theme);
        if style != run_style && !run.is_empty() {
            line.push_span(Span::styled(std::mem::take(&mut run), run_style));
        }
        run_style = style;
        run.push(glyph);
    }
    line.push_span(Span::styled(run, run_style));
    line
}

fn cell(slice: Slice, floor: u16, tall: u16, theme: Theme) -> (char, Style) {
    let Some(work) = slice.main() else { return (' ', Style::new()) };
    let filled = f64::from(slice.busy()) * f64::from(tall) - f64::from(floor);
    // A little of work is seen, and be it a sliver.
    let filled = if floor == 0 { filled.max(0.01) } else { filled };
    if filled <= 0.0 {
        return (' ', Style::new());
    }
    (glyph(work, filled.min(1.0), theme.ascii), style(work, theme))
}

fn style(work: Work, theme: Theme) -> Style {
    match work {
        Work::Compute => theme.accent(),
        Work::Collective => theme.warning(),
        Work::Copy => theme.good(),
        Work::Set => theme.strong(),
    }
}

/// `filled`: above 0, to 1.
fn glyph(work: Work, filled: f64, ascii: bool) -> char {
    let levels: &[char] = match (work, ascii) {
        (Work::Compute, false) => &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        (Work::Collective, false) => &['░', '▒', '▓'],
        (Work::Copy, false) => &['⣀', '⣤', '⣶', '⣿'],
        (Work::Set, false) => &['⡀', '⡄', '⡆', '⡇'],
        (Work::Compute, true) => &['.', '-', '=', '#'],
        (Work::Collective, true) => &['n', 'N'],
        (Work::Copy, true) => &['c', 'C'],
        (Work::Set, true) => &['s', 'S'],
    };
    let level = (filled * levels.len() as f64).ceil() as usize;
    levels[level.clamp(1, levels.len()) - 1]
}

/// Times before the right edge, at round distances.
fn axis(stretch: Stretch, width: usize, theme: Theme) -> Line<'static> {
    let column_ns = stretch.column_ns.max(1) as f64;
    let edge = if theme.ascii { '|' } else { '│' };
    let mut cells = vec![' '; width];
    // Room for a label and some air between two of them.
    let step_ns = round_step(column_ns * 14.0);
    for tick in 0.. {
        let ago_ns = step_ns * f64::from(tick);
        let columns = (ago_ns / column_ns).round() as usize;
        if columns >= width {
            break;
        }
        let at = width - 1 - columns;
        let words: Vec<char> = if tick == 0 { vec!['0'] } else { minus(ago_ns).chars().collect() };
        cells[at] = edge;
        // To the left of its mark; where it does not fit there, without words.
        if let Some(from) = at.checked_sub(words.len()).filter(|_| tick > 0 || at > 1) {
            cells[from..at].copy_from_slice(&words);
        }
    }
    Line::styled(cells.into_iter().collect::<String>(), theme.faint())
}

fn minus(ns: f64) -> String {
    let (number, unit) = match ns {
        ns if ns < 999_999.5 => (ns / 1e3, "µs"),
        ns if ns < 999_999_999.5 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("-{number} {unit}")
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_step(ns: f64) -> f64 {
    let power = 10f64.powf(ns.max(1.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|&step| step >= ns).unwrap_or(power * 10.0)
}

fn legend(timeline: &Timeline, hidden: usize, theme: Theme) -> Line<'static> {
    let mut line = Line::default();
    for work in Work::ALL {
        line.push_span(Span::styled(glyph(work, 1.0, theme.ascii).to_string(), style(work, theme)));
        line.push_span(Span::styled(format!(" {}  ", work.name()), theme.faint()));
    }
    let stretch = timeline.stretch;
    let (column, span) = (stretch.column_ns as f64, stretch.span_ns() as f64);
    let mut words = format!(" {}/column, {}   z Z zoom", text::duration_ns(column), text::duration_ns(span));
    if hidden > 0 {
        words += &format!("   {hidden} streams more");
    }
    if timeline.not_shown > 0 {
        words += &format!("   {} records of streams without room", text::count(timeline.not_shown));
    }
    line.push_span(Span::styled(words, theme.faint()));
    line
}

#[cfg(test)]
mod tests {
    use gputap_reader::model::timeline::WorkShares;
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn timeline(columns: usize, rows: u32) -> Timeline {
        let slice = |column: usize, row: u32| {
            let mut slice = Slice::default();
            let phase = (column + row as usize * 3) % 12;
            match phase {
                0..6 => slice.shares[(row % 4) as usize] = (phase + 1) as f32 / 6.0,
                6 => slice.shares[2] = 0.001,
                7..10 => slice.shares = [0.1, 0.6, 0.2, 0.1],
                _ => {}
            }
            slice
        };
        let row = |row: u32| TimelineRow {
            device_id: row / 4,
            context_id: 1,
            stream_id: 7 + row % 4 * 6,
            slices: (0..columns).map(|column| slice(column, row)).collect(),
            shares: WorkShares { compute: 0.5, ..WorkShares::default() },
        };
        let stretch = Stretch { end_ns: 1 << 40, column_ns: 1 << 26, columns: columns as u64 };
        Timeline { stretch, rows: (0..rows).map(row).collect(), not_shown: 0 }
    }

    fn picture(width: u16, height: u16, timeline: &Timeline, offset: usize, ascii: bool) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let theme = Theme { ascii, ..Theme::colored(false) };
        terminal.draw(|frame| draw(frame, frame.area(), timeline, offset, theme)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_picture_that_a_person_has_looked_at() {
        let expected = [
            "GPU  STREAM   BUSY │          -3 s│          -2 s│          -1 s│             0│",
            "  0       7  50.0% ▂▃▄▆▇█⣀▓▓▓  ▂▃▄▆▇█⣀▓▓▓  ▂▃▄▆▇█⣀▓▓▓  ▂▃▄▆▇█⣀▓▓▓  ▂▃▄▆▇█⣀▓▓▓  ▂",
            "  0      13  50.0% ▓▓▓⣀▓▓▓  ░▒▒▓▓▓⣀▓▓▓  ░▒▒▓▓▓⣀▓▓▓  ░▒▒▓▓▓⣀▓▓▓  ░▒▒▓▓▓⣀▓▓▓  ░▒▒▓",
            "  0      19  50.0% ⣀▓▓▓  ⣀⣤⣤⣶⣿⣿⣀▓▓▓  ⣀⣤⣤⣶⣿⣿⣀▓▓▓  ⣀⣤⣤⣶⣿⣿⣀▓▓▓  ⣀⣤⣤⣶⣿⣿⣀▓▓▓  ⣀⣤⣤⣶⣿⣿⣀",
            "  0      25  50.0% ▓  ⡀⡄⡄⡆⡇⡇⣀▓▓▓  ⡀⡄⡄⡆⡇⡇⣀▓▓▓  ⡀⡄⡄⡆⡇⡇⣀▓▓▓  ⡀⡄⡄⡆⡇⡇⣀▓▓▓  ⡀⡄⡄⡆⡇⡇⣀▓▓▓",
            "",
            "",
            "█ kernels  ▓ collectives  ⣿ copies  ⡇ sets   67.1 ms/column, 4.09 s   z Z zoom",
        ];
        assert_eq!(picture(80, 8, &timeline(columns(80).into(), 4), 0, false), expected);
    }

    #[test]
    fn sorts_of_work_differ_without_colours() {
        for ascii in [false, true] {
            let glyphs: Vec<char> = Work::ALL.into_iter().map(|work| glyph(work, 1.0, ascii)).collect();
            let mut distinct = glyphs.clone();
            distinct.dedup();
            assert_eq!(distinct.len(), 4, "{glyphs:?}");
            assert!(!ascii || glyphs.iter().all(char::is_ascii));
        }
    }

    #[test]
    fn ascii_is_ascii() {
        let shown = picture(100, 20, &timeline(70, 6), 0, true).concat();
        assert!(shown.is_ascii() && shown.contains('#') && shown.contains('C') && shown.contains('N'), "{shown}");
    }

    #[test]
    fn a_sliver_of_work_is_seen() {
        let mut slice = Slice::default();
        slice.shares[Work::Copy as usize] = 1e-6;
        let (glyph, _) = cell(slice, 0, 3, Theme::colored(false));
        assert_eq!(glyph, '⣀');
        assert_eq!(cell(slice, 1, 3, Theme::colored(false)).0, ' ');
        assert_eq!(cell(Slice::default(), 0, 1, Theme::colored(false)).0, ' ');
    }

    #[test]
    fn round_times_are_round() {
        for (ns, step) in [(14.0, 20.0), (1.0, 1.0), (0.9e9, 1e9), (2.1e9, 5e9), (6e9, 1e10)] {
            assert!((round_step(ns) - step).abs() < step * 1e-9, "{ns}");
        }
        assert_eq!((minus(5e8), minus(2e9), minus(2e4)), ("-500 ms".into(), "-2 s".into(), "-20 µs".into()));
    }

    proptest! {
        #[test]
        fn any_size_any_content(width in 1u16..220, height in 1u16..70, columns in 0usize..300, rows in 0u32..60, offset in 0usize..100, ascii: bool) {
            picture(width, height, &timeline(columns, rows), offset, ascii);
        }
    }
}
