//! The driver lock and the state that it guards.
//!
//! Guarantees: not recursive (a thread that holds it and asks again waits for itself for ever, as in the driver), and
//! usable across the library's border: CUPTI's worker takes the same lock through [`raw_lock`] and [`raw_unlock`].
//! A stack dump shows the waiters in `pthread_mutex_lock`, and the mutex names its owner's thread id.

use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::state::State;

static DRIVER: Driver =
    Driver { mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), state: UnsafeCell::new(None) };

struct Driver {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    state: UnsafeCell<Option<State>>,
}

// SAFETY: `mutex` is only handed to the pthread functions, which are made for sharing, and `state` is only reached
// through a `Guard`, of which there is one at a time because it exists only while the mutex is held.
unsafe impl Sync for Driver {}

/// The driver's state, held under the driver lock. Not Send: a pthread mutex is unlocked by the thread that locked it.
pub struct Guard {
    state: NonNull<State>,
}

thread_local! {
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Takes the driver lock.
pub fn lock() -> Guard {
    raw_lock();
    // SAFETY: the mutex is held, so nothing else refers to the state now, and the borrow ends in this statement.
    let state = unsafe { &mut *DRIVER.state.get() }.get_or_insert_default();
    Guard { state: NonNull::from(state) }
}

/// Takes the driver lock without looking at the state.
pub extern "C" fn raw_lock() {
    // SAFETY: the mutex is statically initialised, never moved and never destroyed.
    unsafe { libc::pthread_mutex_lock(DRIVER.mutex.get()) };
    HOLDS.set(true);
}

/// Gives the driver lock back.
///
/// # Safety
/// The calling thread holds it through [`raw_lock`].
pub unsafe extern "C" fn raw_unlock() {
    HOLDS.set(false);
    // SAFETY: the mutex is statically initialised and, by this function's contract, held by this thread.
    unsafe { libc::pthread_mutex_unlock(DRIVER.mutex.get()) };
}

/// Whether the calling thread holds the driver lock.
#[unsafe(export_name = "fake_cuda_holds_driver_lock")]
pub extern "C" fn holds_lock() -> bool {
    HOLDS.get()
}

impl Guard {
    /// Runs `wait` without the lock. What the state was before may have changed.
    pub fn unlocked(&mut self, wait: impl FnOnce()) {
        // SAFETY: this guard's thread holds the mutex, and the exclusive borrow means that nothing borrows the state.
        unsafe { raw_unlock() };
        wait();
        raw_lock();
    }
}

impl Deref for Guard {
    type Target = State;
    fn deref(&self) -> &State {
        // SAFETY: the pointer was made from the static's initialised state, which never moves, and a guard exists
        // only while its thread holds the mutex, so nobody writes while this borrow of the guard lives.
        unsafe { self.state.as_ref() }
    }
}

impl DerefMut for Guard {
    fn deref_mut(&mut self) -> &mut State {
        // SAFETY: as in `deref`; `&mut self` makes this the only borrow through the only guard.
        unsafe { self.state.as_mut() }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // SAFETY: the guard was made by `lock` on this thread (it is not Send), which still holds the mutex.
        unsafe { raw_unlock() };
    }
}
