//! The clock of a recording that is played: it stands, runs slower or faster, and is moved by hand. Wall time nanoseconds.

use std::time::Instant;

/// Times as fast as it was.
const SPEEDS: [f64; 7] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0];
const AS_IT_WAS: usize = 2;
/// What a step moves on by.
pub const STEP_NS: u64 = 100_000_000;

/// How fast, as a place among the speeds there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(usize);

impl Speed {
    pub fn times(self) -> f64 {
        SPEEDS[self.0]
    }
}

impl std::fmt::Display for Speed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "×{}", self.times())
    }
}

#[derive(Clone, Debug)]
pub struct Playback {
    /// The recorded times, wall time.
    pub began_ns: u64,
    /// As far as it is known: the last status' time, moved on by later events.
    pub end_ns: u64,
    /// How far it has been played.
    at_ns: u64,
    speed: Speed,
    paused: bool,
    /// When `at_ns` was right, where the clock runs.
    since: Option<Instant>,
    /// From the start again.
    rewound: bool,
}

impl Playback {
    pub fn new(began_ns: u64, end_ns: u64) -> Playback {
        let end_ns = end_ns.max(began_ns);
        Playback {
            began_ns,
            end_ns,
            at_ns: began_ns,
            speed: Speed(AS_IT_WAS),
            paused: false,
            since: None,
            rewound: false,
        }
    }

    /// Moves on by the time that has passed, and gives where it is now.
    pub fn advance(&mut self, now: Instant) -> u64 {
        let since = self.since.replace(now).unwrap_or(now);
        if !self.paused {
            let passed_ns = now.saturating_duration_since(since).as_nanos() as f64 * self.speed.times();
            self.move_to(self.at_ns.saturating_add(passed_ns as u64));
        }
        self.at_ns
    }

    fn move_to(&mut self, to_ns: u64) {
        self.at_ns = to_ns.clamp(self.began_ns, self.end_ns);
        self.paused |= self.at_ns == self.end_ns;
    }

    pub fn at_ns(&self) -> u64 {
        self.at_ns
    }

    pub fn speed(&self) -> Speed {
        self.speed
    }

    pub fn is_paused(&self) -> bool {
        self.paused
    }

    pub fn is_at_end(&self) -> bool {
        self.at_ns == self.end_ns
    }

    /// Share of the recording that has been played, 0 to 1.
    pub fn share(&self) -> f64 {
        let all_ns = self.end_ns - self.began_ns;
        if all_ns == 0 { 1.0 } else { (self.at_ns - self.began_ns) as f64 / all_ns as f64 }
    }

    /// Stops, or goes on; from the end, starts again.
    pub fn toggle_pause(&mut self) {
        if self.is_at_end() {
            self.rewind();
        } else {
            self.paused = !self.paused;
        }
    }

    pub fn rewind(&mut self) {
        self.at_ns = self.began_ns;
        self.paused = false;
        self.rewound = true;
    }

    /// Stops, and moves on by [`STEP_NS`].
    pub fn step(&mut self) {
        self.paused = true;
        self.move_to(self.at_ns.saturating_add(STEP_NS));
    }

    /// To the next speed above or below, as far as there is one.
    pub fn change_speed(&mut self, faster: bool) {
        let Speed(at) = self.speed;
        self.speed = Speed(if faster { (at + 1).min(SPEEDS.len() - 1) } else { at.saturating_sub(1) });
    }

    /// The player cannot keep up: the clock waits for it.
    pub(super) fn hold_at(&mut self, at_ns: u64) {
        self.at_ns = at_ns.clamp(self.began_ns, self.at_ns);
    }

    pub(super) fn take_rewound(&mut self) -> bool {
        std::mem::take(&mut self.rewound)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn it_runs_at_its_speed_and_stops_at_the_end() {
        let start = Instant::now();
        let at = |tenths: u64| start + Duration::from_millis(tenths * 100);
        let mut playback = Playback::new(5 * SECOND_NS, 15 * SECOND_NS);
        assert_eq!(playback.advance(at(0)), 5 * SECOND_NS);
        assert_eq!(playback.advance(at(10)), 6 * SECOND_NS);
        playback.change_speed(true);
        playback.change_speed(true);
        assert_eq!((playback.advance(at(20)), playback.speed().to_string()), (10 * SECOND_NS, "×4".into()));
        assert_eq!((playback.advance(at(90)), playback.is_at_end()), (15 * SECOND_NS, true));
        assert!(playback.is_paused() && playback.share() == 1.0);
        playback.toggle_pause();
        assert_eq!((playback.at_ns(), playback.is_paused()), (5 * SECOND_NS, false), "from the start");
        assert!(playback.take_rewound() && !playback.take_rewound());
    }

    #[test]
    fn a_pause_costs_no_time_and_a_step_moves_while_it_stands() {
        let start = Instant::now();
        let mut playback = Playback::new(0, 10 * SECOND_NS);
        playback.advance(start);
        playback.toggle_pause();
        assert_eq!(playback.advance(start + Duration::from_secs(5)), 0);
        playback.step();
        assert_eq!(playback.at_ns(), STEP_NS);
        playback.toggle_pause();
        assert_eq!(playback.advance(start + Duration::from_secs(6)), STEP_NS + SECOND_NS);
    }

    #[test]
    fn speeds_end_where_there_are_no_more() {
        let mut playback = Playback::new(0, 1);
        (0..20).for_each(|_| playback.change_speed(false));
        assert_eq!(playback.speed().times(), 0.25);
        (0..20).for_each(|_| playback.change_speed(true));
        assert_eq!(playback.speed().times(), 16.0);
    }
}
