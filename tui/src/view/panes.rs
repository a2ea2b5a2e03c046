//! The views beside the tables: streams, processes, what is in flight, what happened, and the clock of a recording.
//! What they show, where a person is in them, and what a person wishes of the source, which is asked for in one place.

use std::time::{Duration, Instant};

use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::model::timeline::{Stretch, Timeline};
use ratatui::crossterm::event::KeyCode;

use super::happened::Happened;
use crate::tap::{Peer, Playback, Source};
use crate::text;

/// A column of the timeline, at the closest: about a millisecond.
const COLUMN_MIN_NS: u64 = 1 << 20;
const ZOOM_MAX: u32 = 12;
/// 67 ms a column: some seconds across a terminal.
const ZOOM_FIRST: u32 = 6;
/// Figures of all processes cost something.
const PEERS_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    Streams,
    Ranks,
    InFlight,
    Happened,
}

/// What the source is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    LookAt(u64),
    Pause,
    Step,
    Rewind,
    Faster(bool),
}

/// Where a person is in a list: so many lines from its start, or for what happened from its end.
#[derive(Clone, Copy, Debug, Default)]
struct Scroll {
    lines: usize,
}

#[derive(Debug)]
pub struct Panes {
    pub timeline: Timeline,
    pub peers: Vec<Peer>,
    pub peer_count: usize,
    pub happened: Happened,
    /// Of a recording.
    pub playback: Option<Playback>,
    zoom: u32,
    /// Columns that were asked for.
    asked_columns: u64,
    peers_at: Option<Instant>,
    /// The process that is held in the list.
    held: Option<u64>,
    scrolls: [Scroll; 4],
    told: usize,
    wishes: Vec<Wish>,
}

impl Default for Panes {
    fn default() -> Panes {
        Panes {
            timeline: Timeline::default(),
            peers: Vec::new(),
            peer_count: 1,
            happened: Happened::default(),
            playback: None,
            zoom: ZOOM_FIRST,
            asked_columns: 0,
            peers_at: None,
            held: None,
            scrolls: [Scroll::default(); 4],
            told: 0,
            wishes: Vec::new(),
        }
    }
}

impl Panes {
    /// Hands the source what a person wishes, and takes what the shown pane needs. `frozen`: the picture stays.
    pub fn serve(&mut self, source: &mut dyn Source, shown: Option<Pane>, columns: u64, frozen: bool, now: Instant) {
        for wish in std::mem::take(&mut self.wishes) {
            self.fulfil(source, wish);
        }
        self.playback = source.playback().cloned();
        let count = source.peer_count();
        if count != self.peer_count {
            self.happened.peers(self.peer_count, count);
            self.peer_count = count;
        }
        match shown {
            Some(Pane::Streams) => {
                let end_ns = if frozen { self.timeline.stretch.end_ns } else { 0 };
                self.asked_columns = columns;
                self.timeline = source.timeline(Stretch { end_ns, column_ns: self.column_ns(), columns });
            }
            Some(Pane::Ranks) if !frozen && self.peers_at.is_none_or(|at| now >= at + PEERS_EVERY) => {
                self.peers_at = Some(now);
                self.peers = source.peers();
            }
            _ => {}
        }
    }

    /// What a newer snapshot tells of what happened.
    pub fn look(&mut self, snapshot: &Snapshot) {
        let point = snapshot.clock.point.unwrap_or_default();
        let wall_ns = match point.realtime_ns {
            0 => 0,
            realtime_ns => snapshot.time_ns.wrapping_sub(point.monotonic_ns).wrapping_add(realtime_ns),
        };
        self.happened.look(snapshot, wall_ns);
        let told = self.happened.entries().len() + self.happened.gone() as usize;
        // Who reads what happened before keeps reading it.
        let back = &mut self.scrolls[Pane::Happened as usize].lines;
        if *back > 0 {
            *back += told.saturating_sub(self.told);
        }
        self.told = told;
    }

    fn fulfil(&mut self, source: &mut dyn Source, wish: Wish) {
        if let Wish::LookAt(key) = wish {
            source.look_at(key);
            self.peers_at = None;
        }
        let Some(playback) = source.playback() else { return };
        match wish {
            Wish::LookAt(_) => {}
            Wish::Pause => playback.toggle_pause(),
            Wish::Step => playback.step(),
            Wish::Rewind => playback.rewind(),
            Wish::Faster(faster) => playback.change_speed(faster),
        }
    }

    /// What a key did, in words; None where it means nothing here.
    pub fn key(&mut self, pane: Option<Pane>, code: KeyCode, page_rows: usize) -> Option<String> {
        if self.playback.is_some()
            && let Some(words) = self.play_key(code)
        {
            return Some(words);
        }
        match (pane?, code) {
            (Pane::Streams, KeyCode::Char('z' | '+' | '=')) => Some(self.zoom_in()),
            (Pane::Streams, KeyCode::Char('Z' | '-')) => Some(self.zoom_out()),
            (Pane::Ranks, KeyCode::Enter) => self.look_at_held(),
            (pane, code) => self.move_in(pane, code, page_rows).then(String::new),
        }
    }

    fn play_key(&mut self, code: KeyCode) -> Option<String> {
        let playback = self.playback.as_ref()?;
        let (wish, words) = match code {
            KeyCode::Char(' ' | 'p') if playback.is_at_end() => (Wish::Pause, "from the start".to_owned()),
            KeyCode::Char(' ' | 'p') if playback.is_paused() => (Wish::Pause, "playing".to_owned()),
            KeyCode::Char(' ' | 'p') => (Wish::Pause, "paused: space goes on, . is a step".to_owned()),
            KeyCode::Char('.' | 'n') => (Wish::Step, "a step of 100 ms".to_owned()),
            KeyCode::Char('0') => (Wish::Rewind, "from the start".to_owned()),
            KeyCode::Char('[') => (Wish::Faster(false), format!("slower than {}", playback.speed())),
            KeyCode::Char(']') => (Wish::Faster(true), format!("faster than {}", playback.speed())),
            _ => return None,
        };
        self.wishes.push(wish);
        Some(words)
    }

    pub fn column_ns(&self) -> u64 {
        COLUMN_MIN_NS << self.zoom
    }

    fn zoom_in(&mut self) -> String {
        if self.zoom == 0 {
            return "no closer: records are kept by the millisecond".to_owned();
        }
        self.zoom -= 1;
        format!("a column is {}", text::duration_ns(self.column_ns() as f64))
    }

    fn zoom_out(&mut self) -> String {
        if self.zoom >= ZOOM_MAX || self.timeline.stretch.columns < self.asked_columns {
            return "no farther: a minute is kept".to_owned();
        }
        self.zoom += 1;
        format!("a column is {}", text::duration_ns(self.column_ns() as f64))
    }

    /// The place of the held process, or of the one that is shown.
    pub fn selected(&self) -> usize {
        let held = |peer: &Peer| self.held.map_or(peer.is_shown, |key| peer.key == key);
        self.peers.iter().position(held).unwrap_or(0)
    }

    fn look_at_held(&mut self) -> Option<String> {
        let peer = self.peers.get(self.selected())?;
        self.wishes.push(Wish::LookAt(peer.key));
        let words = format!("now all views show {}", peer.label());
        let key = peer.key;
        self.peers.iter_mut().for_each(|peer| peer.is_shown = peer.key == key);
        Some(words)
    }

    /// Lines from the start, for what happened from the end.
    pub fn scrolled(&self, pane: Pane) -> usize {
        self.scrolls[pane as usize].lines
    }

    /// True where the key moves.
    fn move_in(&mut self, pane: Pane, code: KeyCode, page_rows: usize) -> bool {
        let page = page_rows.max(1) as isize;
        let by = match code {
            KeyCode::Char('j') | KeyCode::Down => 1,
            KeyCode::Char('k') | KeyCode::Up => -1,
            KeyCode::PageDown => page,
            KeyCode::PageUp => -page,
            KeyCode::Char('g') | KeyCode::Home => isize::MIN,
            KeyCode::Char('G') | KeyCode::End => isize::MAX,
            _ => return false,
        };
        match pane {
            Pane::Ranks => {
                let last = self.peers.len().saturating_sub(1);
                let to = self.selected().saturating_add_signed(by).min(last);
                self.held = self.peers.get(to).map(|peer| peer.key);
            }
            Pane::Happened => self.scroll(pane, by.saturating_neg(), self.happened.entries().len(), page_rows),
            Pane::Streams => self.scroll(pane, by, self.timeline.rows.len(), page_rows),
            Pane::InFlight => self.scroll(pane, by, gputap_reader::model::MAX_IN_FLIGHT_ROWS, page_rows),
        }
        true
    }

    fn scroll(&mut self, pane: Pane, by: isize, lines: usize, page_rows: usize) {
        let scroll = &mut self.scrolls[pane as usize];
        scroll.lines = scroll.lines.saturating_add_signed(by).min(lines.saturating_sub(page_rows));
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::error::Result;

    /// Remembers what it was asked.
    struct Fake {
        playback: Option<Playback>,
        looked_at: Option<u64>,
        stretch: Option<Stretch>,
    }

    impl Source for Fake {
        fn step(&mut self) -> Result<bool> {
            Ok(false)
        }

        fn snapshot(&mut self) -> Snapshot {
            Snapshot::default()
        }

        fn ended(&self) -> bool {
            false
        }

        fn pending_checksums(&self) -> usize {
            0
        }

        fn finish(&mut self) -> Result<()> {
            Ok(())
        }

        fn discard(&mut self) {}

        fn timeline(&mut self, stretch: Stretch) -> Timeline {
            self.stretch = Some(stretch);
            Timeline { stretch: Stretch { end_ns: 77, ..stretch }, ..Timeline::default() }
        }

        fn peers(&mut self) -> Vec<Peer> {
            (0..3).map(|key| Peer { key, is_shown: key == 0, alive: true, ..Peer::default() }).collect()
        }

        fn look_at(&mut self, key: u64) {
            self.looked_at = Some(key);
        }

        fn playback(&mut self) -> Option<&mut Playback> {
            self.playback.as_mut()
        }
    }

    fn fake() -> Fake {
        Fake { playback: None, looked_at: None, stretch: None }
    }

    fn serve(panes: &mut Panes, fake: &mut Fake, pane: Pane, frozen: bool) {
        panes.serve(fake, Some(pane), 80, frozen, Instant::now());
    }

    #[test]
    fn the_zoom_changes_what_is_asked_for() {
        let (mut panes, mut fake) = (Panes::default(), fake());
        serve(&mut panes, &mut fake, Pane::Streams, false);
        let first = fake.stretch.unwrap();
        assert_eq!((first.end_ns, first.columns), (0, 80));
        assert!(panes.key(Some(Pane::Streams), KeyCode::Char('z'), 10).is_some());
        serve(&mut panes, &mut fake, Pane::Streams, true);
        let second = fake.stretch.unwrap();
        assert_eq!((second.end_ns, second.column_ns * 2), (77, first.column_ns), "frozen: where it was");
        (0..99).for_each(|_| drop(panes.key(Some(Pane::Streams), KeyCode::Char('+'), 10)));
        assert_eq!(panes.column_ns(), COLUMN_MIN_NS);
        (0..99).for_each(|_| drop(panes.key(Some(Pane::Streams), KeyCode::Char('-'), 10)));
        assert_eq!(panes.column_ns(), COLUMN_MIN_NS << ZOOM_MAX);
        assert_eq!(panes.key(Some(Pane::Happened), KeyCode::Char('z'), 10), None);
    }

    #[test]
    fn enter_looks_at_the_held_process() {
        let (mut panes, mut fake) = (Panes::default(), fake());
        serve(&mut panes, &mut fake, Pane::Ranks, false);
        assert_eq!(panes.selected(), 0);
        panes.key(Some(Pane::Ranks), KeyCode::Char('j'), 10);
        panes.key(Some(Pane::Ranks), KeyCode::Down, 10);
        panes.key(Some(Pane::Ranks), KeyCode::Down, 10);
        assert_eq!(panes.selected(), 2, "not beyond the last");
        panes.key(Some(Pane::Ranks), KeyCode::Enter, 10);
        serve(&mut panes, &mut fake, Pane::Ranks, false);
        assert_eq!(fake.looked_at, Some(2));
    }

    #[test]
    fn keys_of_a_recording_mean_nothing_to_a_live_tap() {
        let mut panes = Panes::default();
        assert_eq!(panes.key(None, KeyCode::Char(' '), 10), None);
        let mut fake = Fake { playback: Some(Playback::new(0, 10_000_000_000)), ..fake() };
        serve(&mut panes, &mut fake, Pane::Streams, false);
        for code in [']', ']', '.', 'n'] {
            assert!(panes.key(None, KeyCode::Char(code), 10).is_some());
        }
        serve(&mut panes, &mut fake, Pane::Streams, false);
        let playback = fake.playback.as_ref().unwrap();
        assert_eq!((playback.speed().times(), playback.is_paused(), playback.at_ns()), (4.0, true, 200_000_000));
        panes.key(None, KeyCode::Char('p'), 10);
        serve(&mut panes, &mut fake, Pane::Streams, false);
        assert!(!fake.playback.as_ref().unwrap().is_paused());
    }

    #[test]
    fn who_reads_what_happened_before_keeps_reading_it() {
        let mut panes = Panes::default();
        let mut snapshot = Snapshot::default();
        (snapshot.target.pid, snapshot.time_ns) = (3, 1);
        let mut change = |panes: &mut Panes, times: std::ops::Range<u32>| {
            for time in times {
                snapshot.target.reason = time.to_string();
                panes.look(&snapshot);
            }
        };
        change(&mut panes, 0..50);
        panes.key(Some(Pane::Happened), KeyCode::Char('k'), 10);
        assert_eq!(panes.scrolled(Pane::Happened), 1);
        change(&mut panes, 50..55);
        assert_eq!(panes.scrolled(Pane::Happened), 6);
        panes.key(Some(Pane::Happened), KeyCode::Char('G'), 10);
        change(&mut panes, 55..60);
        assert_eq!(panes.scrolled(Pane::Happened), 0, "at the end it follows");
        panes.key(Some(Pane::Happened), KeyCode::Char('g'), 10);
        assert_eq!(panes.scrolled(Pane::Happened), 61 - 10);
    }
}
