//! The library's settings, read once from the environment at the first use.

use std::sync::OnceLock;
use std::time::Duration;

use crate::sizes::Sizes;

pub struct Settings {
    pub version: u32,
    pub sizes: Sizes,
    pub damage: Damage,
    pub drop: Every,
    pub duplicate: Every,
    pub swap: Every,
    pub keep_buffer: Every,
    /// From which record on the clock is another one, and by how much.
    pub clock_step: Option<(u64, i64)>,
    pub flush: Duration,
    /// Threads that complete buffers; 0 for the worker alone.
    pub completers: usize,
    /// No record is ever written.
    pub silent: bool,
}

/// What is done to the bytes of records.
pub struct Damage {
    pub zero_times: Every,
    pub reverse_times: Every,
    pub null_name: Every,
    pub long_name: Every,
    pub alien_kind: Every,
}

/// Every Nth thing; 0 for none.
#[derive(Clone, Copy)]
pub struct Every(u64);

impl Every {
    /// Whether the thing of this number, from 1, is one of them.
    pub fn hits(self, number: u64) -> bool {
        self.0 != 0 && number.is_multiple_of(self.0)
    }

    fn read(variable: &str) -> Self {
        Self(number(variable))
    }
}

impl Settings {
    /// CUPTI before 12.9 crashes on a null buffer.
    pub fn null_buffer_crashes(&self) -> bool {
        self.version < 28
    }
}

pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let (version, sizes) = version("FAKE_CUPTI_VERSION").unwrap_or((130_001, Sizes::of(130_001)));
        Settings {
            version,
            sizes: self::version("FAKE_CUPTI_LAYOUTS").map_or(sizes, |(_, sizes)| sizes),
            damage: Damage {
                zero_times: Every::read("FAKE_CUPTI_ZERO_TIMES_EVERY"),
                reverse_times: Every::read("FAKE_CUPTI_REVERSE_TIMES_EVERY"),
                null_name: Every::read("FAKE_CUPTI_NULL_NAME_EVERY"),
                long_name: Every::read("FAKE_CUPTI_LONG_NAME_EVERY"),
                alien_kind: Every::read("FAKE_CUPTI_ALIEN_KIND_EVERY"),
            },
            drop: Every::read("FAKE_CUPTI_DROP_EVERY"),
            duplicate: Every::read("FAKE_CUPTI_DUPLICATE_EVERY"),
            swap: Every::read("FAKE_CUPTI_SWAP_EVERY"),
            keep_buffer: Every::read("FAKE_CUPTI_KEEP_BUFFER_EVERY"),
            clock_step: text("FAKE_CUPTI_CLOCK_STEP_MS").and_then(|step| clock_step(&step)),
            flush: Duration::from_millis(number("FAKE_CUPTI_FLUSH_MS")),
            completers: number("FAKE_CUPTI_COMPLETERS").min(64) as usize,
            silent: number("FAKE_CUPTI_SILENT") != 0,
        }
    })
}

/// A version's number and layouts, from what a variable says; 11.8 has a number that says 12.1.
fn version(variable: &str) -> Option<(u32, Sizes)> {
    match text(variable)?.as_str() {
        "11.8" => Some((18, Sizes::CUDA_11_8)),
        other => other.parse().ok().map(|version| (version, Sizes::of(version))),
    }
}

/// `MS@N`: the Nth record and nanoseconds.
fn clock_step(step: &str) -> Option<(u64, i64)> {
    let (ms, record) = step.split_once('@')?;
    Some((record.parse().ok()?, ms.parse::<i64>().ok()?.saturating_mul(1_000_000)))
}

fn number(variable: &str) -> u64 {
    text(variable).and_then(|v| v.parse().ok()).unwrap_or(0)
}

fn text(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_step_has_a_size_and_a_record() {
        assert_eq!(clock_step("-1500@20"), Some((20, -1_500_000_000)));
        assert_eq!(clock_step("1500"), None);
    }
}
