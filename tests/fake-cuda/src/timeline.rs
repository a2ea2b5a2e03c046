//! Simulated GPU time: CLOCK_REALTIME nanoseconds, durations, and waiting for a moment.

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Device time now.
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64)
}

/// From a launch to its start on an idle stream.
pub const SUBMIT_NS: u64 = 2_000;

/// How far a stream may be behind before a launch waits.
pub fn queue_limit_ns() -> u64 {
    static LIMIT: OnceLock<u64> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let ms = std::env::var("FAKE_CUDA_QUEUE_MS").ok().and_then(|v| v.parse().ok()).unwrap_or(20);
        u64::saturating_mul(ms, 1_000_000)
    })
}

/// PCIe at 25 GB/s, device memory at 1.5 TB/s, and a fixed part.
pub fn copy_ns(bytes: u64, on_device: bool) -> u64 {
    1_500 + if on_device { bytes / 750 } else { bytes / 25 }
}

/// A kernel's duration varies by some 3 %, the same way in every run.
pub fn jittered_ns(duration_ns: u64, launch: u64) -> u64 {
    let noise = (launch.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as i64 - 32;
    duration_ns.saturating_add_signed(duration_ns as i64 / 1024 * noise)
}

/// Returns once device time has reached `moment_ns`.
pub fn wait_until(moment_ns: u64) {
    static WAITING: (Mutex<()>, Condvar) = (Mutex::new(()), Condvar::new());
    loop {
        let left = moment_ns.saturating_sub(now_ns());
        match left {
            0 => return,
            1..20_000 => std::thread::yield_now(),
            _ => {
                let held = WAITING.0.lock().unwrap_or_else(PoisonError::into_inner);
                drop(WAITING.1.wait_timeout(held, Duration::from_nanos(left)));
            }
        }
    }
}
