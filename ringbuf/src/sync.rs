//! Every atomic of this crate comes from here, so that the same protocol code runs on memory and under loom.

#[cfg(loom)]
pub use self::weakened::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Loom's atomics, and a way to take away one named order: the check has to fail without it.
#[cfg(loom)]
pub mod weakened {
    pub use loom::sync::atomic::Ordering;
    use std::{cell::Cell, panic::Location};

    thread_local! {
        // Loom runs all threads of a model on the thread that checks it.
        static WEAKENED: Cell<Option<(&'static str, u32)>> = const { Cell::new(None) };
        static HITS: Cell<u64> = const { Cell::new(0) };
    }

    /// From now on, on this thread, the atomic operation at this line of a source file (by the end of its path) is
    /// relaxed, and a fence there is none.
    pub fn weaken(file: &'static str, line: u32) {
        WEAKENED.set(Some((file, line)));
    }

    /// How often the weakened line has run.
    pub fn hits() -> u64 {
        HITS.get()
    }

    #[track_caller]
    fn is_weakened() -> bool {
        let here = Location::caller();
        let weakened = WEAKENED.get().is_some_and(|(file, line)| here.line() == line && here.file().ends_with(file));
        HITS.set(HITS.get() + u64::from(weakened));
        weakened
    }

    #[track_caller]
    fn here(order: Ordering) -> Ordering {
        if is_weakened() { Ordering::Relaxed } else { order }
    }

    #[track_caller]
    pub fn fence(order: Ordering) {
        if !is_weakened() {
            loom::sync::atomic::fence(order);
        }
    }

    #[derive(Debug)]
    pub struct AtomicU64(loom::sync::atomic::AtomicU64);

    impl AtomicU64 {
        #[track_caller]
        pub fn new(value: u64) -> Self {
            AtomicU64(loom::sync::atomic::AtomicU64::new(value))
        }

        #[track_caller]
        pub fn load(&self, order: Ordering) -> u64 {
            self.0.load(here(order))
        }

        #[track_caller]
        pub fn store(&self, value: u64, order: Ordering) {
            self.0.store(value, here(order));
        }

        #[track_caller]
        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            self.0.fetch_add(value, here(order))
        }

        #[track_caller]
        pub fn compare_exchange(&self, expected: u64, new: u64, ok: Ordering, err: Ordering) -> Result<u64, u64> {
            self.0.compare_exchange(expected, new, here(ok), err)
        }
    }
}
