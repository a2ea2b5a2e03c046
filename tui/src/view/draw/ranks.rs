//! The processes of a job side by side, the slowest marked.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::line_at;
use crate::tap::Peer;
use crate::text;
use crate::view::slowest::{self, Slowest};
use crate::view::theme::Theme;

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Who,
    Pid,
    Gpu,
    State,
    Rate,
    Busy,
    Compute,
    Collective,
    Step,
    Lost,
    Top,
}

/// Title, columns, aligned to the right, and how early a narrow window leaves it out: lower stays longer.
const COLUMNS: [(What, &str, usize, bool, u8); 11] = [
    (What::Who, "PROCESS", 12, false, 0),
    (What::Pid, "PID", 8, true, 6),
    (What::Gpu, "GPU", 5, true, 5),
    (What::State, "STATE", 10, false, 9),
    (What::Rate, "KERNELS", 9, true, 2),
    (What::Busy, "BUSY", 6, true, 1),
    (What::Compute, "COMPUTE", 7, true, 4),
    (What::Collective, "COLLECT", 7, true, 3),
    (What::Step, "STEP", 8, true, 7),
    (What::Lost, "LOST", 8, true, 1),
    (What::Top, "MOST TIME IN", 0, false, 8),
];
const MARK: &str = "▲";
/// Of the last column, or it goes.
const TOP_MIN_COLUMNS: usize = 12;
/// A rule, and what the columns mean.
const NOTE_LINES: u16 = 2;

pub fn draw(frame: &mut Frame, area: Rect, peers: &[Peer], selected: usize, theme: Theme) {
    if peers.is_empty() {
        return super::empty(frame, area, theme, &["no process yet".to_owned()]);
    }
    let slowest = slowest::of(peers);
    let shown = fit(area.width.into());
    line_at(frame, area, 0, &titles(&shown, theme));
    let notes = if area.height >= 8 { NOTE_LINES } else { 0 };
    let page = usize::from(area.height.saturating_sub(1 + notes));
    let first = (selected + 1).saturating_sub(page);
    for (place, peer) in peers.iter().enumerate().skip(first).take(page) {
        let mark = if slowest == Slowest::This(place) { MARK } else { "" };
        let line = row(peer, mark, &shown, theme);
        let y = (place - first) as u16 + 1;
        if place == selected && peers.len() > 1 {
            let words: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            line_at(frame, area, y, &Line::styled(text::pad(&words, area.width.into(), false), theme.selected()));
        } else {
            line_at(frame, area, y, &line);
        }
    }
    if notes > 0 {
        let rule = slowest.words();
        let style = if matches!(slowest, Slowest::This(_)) { theme.warning() } else { theme.faint() };
        line_at(frame, area, area.height - 2, &Line::styled(rule, style));
        let words = "shares: of 10 s, streams added up   step: of the device, where work repeats   ⏎ look at it";
        line_at(frame, area, area.height - 1, &Line::styled(words, theme.faint()));
    }
}

fn titles(shown: &[(usize, usize)], theme: Theme) -> Line<'static> {
    let mut line = Line::default();
    for &(place, width) in shown {
        let (_, title, _, right, _) = COLUMNS[place];
        line.push_span(Span::styled(text::pad(title, width, right), theme.column_title(false)));
        line.push_span(" ");
    }
    line
}

fn row(peer: &Peer, mark: &str, shown: &[(usize, usize)], theme: Theme) -> Line<'static> {
    let mut line = Line::default();
    for &(place, width) in shown {
        let (what, _, _, right, _) = COLUMNS[place];
        let (words, style) = cell(peer, what, mark, width, theme);
        line.push_span(Span::styled(text::pad(&words, width, right), style));
        line.push_span(" ");
    }
    line
}

fn cell(peer: &Peer, what: What, mark: &str, width: usize, theme: Theme) -> (String, Style) {
    let plain = Style::new();
    match what {
        What::Who => {
            let shown = if peer.is_shown { "*" } else { " " };
            let host = if peer.standing.host.is_empty() { String::new() } else { format!(" {}", peer.standing.host) };
            let style = if mark.is_empty() { theme.strong() } else { theme.warning() };
            (format!("{shown}{}{host}{mark}", peer.label() + if mark.is_empty() { "" } else { " " }), style)
        }
        What::Pid => (peer.pid.to_string(), theme.faint()),
        What::Gpu => (peer.gpus.clone(), plain),
        What::State => (peer.state.clone(), theme.state(&peer.state)),
        What::Rate => (text::per_s(peer.kernels_per_s), plain),
        What::Busy => (text::percent(peer.gpu_busy), theme.busy(peer.gpu_busy)),
        What::Compute => (text::percent(peer.work.compute), plain),
        What::Collective => (text::percent(peer.work.collective), plain),
        What::Step => match peer.step_ns {
            Some(step_ns) => (text::duration_ns(step_ns as f64), plain),
            None => ("-".into(), theme.faint()),
        },
        What::Lost => (text::count(peer.lost), if peer.loses { theme.bad() } else { theme.good() }),
        What::Top => {
            let share = text::percent(peer.top_share);
            if peer.top_kernel.is_empty() {
                // Nothing ran yet: what it is at all.
                return (text::clip(&peer.command, width), theme.faint());
            }
            let name = text::kernel_name(&peer.top_kernel, width.saturating_sub(7));
            (format!("{} {name}", text::pad(&share, 6, true)), plain)
        }
    }
}

/// The columns that fit, as places, each with its width; the last takes what is left.
fn fit(total: usize) -> Vec<(usize, usize)> {
    let mut by_rank: Vec<usize> = (0..COLUMNS.len()).collect();
    by_rank.sort_by_key(|&place| COLUMNS[place].4);
    let mut left = total;
    let mut shown = Vec::new();
    for place in by_rank {
        let (what, _, width, _, _) = COLUMNS[place];
        let width = if what == What::Top { TOP_MIN_COLUMNS } else { width };
        if width + 1 > left {
            break;
        }
        left -= width + 1;
        shown.push((place, width));
    }
    shown.sort_unstable();
    if let Some((place, width)) = shown.last_mut()
        && COLUMNS[*place].0 == What::Top
    {
        *width += left;
    }
    if shown.is_empty() { vec![(0, total)] } else { shown }
}

#[cfg(test)]
mod tests {
    use gputap_reader::model::timeline::WorkShares;
    use proptest::prelude::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::tap::Standing;

    fn peer(rank: u32, collective: f64) -> Peer {
        Peer {
            key: rank.into(),
            pid: 4000 + rank,
            standing: Standing { rank: Some(rank), ..Standing::default() },
            gpus: rank.to_string(),
            state: "recording".into(),
            alive: true,
            kernels_per_s: 41_234.0,
            gpu_busy: 0.93,
            work: WorkShares { compute: 0.9 - collective, collective, ..WorkShares::default() },
            top_kernel: "void gemm<float>(int, float const*)\u{1b}[2J".into(),
            top_share: 0.41,
            step_ns: Some(125_000_000),
            is_shown: rank == 0,
            ..Peer::default()
        }
    }

    fn picture(width: u16, height: u16, peers: &[Peer], selected: usize) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let theme = Theme::colored(false);
        terminal.draw(|frame| draw(frame, frame.area(), peers, selected, theme)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_slowest_is_marked_and_the_rule_is_said() {
        let peers = [peer(0, 0.3), peer(1, 0.29), peer(2, 0.04), peer(3, 0.31)];
        let shown = picture(120, 12, &peers, 0);
        let marked: Vec<_> = shown.iter().filter(|line| line.contains("▲")).collect();
        assert_eq!(marked.len(), 2, "{}", shown.join("\n"));
        assert!(marked[0].starts_with(" rank 2 ▲") && marked[1].contains("least time in collectives"));
        assert!(shown[1].starts_with("*rank 0"), "the one that is shown");
    }

    #[test]
    fn what_matters_most_stays_longest() {
        let shown = picture(40, 6, &[peer(0, 0.3), peer(1, 0.3)], 1);
        assert!(shown[0].contains("BUSY") && shown[0].contains("LOST"), "{}", shown.join("\n"));
        assert!(!shown.concat().contains('\u{1b}'));
    }

    #[test]
    fn the_selected_one_is_in_sight() {
        let peers: Vec<Peer> = (0..64).map(|rank| peer(rank, 0.3)).collect();
        let shown = picture(80, 10, &peers, 63);
        assert!(shown.concat().contains("rank 63"));
    }

    proptest! {
        #[test]
        fn any_size_any_number(width in 1u16..220, height in 1u16..70, count in 0u32..80, selected in 0usize..80) {
            let peers: Vec<Peer> = (0..count).map(|rank| peer(rank * 77_777, 0.3)).collect();
            picture(width, height, &peers, selected);
        }
    }
}
