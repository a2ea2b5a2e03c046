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

/// Whether the client has a clock of its own.
pub fn has_client_clock() -> bool {
    CLIENT_CLOCK.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Back to the device's clock.
pub fn forget_clock() {
    *CLIENT_CLOCK.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// The device's clock, as far as a script has not moved CUPTI's.
fn own_clock_ns() -> u64 {
    realtime_ns().saturating_add_signed(buffers::clock_step_ns())
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
    let now = clock.map_or_else(own_clock_ns, |clock| unsafe { clock() });
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
    fault!("result_string");
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
    match context_or_current(context).and_then(|context| hook_abi::context_device(context)) {
        // SAFETY: by contract.
        Some(device) => unsafe { give(device_id, device) },
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

/// # Safety
/// `id` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetGraphId(graph: *mut c_void, id: *mut u32) -> CuptiResult {
    fault!("ids");
    // SAFETY: by contract.
    hook_abi::graph_id(graph).map_or(INVALID_PARAMETER, |graph| unsafe { give(id, graph) })
}

/// # Safety
/// `id` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetGraphExecId(exec: *mut c_void, id: *mut u32) -> CuptiResult {
    fault!("ids");
    // SAFETY: by contract.
    hook_abi::graph_exec_id(exec).map_or(INVALID_PARAMETER, |exec| unsafe { give(id, exec) })
}

/// # Safety
/// `id` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetGraphNodeId(node: *mut c_void, id: *mut u64) -> CuptiResult {
    fault!("ids");
    // SAFETY: by contract.
    hook_abi::node_id(node).map_or(INVALID_PARAMETER, |node| unsafe { give(id, node) })
}

fn context_id(context: *mut c_void) -> Option<u32> {
    context_or_current(context).and_then(|context| hook_abi::context_id(context))
}

/// Null means the calling thread's current context.
fn context_or_current(context: *mut c_void) -> Option<*mut c_void> {
    if context.is_null() { Some((driver::door()?.current_context)()) } else { Some(context) }
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
