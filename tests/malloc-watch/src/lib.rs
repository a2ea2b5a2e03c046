//! Preloaded into a process (`LD_PRELOAD`), counts the allocator calls that are made while a callback of a CUPTI client
//! runs on the calling thread.
//!
//! The fake CUPTI says when a callback begins and ends. The allocator is the C library's, as before.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

static CALLS: AtomicU64 = AtomicU64::new(0);
static CALLBACKS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Callbacks that run on this thread. This library is loaded with the process, so its thread-locals are made with
    /// the thread; and this one has no destructor.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_enter() {
    CALLBACKS.fetch_add(1, Ordering::Relaxed);
    DEPTH.set(DEPTH.get() + 1);
}

#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_leave() {
    DEPTH.set(DEPTH.get() - 1);
}

/// Whether a callback runs on the calling thread; a signal handler may ask.
#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_inside() -> bool {
    DEPTH.get() > 0
}

/// Calls of the allocator inside callbacks.
#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// Callbacks that were watched.
#[unsafe(no_mangle)]
pub extern "C" fn callback_watch_callbacks() -> u64 {
    CALLBACKS.load(Ordering::Relaxed)
}

fn note() {
    if DEPTH.get() > 0 {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
}

/// glibc's own names of its allocator.
mod real {
    use super::c_void;
    unsafe extern "C" {
        pub fn __libc_malloc(size: usize) -> *mut c_void;
        pub fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
        pub fn __libc_realloc(at: *mut c_void, size: usize) -> *mut c_void;
        pub fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
        pub fn __libc_free(at: *mut c_void);
    }
}

/// # Safety
/// As malloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    note();
    // SAFETY: the caller's promise.
    unsafe { real::__libc_malloc(size) }
}

/// # Safety
/// As calloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    note();
    // SAFETY: the caller's promise.
    unsafe { real::__libc_calloc(count, size) }
}

/// # Safety
/// As realloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(at: *mut c_void, size: usize) -> *mut c_void {
    note();
    // SAFETY: the caller's promise.
    unsafe { real::__libc_realloc(at, size) }
}

/// # Safety
/// As aligned_alloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    note();
    // SAFETY: the caller's promise.
    unsafe { real::__libc_memalign(align, size) }
}

/// # Safety
/// As posix_memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    note();
    // SAFETY: the caller's promise.
    let at = unsafe { real::__libc_memalign(align, size) };
    if at.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's promise: the place may be written.
    unsafe { place.write(at) };
    0
}

/// # Safety
/// As free(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(at: *mut c_void) {
    note();
    // SAFETY: the caller's promise.
    unsafe { real::__libc_free(at) }
}
