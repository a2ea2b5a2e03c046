//! Words at one store of which a thread really ends: no destructor runs, nothing is unwound.

use gputap_ringbuf::{
    sync::Ordering,
    words::{MappedWords, ReadWords, Words},
};
use std::cell::Cell;

thread_local! {
    static STORES_LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// After so many more stores, exchanges and additions, the next one ends the calling thread before it is made.
pub fn end_thread_before_store(stores: u64) {
    STORES_LEFT.set(stores);
}

fn before_store() {
    match STORES_LEFT.get() {
        u64::MAX => {}
        // SAFETY: no memory is passed; it ends this thread alone, as a signal handler of the application may.
        0 => _ = unsafe { libc::syscall(libc::SYS_exit, 0) },
        left => STORES_LEFT.set(left - 1),
    }
}

#[derive(Clone)]
pub struct Ending(pub MappedWords);

impl ReadWords for Ending {
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.0.load(index, order)
    }
}

impl Words for Ending {
    fn store(&self, index: usize, value: u64, order: Ordering) {
        before_store();
        self.0.store(index, value, order);
    }

    fn fetch_add(&self, index: usize, value: u64, order: Ordering) -> u64 {
        before_store();
        self.0.fetch_add(index, value, order)
    }

    fn compare_exchange(&self, index: usize, expected: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        before_store();
        self.0.compare_exchange(index, expected, new, order)
    }
}
