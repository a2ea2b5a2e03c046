//! Telling a watcher in the process when a callback of the client runs, and on which thread.

use std::sync::OnceLock;

struct Watcher {
    enter: extern "C" fn(),
    leave: extern "C" fn(),
}

static WATCHER: OnceLock<Option<Watcher>> = OnceLock::new();

/// Looks for a watcher, once. Not for callbacks: looking a symbol up takes the loader's lock.
pub fn look() {
    WATCHER.get_or_init(|| {
        Some(Watcher { enter: function(c"callback_watch_enter")?, leave: function(c"callback_watch_leave")? })
    });
}

fn function(name: &std::ffi::CStr) -> Option<extern "C" fn()> {
    // SAFETY: a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: under these names a watcher exports functions of this type, and only a watcher has the names.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(symbol) })
}

/// Runs a callback of the client.
pub fn during<R>(callback: impl FnOnce() -> R) -> R {
    let watcher = WATCHER.get().and_then(Option::as_ref);
    watcher.inspect(|watcher| (watcher.enter)());
    let result = callback();
    watcher.inspect(|watcher| (watcher.leave)());
    result
}
