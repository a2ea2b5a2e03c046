//! The fake driver in this process, found by its SONAME, and the way into it.

use std::sync::OnceLock;

use crate::hook_abi::{Door, HOOK_ABI, Hooks, REGISTER_SYMBOL, RegisterHooks};
use crate::{callbacks, events};

static HOOKS: Hooks = Hooks {
    abi: HOOK_ABI,
    resource: callbacks::on_resource,
    work: events::on_work,
    host: events::on_host,
    synchronized: callbacks::on_synchronized,
    api_wanted: events::api_wanted,
    api: events::on_api,
};

/// The door to the driver, registering our hooks at the first success; None while no fake driver is loaded.
pub fn door() -> Option<&'static Door> {
    static DOOR: OnceLock<Door> = OnceLock::new();
    if let Some(door) = DOOR.get() {
        return Some(door);
    }
    let register = find_register()?;
    let mut door = std::mem::MaybeUninit::<Door>::uninit();
    // SAFETY: `HOOKS` is a static, so it lives and stays unchanged for ever; `door` may be written.
    if unsafe { register(&raw const HOOKS, door.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the registration succeeded, so it filled the door.
    Some(DOOR.get_or_init(|| unsafe { door.assume_init() }))
}

/// Takes the driver lock and gives it back: what the worker has to do before it may process anything.
pub fn pass_the_lock() {
    if let Some(door) = door() {
        (door.lock)();
        // SAFETY: this thread took the lock in the line above.
        unsafe { (door.unlock)() };
    }
}

/// Whether the calling thread holds the driver lock.
pub fn holds_the_lock() -> bool {
    door().is_some_and(|door| (door.holds_lock)())
}

fn find_register() -> Option<RegisterHooks> {
    // SAFETY: a NUL-terminated name; RTLD_NOLOAD runs no code, it only looks.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    // SAFETY: an open library, whose handle is kept for ever, and a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(library, REGISTER_SYMBOL.as_ptr().cast()) };
    // SAFETY: under this name a fake driver exports exactly this function, and only a fake driver has the name.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute::<*mut libc::c_void, RegisterHooks>(symbol) })
}
