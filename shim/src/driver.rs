//! What the CUDA driver says of itself.

use std::ffi::{CStr, c_int, c_void};

const DRIVER: &CStr = c"libcuda.so.1";

/// The newest CUDA that the driver knows, 12040 for 12.4; `None` where it cannot be asked. For the timer thread: inside
/// the application's cuInit nothing of the driver is called.
pub fn version() -> Option<u32> {
    // SAFETY: the name is NUL-terminated; with NOLOAD nothing is loaded or run, what is there is found.
    let driver = unsafe { libc::dlopen(DRIVER.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if driver.is_null() {
        return None;
    }
    // SAFETY: an open library, never closed, and a NUL-terminated name.
    let found = unsafe { libc::dlsym(driver, c"cuDriverGetVersion".as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: the function of this name has had this type since CUDA 2.2.
    let get_version = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_int) -> c_int>(found) };
    let mut version = 0;
    // SAFETY: `version` may be written; the function needs no context and no cuInit.
    let result = unsafe { get_version(&mut version) };
    u32::try_from(version).ok().filter(|version| result == 0 && *version > 0)
}
