//! How far each thread of a job is, for whoever watches whether it still moves.

use std::sync::atomic::{AtomicU64, Ordering};

/// A count a thread that grows with every driver call; [`Progress::DONE`] once the thread has ended.
#[derive(Debug)]
pub struct Progress {
    threads: Vec<AtomicU64>,
}

impl Progress {
    /// The count of a thread that has nothing more to do. 0 is that of one that has not begun.
    pub const DONE: u64 = u64::MAX;

    pub fn new(threads: usize) -> Self {
        Self { threads: (0..threads).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Every thread's count.
    pub fn counts(&self) -> Vec<u64> {
        self.threads.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    pub(crate) fn moved(&self, thread: usize) {
        if let Some(count) = self.threads.get(thread) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn ended(&self, thread: usize) {
        if let Some(count) = self.threads.get(thread) {
            count.store(Self::DONE, Ordering::Relaxed);
        }
    }
}
