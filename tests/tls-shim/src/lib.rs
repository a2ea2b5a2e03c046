//! The negative control of the loader-lock scenario: an injection library that is wrong on purpose, and hangs.
//!
//! Its `MODULE_LOADED` callback takes no lock and makes no call; it keeps a count in a `thread_local!` that has a
//! destructor. The first touch on a thread registers the destructor, and for that the C library takes the loader's lock
//! (`__cxa_thread_atexit_impl`, glibc). The callback runs under the driver's lock; a thread inside `dlopen` holds the
//! loader's, and if the constructor that it runs wants the driver's, neither goes on.

use std::cell::RefCell;
use std::ffi::c_void;

use libloading::Library;

const DOMAIN_RESOURCE: u32 = 3;
const MODULE_LOADED: u32 = 6;

thread_local! {
    /// Sizes of the modules that this thread loaded. A `Vec` has a destructor.
    static SEEN: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// Called by the driver at `cuInit`. 1 on success, as NVIDIA's injection libraries return.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> i32 {
    match subscribe() {
        Ok(()) => 1,
        Err(reason) => {
            eprintln!("control shim: not tapping: {reason}");
            0
        }
    }
}

fn subscribe() -> Result<(), String> {
    type Subscribe = unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> u32;
    type EnableCallback = unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> u32;
    let path = std::env::var_os("GPUTAP_CUPTI").ok_or("GPUTAP_CUPTI is not set")?;
    // SAFETY: whoever set the variable vouches for the library's constructors.
    let library = unsafe { Library::new(&path) }.map_err(|e| e.to_string())?;
    // Never unloaded: it calls us for ever.
    let library: &'static Library = Box::leak(Box::new(library));
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: the types are those of NVIDIA's headers, the subscriber's place may be written, and the callback may be
    // called from any thread for ever.
    let codes = unsafe {
        let subscribe = library.get::<Subscribe>(b"cuptiSubscribe\0").map_err(|e| e.to_string())?;
        let enable = library.get::<EnableCallback>(b"cuptiEnableCallback\0").map_err(|e| e.to_string())?;
        let subscribed = subscribe(&raw mut subscriber, on_callback, std::ptr::null_mut());
        (subscribed, enable(1, subscriber, DOMAIN_RESOURCE, MODULE_LOADED))
    };
    if codes == (0, 0) { Ok(()) } else { Err(format!("CUPTI errors {codes:?}")) }
}

/// # Safety
/// Called by CUPTI.
unsafe extern "C" fn on_callback(_user: *mut c_void, _domain: u32, _cbid: u32, data: *const c_void) {
    SEEN.with_borrow_mut(|seen| seen.push(data.addr()));
}
