//! The lock watcher sees every sort of waiting in a callback, and none outside.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use gputap_tests::{artifact, isolated};

use crate::cuda::Cuda;
use crate::cupti::{Cupti, during_callbacks};

/// Statically initialised, and only handed to the C library.
struct C<T>(UnsafeCell<T>);

// SAFETY: the C library's locks are made for sharing.
unsafe impl<T> Sync for C<T> {}

static MUTEX: C<libc::pthread_mutex_t> = C(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
static RWLOCK: C<libc::pthread_rwlock_t> = C(UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER));
static COND: C<libc::pthread_cond_t> = C(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER));

type Act = fn();

fn mutex() {
    // SAFETY: statically initialised, never moved; unlocked by the thread that locked it.
    unsafe {
        libc::pthread_mutex_lock(MUTEX.0.get());
        libc::pthread_mutex_unlock(MUTEX.0.get());
    }
}

fn rwlock() {
    // SAFETY: as above.
    unsafe {
        libc::pthread_rwlock_rdlock(RWLOCK.0.get());
        libc::pthread_rwlock_unlock(RWLOCK.0.get());
        libc::pthread_rwlock_wrlock(RWLOCK.0.get());
        libc::pthread_rwlock_unlock(RWLOCK.0.get());
    }
}

fn condition() {
    let long_ago = libc::timespec { tv_sec: 1, tv_nsec: 0 };
    // SAFETY: as above, and the mutex is held.
    unsafe {
        libc::pthread_mutex_lock(MUTEX.0.get());
        libc::pthread_cond_timedwait(COND.0.get(), MUTEX.0.get(), &raw const long_ago);
        libc::pthread_mutex_unlock(MUTEX.0.get());
    }
}

fn semaphore() {
    // SAFETY: all zero is a valid value of this C structure.
    let mut semaphore: libc::sem_t = unsafe { std::mem::zeroed() };
    // SAFETY: a semaphore of this thread, which may be taken once.
    unsafe {
        libc::sem_init(&raw mut semaphore, 0, 1);
        libc::sem_wait(&raw mut semaphore);
    }
}

/// What a lock that is made of atomics does where it has to wait. Comes back at once: the word has another value.
fn futex() {
    static WORD: AtomicU32 = AtomicU32::new(0);
    let (operation, expected) = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, 1);
    let no_limit = std::ptr::null::<libc::timespec>();
    // SAFETY: the word is a static, and no time limit is read.
    unsafe { libc::syscall(libc::SYS_futex, WORD.as_ptr(), operation, expected, no_limit) };
}

/// What the watcher has counted.
fn ask() -> u64 {
    // SAFETY: a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"lock_watch_taken".as_ptr()) };
    assert!(!symbol.is_null(), "not preloaded");
    // SAFETY: under this name the watcher exports a function of this type.
    unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> u64>(symbol)() }
}

fn sees(test: &str, act: Act, taken: u64) {
    static COUNTED: AtomicU64 = AtomicU64::new(u64::MAX);
    let preload = artifact("lock_watch").expect("built");
    isolated(test, &[("LD_PRELOAD", preload.to_str().expect("UTF-8"))], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        let subscriber = cupti.subscribe().unwrap();
        cuda.start();
        let before = ask();
        act();
        assert_eq!(ask(), before, "outside a callback");
        cupti.enable_callback(true, subscriber, 3, 1);
        during_callbacks(move || {
            let before = ask();
            act();
            COUNTED.store(ask() - before, Ordering::Relaxed);
        });
        cuda.create_context(0);
        assert_eq!(COUNTED.load(Ordering::Relaxed), taken);
    });
}

#[test]
fn a_mutex_in_a_callback_is_seen() {
    sees("lock_watch::a_mutex_in_a_callback_is_seen", mutex, 1);
}

#[test]
fn a_read_write_lock_in_a_callback_is_seen() {
    sees("lock_watch::a_read_write_lock_in_a_callback_is_seen", rwlock, 2);
}

#[test]
fn a_condition_variable_in_a_callback_is_seen() {
    sees("lock_watch::a_condition_variable_in_a_callback_is_seen", condition, 2);
}

#[test]
fn a_semaphore_in_a_callback_is_seen() {
    sees("lock_watch::a_semaphore_in_a_callback_is_seen", semaphore, 1);
}

#[test]
fn a_callback_that_does_nothing_takes_nothing() {
    sees("lock_watch::a_callback_that_does_nothing_takes_nothing", || (), 0);
}

#[test]
fn waiting_for_a_futex_in_a_callback_is_seen() {
    sees("lock_watch::waiting_for_a_futex_in_a_callback_is_seen", futex, 1);
}
