//! Versions, clocks, ids and texts.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::buffers;
use crate::driver;
use crate::faults::fault;
use crate::hook_abi;
use crate::result::{self, CuptiResult, INVALID_CONTEXT, INVALID_PARAMETER, INVALID_STREAM, SUCCESS};
use crate::settings::settings;

/// `CUpti_TimestampCallbackFunc`.
pub type TimestampFunc = unsafe extern "C" fn() -> u64;

static CLIENT_CLOCK: Mutex<Option<TimestampFunc>> = Mutex::new(None);

/// The device's clock: CLOCK_REALTIME.
pub fn realtime_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64)
}

/// Back to the device's clock.
pub fn forget_clock() {
    *CLIENT_CLOCK.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// # Safety
/// `version` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> CuptiResult {
    fault!("version");
    // SAFETY: by contract.
    unsafe { give(version, settings().version) }
}

/// # Safety
/// `timestamp` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetTimestamp(timestamp: *mut u64) -> CuptiResult {
    fault!("timestamp");
    let clock = *CLIENT_CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the client registered the function for this use.
    let now = clock.map_or_else(realtime_ns, |clock| unsafe { clock() });
    // SAFETY: by contract.
    unsafe { give(timestamp, now) }
}

/// Later records carry the client's clock, by the distance that the two clocks have now.
///
/// # Safety
/// `clock` may be called from any thread, for ever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityRegisterTimestampCallback(clock: Option<TimestampFunc>) -> CuptiResult {
    fault!("timestamp_callback");
    let Some(function) = clock else { return INVALID_PARAMETER };
    let before = realtime_ns();
    // SAFETY: by contract.
    let theirs = unsafe { function() };
    let ours = before + (realtime_ns() - before) / 2;
    *CLIENT_CLOCK.lock().unwrap_or_else(PoisonError::into_inner) = Some(function);
    buffers::lock().set_clock_offset(theirs.wrapping_sub(ours).cast_signed());
    SUCCESS
}

/// # Safety
/// `string` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(code: CuptiResult, string: *mut *const c_char) -> CuptiResult {
    match result::name(code) {
        // SAFETY: by contract.
        Some(name) => unsafe { give(string, name.as_ptr()) },
        None => INVALID_PARAMETER,
    }
}

/// # Safety
/// `device_id` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetDeviceId(context: *mut c_void, device_id: *mut u32) -> CuptiResult {
    fault!("ids");
    match context_id(context) {
        // SAFETY: by contract.
        Some(_) => unsafe { give(device_id, 0) },
        None => INVALID_CONTEXT,
    }
}

/// # Safety
/// `id` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetContextId(context: *mut c_void, id: *mut u32) -> CuptiResult {
    fault!("ids");
    match context_id(context) {
        // SAFETY: by contract.
        Some(context) => unsafe { give(id, context) },
        None => INVALID_CONTEXT,
    }
}

/// # Safety
/// `id` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetStreamIdEx(
    context: *mut c_void,
    stream: *mut c_void,
    _per_thread_stream: u8,
    id: *mut u32,
) -> CuptiResult {
    fault!("ids");
    let Some(context) = context_id(context) else { return INVALID_CONTEXT };
    match hook_abi::stream_id(context, stream) {
        // SAFETY: by contract.
        Some(stream) => unsafe { give(id, stream) },
        None => INVALID_STREAM,
    }
}

/// Null means the calling thread's current context.
fn context_id(context: *mut c_void) -> Option<u32> {
    let context = if context.is_null() { (driver::door()?.current_context)() } else { context };
    hook_abi::context_id(context)
}

/// # Safety
/// `to` may be written, or is null.
unsafe fn give<T>(to: *mut T, value: T) -> CuptiResult {
    if to.is_null() {
        return INVALID_PARAMETER;
    }
    // SAFETY: not null, so by contract it may be written.
    unsafe { to.write(value) };
    SUCCESS
}
