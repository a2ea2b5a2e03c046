//! The device that is made up, read once from the environment.

use std::ffi::c_int;
use std::sync::OnceLock;

/// How many devices there are (`FAKE_CUDA_DEVICES`, 1 to 8, default 1).
pub fn devices() -> u32 {
    static DEVICES: OnceLock<u32> = OnceLock::new();
    *DEVICES.get_or_init(|| number("FAKE_CUDA_DEVICES").unwrap_or(1).clamp(1, 8))
}

/// What `cuDriverGetVersion` says (`FAKE_CUDA_DRIVER_VERSION`, default 13000).
pub fn driver_version() -> c_int {
    static VERSION: OnceLock<c_int> = OnceLock::new();
    *VERSION.get_or_init(|| number("FAKE_CUDA_DRIVER_VERSION").unwrap_or(13_000))
}

fn number<N: std::str::FromStr>(variable: &str) -> Option<N> {
    std::env::var(variable).ok()?.parse().ok()
}
