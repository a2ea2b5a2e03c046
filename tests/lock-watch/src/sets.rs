//! Few addresses, kept without a lock and without memory of the heap: who watches locks must take none.

use std::sync::atomic::{AtomicUsize, Ordering};

const ROOM: usize = 256;

/// Grows only. What finds no room is as if it had been there: reported no more.
pub struct AddressSet([AtomicUsize; ROOM]);

impl AddressSet {
    pub const fn new() -> Self {
        Self([const { AtomicUsize::new(0) }; ROOM])
    }

    /// True for the one call that put it there.
    pub fn insert(&self, address: usize) -> bool {
        for slot in &self.0 {
            // SYNC: pairs with the same exchange and the load in `contains`; of two threads that insert one lock each
            // into two sets and then look into the other's, one must see both, so all are sequentially consistent.
            match slot.compare_exchange(0, address, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return true,
                Err(there) if there == address => return false,
                Err(_) => {}
            }
        }
        false
    }

    pub fn contains(&self, address: usize) -> bool {
        // SYNC: pairs with the exchange in `insert`.
        self.0
            .iter()
            .map(|slot| slot.load(Ordering::SeqCst))
            .take_while(|&there| there != 0)
            .any(|there| there == address)
    }
}

/// The locks that one thread holds, at most so many.
#[derive(Clone, Copy)]
pub struct Held([usize; 16]);

impl Held {
    pub const NONE: Self = Self([0; 16]);

    pub fn with(mut self, lock: usize) -> Self {
        if let Some(free) = self.0.iter_mut().find(|held| **held == 0) {
            *free = lock;
        }
        self
    }

    pub fn without(mut self, lock: usize) -> Self {
        if let Some(held) = self.0.iter_mut().rfind(|held| **held == lock) {
            *held = 0;
        }
        self
    }

    pub fn locks(self) -> impl Iterator<Item = usize> {
        self.0.into_iter().filter(|&lock| lock != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_new_once() {
        let set = AddressSet::new();
        assert!(!set.contains(8));
        assert!(set.insert(8) && set.insert(16) && !set.insert(8));
        assert!(set.contains(8) && set.contains(16) && !set.contains(24));
    }

    #[test]
    fn a_lock_held_twice_is_given_back_twice() {
        let held = Held::NONE.with(8).with(16).with(8).without(8);
        assert_eq!(held.locks().collect::<Vec<_>>(), [8, 16]);
        assert_eq!(held.without(8).without(8).locks().collect::<Vec<_>>(), [16]);
    }
}
