//! The C library's mutex, which C and C++ tools use, and which a watcher that stands in for the C library can see.

use std::cell::UnsafeCell;
use std::marker::PhantomData;

pub struct CMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the mutex is only handed to the pthread functions, which are made for sharing.
unsafe impl Sync for CMutex {}

/// Held until dropped. Not Send: a pthread mutex is unlocked by the thread that locked it.
pub struct Held(&'static CMutex, PhantomData<*mut ()>);

impl CMutex {
    pub const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    pub fn lock(&'static self) -> Held {
        // SAFETY: statically initialised, and a static is never moved or destroyed.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        Held(self, PhantomData)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: this thread locked it when it made the value.
        unsafe { libc::pthread_mutex_unlock(self.0.0.get()) };
    }
}
