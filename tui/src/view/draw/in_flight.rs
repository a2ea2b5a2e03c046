//! What was launched and has not finished, the oldest first.

use gputap_reader::model::snapshot::{InFlight, InFlightRow, Snapshot};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::line_at;
use crate::text;
use crate::view::theme::Theme;

const LAUNCH: &str = "launch";
/// What records on their way do not explain.
const LONG_NS: u64 = 2_000_000_000;
const AGE_COLUMNS: usize = 9;
const SURE_COLUMNS: usize = 9;
const NUMBER_COLUMNS: usize = 9;

pub fn draw(frame: &mut Frame, area: Rect, snapshot: &Snapshot, offset: usize, theme: Theme) {
    let in_flight = &snapshot.in_flight;
    if in_flight.launches == 0 {
        return super::empty(frame, area, theme, &why_nothing(snapshot));
    }
    line_at(frame, area, 0, &summary(in_flight, theme));
    if in_flight.oldest.is_empty() {
        let below = Rect { y: area.y + area.height.min(1), height: area.height.saturating_sub(1), ..area };
        return super::empty(frame, below, theme, &["all that was launched has finished".to_owned()]);
    }
    line_at(frame, area, 1, &titles(area.width, theme));
    let page = usize::from(area.height.saturating_sub(2));
    let offset = offset.min(in_flight.oldest.len().saturating_sub(page));
    for (place, launch) in in_flight.oldest.iter().skip(offset).take(page).enumerate() {
        line_at(frame, area, place as u16 + 2, &row(launch, area.width, theme));
    }
}

fn why_nothing(snapshot: &Snapshot) -> Vec<String> {
    if snapshot.target.kinds.contains(&LAUNCH) {
        return vec!["launches are recorded; none was seen yet".to_owned()];
    }
    let words = [
        "launches are not recorded, so what is in flight is not known",
        "start the job with: gputap top --launches -- COMMAND",
        "the job must have been started with it; a tap that knows it: gputap top --launches -p PID",
    ];
    words.map(str::to_owned).to_vec()
}

fn summary(in_flight: &InFlight, theme: Theme) -> Line<'static> {
    let mut line = Line::default();
    let open = format!("{} in flight", text::grouped(in_flight.open));
    line.push_span(Span::styled(open, theme.strong()));
    line.push_span(Span::styled(format!(" of {} launches", text::count(in_flight.launches)), theme.faint()));
    let shown = in_flight.oldest.len() as u64;
    if in_flight.open > shown {
        line.push_span(Span::styled(format!(", the {shown} oldest"), theme.faint()));
    }
    for (number, what) in [
        (in_flight.uncertain, "uncertain: records were lost since"),
        (in_flight.given_up, "never seen to finish"),
        (in_flight.not_tracked, "not followed, for want of room"),
    ] {
        if number > 0 {
            line.push_span(Span::styled(format!("   {} {what}", text::grouped(number)), theme.warning()));
        }
    }
    line
}

fn titles(width: u16, theme: Theme) -> Line<'static> {
    let mut words = text::pad("AGE", AGE_COLUMNS, true) + " " + &text::pad("", SURE_COLUMNS, false);
    if has_numbers(width) {
        words += &text::pad("THREAD", NUMBER_COLUMNS, true);
        words += &text::pad("CONTEXT", NUMBER_COLUMNS, true);
    }
    Line::styled(words + " LAUNCHED", theme.column_title(false))
}

fn has_numbers(width: u16) -> bool {
    width >= 60
}

fn row(launch: &InFlightRow, width: u16, theme: Theme) -> Line<'static> {
    let age = text::pad(&text::duration_ns(launch.age_ns as f64), AGE_COLUMNS, true);
    let age_style = match (launch.uncertain, launch.age_ns > LONG_NS) {
        (false, true) => theme.warning(),
        (false, false) => Style::new(),
        (true, _) => theme.faint(),
    };
    let sure = if launch.uncertain { "uncertain" } else { "" };
    let mut line = Line::from(vec![
        Span::styled(age, age_style),
        Span::raw(" "),
        Span::styled(text::pad(sure, SURE_COLUMNS, false), theme.warning()),
    ]);
    if has_numbers(width) {
        let number = |number: u32| text::pad(&number.to_string(), NUMBER_COLUMNS, true);
        line.push_span(Span::styled(number(launch.thread) + &number(launch.context), theme.faint()));
    }
    let room = usize::from(width).saturating_sub(line.width() + 1);
    let style = if launch.uncertain { theme.faint() } else { Style::new() };
    line.push_span(Span::styled(format!(" {}", text::kernel_name(&launch.name, room)), style));
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn snapshot(rows: u64) -> Snapshot {
        let row = |number: u64| InFlightRow {
            name: format!("void gemm_{number}<float>(int)\u{1b}[31m核"),
            age_ns: 5_000_000_000 - number * 90_000_000,
            thread: 4_194_303,
            context: 1,
            uncertain: number % 3 == 1,
            ..InFlightRow::default()
        };
        let oldest = (0..rows).map(row).collect();
        let in_flight = InFlight { launches: 90_000, open: rows, uncertain: 1, oldest, ..InFlight::default() };
        Snapshot { in_flight, ..Snapshot::default() }
    }

    fn picture(width: u16, height: u16, snapshot: &Snapshot, offset: usize) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let theme = Theme::colored(false);
        terminal.draw(|frame| draw(frame, frame.area(), snapshot, offset, theme)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_oldest_come_first_and_the_uncertain_are_marked() {
        let shown = picture(80, 6, &snapshot(3), 0);
        assert_eq!(shown[0], "3 in flight of 90,000 launches   1 uncertain: records were lost since");
        assert_eq!(shown[1], "      AGE             THREAD  CONTEXT LAUNCHED");
        assert!(shown[2].starts_with("   5.00 s            4194303        1 gemm_0<float>(int)"), "{}", shown[2]);
        assert!(shown[3].contains("uncertain") && !shown[2].contains("uncertain"));
        assert!(!shown.concat().contains('\u{1b}'));
    }

    #[test]
    fn where_launches_are_not_recorded_it_says_how_to_have_them() {
        let words = picture(100, 8, &Snapshot::default(), 0).join("\n");
        assert!(words.contains("not recorded") && words.contains("--launches"), "{words}");
        let mut on = Snapshot::default();
        on.target.kinds = vec!["kernel", "launch"];
        assert!(picture(100, 8, &on, 0).join("\n").contains("none was seen yet"));
        let done = Snapshot { in_flight: InFlight { launches: 4, ..InFlight::default() }, ..Snapshot::default() };
        assert!(picture(100, 8, &done, 0).join("\n").contains("all that was launched has finished"));
    }

    #[test]
    fn it_scrolls_to_the_last_and_no_farther() {
        let shown = picture(80, 12, &snapshot(32), 1_000);
        assert!(shown.last().unwrap().contains("gemm_31<"), "{}", shown.join("\n"));
    }

    proptest! {
        #[test]
        fn any_size(width in 1u16..220, height in 1u16..70, rows in 0u64..40, offset in 0usize..50) {
            picture(width, height, &snapshot(rows), offset);
        }
    }
}
