//! NVTX from the application's side: what NVIDIA's header does, as far as these tests need it.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::Ordering;

pub use crate::nvtx_side::initialize;
use crate::nvtx_side::{CORE, CORE2};

/// A function that was injected, by its number; where none was, nothing happens, as in the header.
macro_rules! injected {
    ($places:ident[$number:literal], fn($($type:ty),*) $(-> $result:ty)?, $nothing:expr $(, $argument:expr)*) => {{
        let function = $places[$number].load(Ordering::Relaxed);
        if function.is_null() {
            $nothing
        } else {
            // SAFETY: the number is that of a function of this type in NVIDIA's header, and strings are passed where
            // it wants strings.
            unsafe {
                type Function = unsafe extern "C" fn($($type),*) $(-> $result)?;
                std::mem::transmute::<*mut c_void, Function>(function)($($argument),*)
            }
        }
    }};
}

fn text(text: &str) -> CString {
    CString::new(text).expect("no NUL")
}

pub fn push(name: &str) {
    injected!(CORE[9], fn(*const c_char) -> c_int, 0, text(name).as_ptr());
}

pub fn pop() {
    injected!(CORE[11], fn() -> c_int, 0);
}

pub fn mark(name: &str) {
    injected!(CORE[2], fn(*const c_char), (), text(name).as_ptr());
}

pub fn start(name: &str) -> u64 {
    injected!(CORE[5], fn(*const c_char) -> u64, 0, text(name).as_ptr())
}

pub fn end(id: u64) {
    injected!(CORE[7], fn(u64), (), id);
}

/// `nvtxEventAttributes_t` with an ASCII message.
#[repr(C)]
struct Attributes {
    head: [u32; 8],
    message_type: i32,
    message: *const c_char,
}

/// A range of this name in a domain.
pub fn range_in(domain: &str, name: &str) {
    let handle = injected!(CORE2[12], fn(*const c_char) -> *mut c_void, std::ptr::null_mut(), text(domain).as_ptr());
    let name = text(name);
    let message = Attributes { head: [3 | 48 << 16, 0, 0, 0, 0, 0, 0, 0], message_type: 1, message: name.as_ptr() };
    injected!(CORE2[4], fn(*mut c_void, *const Attributes) -> c_int, 0, handle, &raw const message);
    injected!(CORE2[5], fn(*mut c_void) -> c_int, 0, handle);
}
