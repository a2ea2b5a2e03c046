//! A library whose constructor needs the driver, as that of a library of GPU code may: while `dlopen` loads it, the
//! loading thread holds the loader's lock and waits for the driver's.
//!
//! Does nothing unless `LOADER_LOCK_PIPES` names two descriptors, `IN,UNTIL`: the constructor writes a byte to IN, then
//! calls the driver again and again until there is something to read at UNTIL (or its writer is gone). So the loader's
//! lock is held for as long as whoever loads the library wants.

use std::ffi::{c_int, c_void};

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

type Retain = unsafe extern "C" fn(*mut *mut c_void, c_int) -> u32;

extern "C" fn at_load() {
    let Some((inside, until)) = pipes() else { return };
    let Some(retain) = retain_context() else { return };
    // SAFETY: one byte is readable.
    unsafe { libc::write(inside, c"i".as_ptr().cast(), 1) };
    while !readable(until) {
        let mut context = std::ptr::null_mut();
        // SAFETY: NVIDIA's type of the function; the place may be written. Takes the driver lock for a moment.
        unsafe { retain(&raw mut context, 0) };
        std::thread::yield_now();
    }
}

fn pipes() -> Option<(c_int, c_int)> {
    let text = std::env::var("LOADER_LOCK_PIPES").ok()?;
    let (inside, until) = text.split_once(',')?;
    Some((inside.parse().ok()?, until.parse().ok()?))
}

fn readable(descriptor: c_int) -> bool {
    let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure that may be written.
    unsafe { libc::poll(&raw mut poll, 1, 0) != 0 }
}

/// `cuDevicePrimaryCtxRetain` of the driver that the process has loaded already.
fn retain_context() -> Option<Retain> {
    // SAFETY: a NUL-terminated name; RTLD_NOLOAD runs no code, it only looks.
    let driver = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if driver.is_null() {
        return None;
    }
    // SAFETY: an open library, whose handle is kept for ever, and a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(driver, c"cuDevicePrimaryCtxRetain".as_ptr()) };
    // SAFETY: the type is that of NVIDIA's documentation.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Retain>(symbol) })
}
