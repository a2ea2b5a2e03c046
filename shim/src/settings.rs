//! The GPUTAP_ variables of the job's environment, read once at start-up.

use crate::exit;
use gputap_ringbuf::{
    backing::create::BackingChoice,
    event::{self, BASIC_KINDS},
    header::{identity::Backing, status::ClockSource},
    layout::{CHUNK_WORDS, Sizes},
};
use std::{env, path::PathBuf, time::Duration};

/// What the tap does before any reader asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAs {
    Idle,
    /// Recording until the first reader comes; from then on what readers want.
    Recording,
    BlackBox,
    Yielded,
}

/// How this tap is to behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// GPUTAP_CUPTI: use this libcupti and no other.
    pub cupti: Option<PathBuf>,
    /// GPUTAP_FLUSH_MS: period of the flush while recording. Fractions are taken.
    pub flush: Duration,
    /// GPUTAP_BACKING.
    pub backing: BackingChoice,
    /// GPUTAP_START.
    pub start: StartAs,
    /// GPUTAP_KINDS: what is recorded where no reader says.
    pub kinds: u64,
    /// GPUTAP_LAUNCHES: a callback at each launch, so that launches can be recorded.
    pub launches: bool,
    /// GPUTAP_CLOCK: which clock CUPTI is to read.
    pub clock: ClockSource,
    /// GPUTAP_SELFTEST_MS: launches that leave no record for so long are said to.
    pub self_test: Duration,
    /// GPUTAP_EXIT_MS: an exit waits so long for the last flush.
    pub exit: Duration,
    /// GPUTAP_LANE_MB, GPUTAP_CUBIN_MB.
    pub sizes: Sizes,
    /// What could not be understood and was left at its default, for people; empty if all was well.
    pub complaint: String,
}

impl Settings {
    pub fn from_environment() -> Settings {
        Self::from_variables(|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from_variables(get: impl Fn(&str) -> Option<String>) -> Settings {
        let mut from = Variables { get, complaint: String::new() };
        let lane_mb = from.number("GPUTAP_LANE_MB", 1, 1024, ((Sizes::DEFAULT.lane_words * 8) >> 20) as u64);
        let cubin_mb = from.number("GPUTAP_CUBIN_MB", 1, 64 << 10, (Sizes::DEFAULT.cubin_bytes >> 20) as u64);
        let lane_words = ((lane_mb as usize) << 20) / 8;
        debug_assert!(lane_words.is_multiple_of(CHUNK_WORDS));
        Settings {
            cupti: from.text("GPUTAP_CUPTI").map(PathBuf::from),
            flush: from.milliseconds("GPUTAP_FLUSH_MS", 0.1, 60_000.0, 100.0),
            backing: from.choice("GPUTAP_BACKING", &BACKINGS),
            start: from.choice("GPUTAP_START", &STARTS),
            kinds: from.kinds("GPUTAP_KINDS"),
            launches: from.choice("GPUTAP_LAUNCHES", &[("0", false), ("1", true)]),
            clock: from.choice("GPUTAP_CLOCK", &CLOCKS),
            self_test: from.milliseconds("GPUTAP_SELFTEST_MS", 1.0, 3_600_000.0, 10_000.0),
            exit: from.milliseconds("GPUTAP_EXIT_MS", 0.0, 60_000.0, exit::PATIENCE.as_millis() as f64),
            sizes: Sizes { lane_words, cubin_bytes: (cubin_mb as usize) << 20, ..Sizes::DEFAULT },
            complaint: from.complaint,
        }
    }
}

/// The first of each is the default.
const BACKINGS: [(&str, BackingChoice); 3] = [
    ("auto", BackingChoice::Auto),
    ("shm", BackingChoice::Only(Backing::Shm)),
    ("memfd", BackingChoice::Only(Backing::Memfd)),
];
const STARTS: [(&str, StartAs); 4] = [
    ("idle", StartAs::Idle),
    ("recording", StartAs::Recording),
    ("blackbox", StartAs::BlackBox),
    ("yielded", StartAs::Yielded),
];
const CLOCKS: [(&str, ClockSource); 2] = [("wall", ClockSource::Realtime), ("monotonic", ClockSource::Monotonic)];

/// Variables, and what is wrong with them.
struct Variables<G> {
    get: G,
    complaint: String,
}

impl<G: Fn(&str) -> Option<String>> Variables<G> {
    fn text(&self, name: &str) -> Option<String> {
        (self.get)(name)
    }

    fn complain(&mut self, name: &str, value: &str, expected: &str) {
        self.complaint.push_str(&format!("{name}={value} is not {expected}, the default is used. "));
    }

    fn number(&mut self, name: &str, least: u64, most: u64, default: u64) -> u64 {
        let Some(text) = self.text(name) else { return default };
        match text.parse() {
            Ok(n) if (least..=most).contains(&n) => n,
            _ => {
                self.complain(name, &text, &format!("a number from {least} to {most}"));
                default
            }
        }
    }

    fn milliseconds(&mut self, name: &str, least: f64, most: f64, default: f64) -> Duration {
        let in_range = |ms: &f64| (least..=most).contains(ms);
        let ms = match self.text(name).map(|text| (text.parse().ok().filter(in_range), text)) {
            None => default,
            Some((Some(ms), _)) => ms,
            Some((None, text)) => {
                self.complain(name, &text, &format!("a number of milliseconds from {least} to {most}"));
                default
            }
        };
        Duration::from_secs_f64(ms / 1000.0)
    }

    fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> T {
        let text = self.text(name).unwrap_or_else(|| choices[0].0.to_owned());
        match choices.iter().find(|choice| choice.0 == text) {
            Some(choice) => choice.1,
            None => {
                let names: Vec<_> = choices.iter().map(|choice| choice.0).collect();
                self.complain(name, &text, &format!("one of {}", names.join(", ")));
                choices[0].1
            }
        }
    }

    fn kinds(&mut self, name: &str) -> u64 {
        let Some(text) = self.text(name) else { return BASIC_KINDS };
        event::kinds_of(&text).unwrap_or_else(|error| {
            self.complain(name, &text, &format!("a list of kinds ({error})"));
            BASIC_KINDS
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputap_ringbuf::event::EventKind;

    fn with(pairs: &[(&str, &str)]) -> Settings {
        Settings::from_variables(|name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_string()))
    }

    #[test]
    fn nothing_set_means_the_defaults_and_no_complaint() {
        let s = with(&[]);
        assert_eq!((s.start, s.sizes, s.complaint.as_str()), (StartAs::Idle, Sizes::DEFAULT, ""));
        assert_eq!((s.flush, s.self_test), (Duration::from_millis(100), Duration::from_secs(10)));
    }

    #[test]
    fn what_is_set_is_taken() {
        let s = with(&[("GPUTAP_FLUSH_MS", "0.2"), ("GPUTAP_BACKING", "memfd"), ("GPUTAP_START", "blackbox")]);
        assert_eq!((s.flush, s.start), (Duration::from_micros(200), StartAs::BlackBox));
        assert_eq!(s.backing, BackingChoice::Only(Backing::Memfd));
        let s = with(&[("GPUTAP_KINDS", "kernel,graph"), ("GPUTAP_LAUNCHES", "1"), ("GPUTAP_CLOCK", "monotonic")]);
        assert_eq!((s.launches, s.clock, s.complaint.as_str()), (true, ClockSource::Monotonic, ""));
        assert_eq!(s.kinds, EventKind::Kernel.bit() | EventKind::Graph.bit());
    }

    #[test]
    fn nonsense_is_named_and_costs_nothing_else() {
        let s = with(&[
            ("GPUTAP_FLUSH_MS", "soon"),
            ("GPUTAP_START", "now"),
            ("GPUTAP_LANE_MB", "4"),
            ("GPUTAP_KINDS", "warps"),
        ]);
        assert_eq!((s.flush.as_millis(), s.start, s.sizes.lane_words), (100, StartAs::Idle, 4 << 17));
        assert!(s.complaint.contains("GPUTAP_FLUSH_MS=soon") && s.complaint.contains("GPUTAP_START=now"));
        assert!(s.kinds == BASIC_KINDS && s.complaint.contains("warps"), "{}", s.complaint);
    }
}
