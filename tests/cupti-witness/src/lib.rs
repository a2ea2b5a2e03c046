//! A libcupti in front of another one, which `CUPTI_WITNESS_OF` names and which does all the work. It keeps a copy of
//! every record that a client is shown, byte for byte, in that order: what a test compares a client's events with.
//!
//! It also has `cuptiSubscribe_v2`, if `CUPTI_WITNESS_HOLDER` names who holds the one subscription when it is taken.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

/// No record is longer.
const LONGEST_BYTES: usize = 256;
const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: u32 = 39;
const UNKNOWN: u32 = 999;

type Any = *mut c_void;

static SHOWN: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn shown() -> std::sync::MutexGuard<'static, Vec<Vec<u8>>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives `visit` every record that was shown since the last question: its start, and how many bytes were readable.
///
/// # Safety
/// `visit` may be called with those and with `user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cupti_witness_take(visit: unsafe extern "C" fn(*mut c_void, *const u8, usize), user: Any) {
    for record in std::mem::take(&mut *shown()) {
        // SAFETY: the caller's promise.
        unsafe { visit(user, record.as_ptr(), record.len()) };
    }
}

/// The function of the library behind, or null.
fn behind(name: &CStr) -> Any {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let path = CString::new(std::env::var("CUPTI_WITNESS_OF").unwrap_or_default()).unwrap_or_default();
        // SAFETY: a NUL-terminated path; the library is never closed.
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) }.expose_provenance()
    });
    // SAFETY: an open library, or null, which stands for the whole program, and a NUL-terminated name.
    unsafe { libc::dlsym(std::ptr::with_exposed_provenance_mut(*library), name.as_ptr()) }
}

/// Calls the function of this name in the library behind; looked up once.
macro_rules! call {
    ($name:literal, fn($($type:ty),*) -> $result:ty, $missing:expr, $($argument:expr),*) => {{
        static FUNCTION: OnceLock<usize> = OnceLock::new();
        let address = *FUNCTION.get_or_init(|| behind($name).expose_provenance());
        let function: Any = std::ptr::with_exposed_provenance_mut(address);
        if function.is_null() {
            $missing
        } else {
            // SAFETY: the function of this name has this type, and the arguments are what our caller promises.
            unsafe { std::mem::transmute::<Any, unsafe extern "C" fn($($type),*) -> $result>(function)($($argument),*) }
        }
    }};
}

macro_rules! hand_on {
    ($($name:ident, $text:literal, ($($argument:ident: $type:ty),*);)*) => {$(
        /// # Safety
        /// As the function behind.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
            call!($text, fn($($type),*) -> u32, UNKNOWN, $($argument),*)
        }
    )*};
}

hand_on! {
    cuptiGetVersion, c"cuptiGetVersion", (version: *mut u32);
    cuptiSubscribe, c"cuptiSubscribe", (subscriber: *mut Any, callback: Any, user: Any);
    cuptiUnsubscribe, c"cuptiUnsubscribe", (subscriber: Any);
    cuptiFinalize, c"cuptiFinalize", ();
    cuptiEnableCallback, c"cuptiEnableCallback", (enable: u32, subscriber: Any, domain: u32, callback_id: u32);
    cuptiActivityRegisterCallbacks, c"cuptiActivityRegisterCallbacks", (requested: Any, completed: Any);
    cuptiActivityEnable, c"cuptiActivityEnable", (kind: u32);
    cuptiActivityDisable, c"cuptiActivityDisable", (kind: u32);
    cuptiActivityFlushAll, c"cuptiActivityFlushAll", (flag: u32);
    cuptiActivityGetNumDroppedRecords, c"cuptiActivityGetNumDroppedRecords",
        (context: Any, stream: u32, dropped: *mut usize);
    cuptiActivityRegisterTimestampCallback, c"cuptiActivityRegisterTimestampCallback", (clock: Any);
    cuptiGetTimestamp, c"cuptiGetTimestamp", (timestamp: *mut u64);
}

/// # Safety
/// As the function behind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get_export_table: Any) -> c_int {
    call!(c"InitializeInjectionNvtx2", fn(Any) -> c_int, 0, get_export_table)
}

/// # Safety
/// As the function behind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(buffer: *mut u8, valid_bytes: usize, record: *mut *mut u8) -> u32 {
    let code = call!(
        c"cuptiActivityGetNextRecord",
        fn(*mut u8, usize, *mut *mut u8) -> u32,
        UNKNOWN,
        buffer,
        valid_bytes,
        record
    );
    if code == 0 {
        // SAFETY: the call has written it.
        let start = unsafe { record.read() };
        let readable = valid_bytes - (start.addr() - buffer.addr());
        // SAFETY: the record lies in the buffer, which is readable to the end of its valid part.
        shown().push(unsafe { std::slice::from_raw_parts(start, readable.min(LONGEST_BYTES)) }.to_vec());
    }
    code
}

/// `CUpti_SubscriberParams` of 13.0.
#[repr(C)]
pub struct SubscriberParams {
    size_bytes: usize,
    name: *const c_char,
    holder: *mut c_char,
    holder_bytes: usize,
}

/// # Safety
/// As `cuptiSubscribe`; `params` may be read, and its `holder` has so many bytes that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe_v2(
    subscriber: *mut Any,
    callback: Any,
    user: Any,
    params: *mut SubscriberParams,
) -> u32 {
    // SAFETY: the caller's promise.
    let code = unsafe { cuptiSubscribe(subscriber, callback, user) };
    // SAFETY: the caller's promise.
    let params = unsafe { &*params };
    let name = CString::new(std::env::var("CUPTI_WITNESS_HOLDER").unwrap_or_default()).unwrap_or_default();
    let bytes = name.as_bytes_with_nul();
    if code == MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && !params.holder.is_null() && bytes.len() <= params.holder_bytes {
        // SAFETY: the name fits, by the caller's promise.
        unsafe { params.holder.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    code
}
