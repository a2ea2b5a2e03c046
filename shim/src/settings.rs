//! The GPUTAP_ variables of the job's environment, read once at start-up.

use gputap_ringbuf::{
    backing::create::BackingChoice,
    header::identity::Backing,
    layout::{CHUNK_WORDS, Sizes},
};
use std::{env, path::PathBuf};

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
    /// GPUTAP_FLUSH_MS: period of the flush while recording.
    pub flush_ms: u64,
    /// GPUTAP_BACKING.
    pub backing: BackingChoice,
    /// GPUTAP_START.
    pub start: StartAs,
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
        let mut complaint = String::new();
        let mut complain = |name: &str, value: &str, expected: &str| {
            complaint.push_str(&format!("{name}={value} is not {expected}, the default is used. "));
        };
        let mut number = |name: &str, least: u64, most: u64, default: u64| {
            let Some(text) = get(name) else { return default };
            match text.parse() {
                Ok(n) if (least..=most).contains(&n) => n,
                _ => {
                    complain(name, &text, &format!("a number from {least} to {most}"));
                    default
                }
            }
        };
        let flush_ms = number("GPUTAP_FLUSH_MS", 1, 60_000, 100);
        let lane_mb = number("GPUTAP_LANE_MB", 1, 1024, ((Sizes::DEFAULT.lane_words * 8) >> 20) as u64);
        let cubin_mb = number("GPUTAP_CUBIN_MB", 1, 64 << 10, (Sizes::DEFAULT.cubin_bytes >> 20) as u64);
        let backing = match get("GPUTAP_BACKING").as_deref() {
            None | Some("auto") => BackingChoice::Auto,
            Some("shm") => BackingChoice::Only(Backing::Shm),
            Some("memfd") => BackingChoice::Only(Backing::Memfd),
            Some(other) => {
                complain("GPUTAP_BACKING", other, "auto, shm or memfd");
                BackingChoice::Auto
            }
        };
        let start = match get("GPUTAP_START").as_deref() {
            None | Some("idle") => StartAs::Idle,
            Some("recording") => StartAs::Recording,
            Some("blackbox") => StartAs::BlackBox,
            Some("yielded") => StartAs::Yielded,
            Some(other) => {
                complain("GPUTAP_START", other, "idle, recording, blackbox or yielded");
                StartAs::Idle
            }
        };
        let lane_words = ((lane_mb as usize) << 20) / 8;
        debug_assert!(lane_words.is_multiple_of(CHUNK_WORDS));
        let sizes = Sizes { lane_words, cubin_bytes: (cubin_mb as usize) << 20, ..Sizes::DEFAULT };
        Settings { cupti: get("GPUTAP_CUPTI").map(PathBuf::from), flush_ms, backing, start, sizes, complaint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Settings {
        Settings::from_variables(|name| pairs.iter().find(|p| p.0 == name).map(|p| p.1.to_string()))
    }

    #[test]
    fn nothing_set_means_the_defaults_and_no_complaint() {
        let s = with(&[]);
        assert_eq!((s.flush_ms, s.start, s.sizes, s.complaint.as_str()), (100, StartAs::Idle, Sizes::DEFAULT, ""));
    }

    #[test]
    fn what_is_set_is_taken() {
        let s = with(&[("GPUTAP_FLUSH_MS", "1"), ("GPUTAP_BACKING", "memfd"), ("GPUTAP_START", "blackbox")]);
        assert_eq!((s.flush_ms, s.start), (1, StartAs::BlackBox));
        assert_eq!(s.backing, BackingChoice::Only(Backing::Memfd));
    }

    #[test]
    fn nonsense_is_named_and_costs_nothing_else() {
        let s = with(&[("GPUTAP_FLUSH_MS", "soon"), ("GPUTAP_START", "now"), ("GPUTAP_LANE_MB", "4")]);
        assert_eq!((s.flush_ms, s.start, s.sizes.lane_words), (100, StartAs::Idle, 4 << 17));
        assert!(s.complaint.contains("GPUTAP_FLUSH_MS=soon") && s.complaint.contains("GPUTAP_START=now"));
    }
}
