//! Telling a watcher in the process when a callback of the client runs, on which thread and under which locks, and when a
//! thread waits for the worker. A watcher that does not want to know the latter exports only the first two functions.

use std::sync::OnceLock;

use crate::driver;

/// Locks that a callback may run under.
pub const DRIVER: u32 = 1;
pub const BUFFERS: u32 = 2;

struct Watcher {
    enter: extern "C" fn(),
    leave: extern "C" fn(),
    held: Option<extern "C" fn(u32)>,
    wait: Option<extern "C" fn()>,
}

static WATCHER: OnceLock<Option<Watcher>> = OnceLock::new();

/// Looks for a watcher, once. Not for callbacks: looking a symbol up takes the loader's lock.
pub fn look() {
    WATCHER.get_or_init(|| {
        // SAFETY: under these names a watcher exports functions of these types, and only a watcher has the names.
        unsafe {
            Some(Watcher {
                enter: function(c"callback_watch_enter")?,
                leave: function(c"callback_watch_leave")?,
                held: function(c"callback_watch_held"),
                wait: function(c"callback_watch_wait"),
            })
        }
    });
}

/// # Safety
/// `F` is the type of the function that goes by this name, if there is one.
unsafe fn function<F: Copy>(name: &std::ffi::CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut libc::c_void>()) };
    // SAFETY: a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: a function pointer has a pointer's size (asserted above), and by contract this type.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut libc::c_void, F>(&symbol) })
}

fn watcher() -> Option<&'static Watcher> {
    WATCHER.get().and_then(Option::as_ref)
}

/// Runs a callback of the client, under these locks of ours and perhaps the driver's.
pub fn during<R>(locks: u32, callback: impl FnOnce() -> R) -> R {
    let Some(watcher) = watcher() else { return callback() };
    if let Some(held) = watcher.held {
        held(locks | if driver::holds_the_lock() { DRIVER } else { 0 });
    }
    (watcher.enter)();
    let result = callback();
    (watcher.leave)();
    result
}

/// The calling thread is about to wait for the worker.
pub fn before_a_wait() {
    if let Some(wait) = watcher().and_then(|watcher| watcher.wait) {
        wait();
    }
}
