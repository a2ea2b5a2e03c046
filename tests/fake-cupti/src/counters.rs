//! What the library really did, for tests and for a job that wants to know whether it was tapped at all.

use std::sync::atomic::{AtomicU64, Ordering};

/// One count.
pub struct Counter(AtomicU64);

impl Counter {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    pub fn add(&self, n: u64) {
        // SYNC: pairs with the Acquire load in `get`: who sees the count sees what was done before it.
        self.0.fetch_add(n, Ordering::Release);
    }

    pub fn get(&self) -> u64 {
        // SYNC: pairs with the Release in `add`.
        self.0.load(Ordering::Acquire)
    }
}

/// Buffers taken from the client.
pub static BUFFERS_REQUESTED: Counter = Counter::new();
/// Buffers given back to the client.
pub static BUFFERS_COMPLETED: Counter = Counter::new();
/// Records laid down in buffers.
pub static RECORDS_WRITTEN: Counter = Counter::new();
/// Records given to the client, zero times and all.
pub static RECORDS_DELIVERED: Counter = Counter::new();
/// Records given to the client unfinished, by a forced flush.
pub static RECORDS_UNFINISHED: Counter = Counter::new();
/// Records that found no room or were dropped by script.
pub static RECORDS_DROPPED: Counter = Counter::new();
/// Buffers and records that `cuptiFinalize` forgot.
pub static BUFFERS_FORGOTTEN: Counter = Counter::new();
pub static RECORDS_FORGOTTEN: Counter = Counter::new();
/// Callbacks that reached a subscriber, module loads among them.
pub static CALLBACKS: Counter = Counter::new();
pub static MODULE_CALLBACKS: Counter = Counter::new();
/// Calls.
pub static FLUSHES: Counter = Counter::new();
pub static FORCED_FLUSHES: Counter = Counter::new();
pub static CRCS: Counter = Counter::new();
/// Buffers and records that a script has CUPTI keep for ever.
pub static BUFFERS_KEPT: Counter = Counter::new();
pub static RECORDS_KEPT: Counter = Counter::new();
/// Threads besides the worker that complete buffers.
pub static COMPLETERS: Counter = Counter::new();

/// All counts in one C structure; new ones are appended.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub buffers_requested: u64,
    pub buffers_completed: u64,
    pub records_written: u64,
    pub records_delivered: u64,
    pub records_unfinished: u64,
    pub records_dropped: u64,
    pub buffers_forgotten: u64,
    pub records_forgotten: u64,
    pub callbacks: u64,
    pub module_callbacks: u64,
    pub flushes: u64,
    pub forced_flushes: u64,
    pub crcs: u64,
    pub buffers_kept: u64,
    pub records_kept: u64,
    pub completers: u64,
}

/// The exported name of the function that fills [`Counters`].
pub const COUNTERS_SYMBOL: &[u8] = b"fake_cupti_counters\0";

/// # Safety
/// `counters` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_cupti_counters(counters: *mut Counters) {
    let now = Counters {
        buffers_requested: BUFFERS_REQUESTED.get(),
        buffers_completed: BUFFERS_COMPLETED.get(),
        records_written: RECORDS_WRITTEN.get(),
        records_delivered: RECORDS_DELIVERED.get(),
        records_unfinished: RECORDS_UNFINISHED.get(),
        records_dropped: RECORDS_DROPPED.get(),
        buffers_forgotten: BUFFERS_FORGOTTEN.get(),
        records_forgotten: RECORDS_FORGOTTEN.get(),
        callbacks: CALLBACKS.get(),
        module_callbacks: MODULE_CALLBACKS.get(),
        flushes: FLUSHES.get(),
        forced_flushes: FORCED_FLUSHES.get(),
        crcs: CRCS.get(),
        buffers_kept: BUFFERS_KEPT.get(),
        records_kept: RECORDS_KEPT.get(),
        completers: COMPLETERS.get(),
    };
    // SAFETY: by contract.
    unsafe { counters.write(now) };
}
