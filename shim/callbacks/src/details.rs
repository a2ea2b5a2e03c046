//! What CUPTI hands over with some overhead records, from 12.4 on, and the client is to free. A callback does not free:
//! that takes malloc's lock. The timer thread does.

use std::{
    ffi::c_void,
    ptr::null_mut,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
};

/// Such records are rare: one each time that a command buffer was full.
const PLACES: usize = 1024;

/// Pointers on their way to the thread that frees them. What finds no place is leaked: a few bytes.
pub struct Details {
    places: Box<[AtomicPtr<c_void>]>,
    next: AtomicUsize,
}

impl Default for Details {
    fn default() -> Self {
        Details { places: (0..PLACES).map(|_| AtomicPtr::new(null_mut())).collect(), next: AtomicUsize::new(0) }
    }
}

impl Details {
    /// Callback: puts one aside.
    pub fn put(&self, details: *mut c_void) {
        if !details.is_null() {
            let place = self.next.fetch_add(1, Ordering::Relaxed) % PLACES;
            // SYNC: the Release half pairs with the Acquire swap in `take`: what CUPTI wrote comes along.
            let _ = self.places[place].compare_exchange(null_mut(), details, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Timer thread: gives all that were put aside to `free`.
    pub fn take(&self, mut free: impl FnMut(*mut c_void)) {
        for place in &self.places {
            if !place.load(Ordering::Relaxed).is_null() {
                // SYNC: pairs with the Release exchange in `put`.
                free(place.swap(null_mut(), Ordering::Acquire));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_freed_once_and_none_is_waited_for() {
        let details = Details::default();
        details.put(null_mut());
        for n in 1..=PLACES + 10 {
            details.put(std::ptr::without_provenance_mut(n));
        }
        let mut freed = Vec::new();
        details.take(|pointer| freed.push(pointer.addr()));
        freed.sort_unstable();
        assert_eq!(freed, (1..=PLACES).collect::<Vec<_>>());
        details.take(|pointer| panic!("{pointer:?} again"));
    }
}
