//! The library's settings, read once from the environment at the first use.

use std::sync::OnceLock;

use crate::layout::Sizes;

pub struct Settings {
    pub version: u32,
    pub sizes: Sizes,
    /// 0 for never.
    pub drop_every: u64,
    /// 0 for never.
    pub zero_times_every: u64,
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
        let text = std::env::var("FAKE_CUPTI_VERSION").unwrap_or_default();
        let (version, sizes) = match text.as_str() {
            "11.8" => (18, Sizes::CUDA_11_8),
            other => {
                let version = other.parse().unwrap_or(130_001);
                (version, Sizes::of(version))
            }
        };
        Settings {
            version,
            sizes,
            drop_every: number("FAKE_CUPTI_DROP_EVERY"),
            zero_times_every: number("FAKE_CUPTI_ZERO_TIMES_EVERY"),
        }
    })
}

fn number(variable: &str) -> u64 {
    std::env::var(variable).ok().and_then(|v| v.parse().ok()).unwrap_or(0)
}
