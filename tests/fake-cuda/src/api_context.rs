//! Contexts, streams, and waiting for them.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use crate::api_device::{give, initialized};
use crate::driver_lock::lock;
use crate::hook_abi::{self, resource};
use crate::hooks::{self, Api};
use crate::result::{CuResult, INVALID_CONTEXT, INVALID_DEVICE, INVALID_HANDLE, SUCCESS};
use crate::timeline;

thread_local! {
    /// The thread's current context id; 0 for none.
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread's current context.
pub fn current() -> Result<u32, CuResult> {
    Some(CURRENT.get()).filter(|&id| id != 0).ok_or(INVALID_CONTEXT)
}

/// The same as a handle, or null.
pub extern "C" fn current_raw() -> *mut c_void {
    current().map_or(std::ptr::null_mut(), hook_abi::context_handle)
}

/// The current context and the id of `stream` in it.
pub fn current_stream(stream: *const c_void) -> Result<(u32, u32), CuResult> {
    let context = current()?;
    Ok((context, hook_abi::stream_id(context, stream).ok_or(INVALID_HANDLE)?))
}

/// # Safety
/// `context` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> CuResult {
    if initialized() != SUCCESS || device != 0 {
        return if device != 0 { INVALID_DEVICE } else { initialized() };
    }
    let (id, new) = {
        let mut state = lock();
        match state.primary_context {
            Some(id) => (id, false),
            None => {
                let id = state.create_context();
                state.primary_context = Some(id);
                (id, true)
            }
        }
    };
    if new {
        hooks::resource(resource::CONTEXT_CREATED, hook_abi::context_handle(id), std::ptr::null_mut());
    }
    // SAFETY: by contract.
    unsafe { give(context, hook_abi::context_handle(id)) }
}

/// # Safety
/// `context` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxCreate_v2(context: *mut *mut c_void, _flags: c_uint, device: c_int) -> CuResult {
    if initialized() != SUCCESS || device != 0 {
        return if device != 0 { INVALID_DEVICE } else { initialized() };
    }
    let id = lock().create_context();
    CURRENT.set(id);
    hooks::resource(resource::CONTEXT_CREATED, hook_abi::context_handle(id), std::ptr::null_mut());
    // SAFETY: by contract.
    unsafe { give(context, hook_abi::context_handle(id)) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> CuResult {
    let id = match context.is_null() {
        true => 0,
        false => match hook_abi::context_id(context).filter(|&id| lock().context_alive(id)) {
            Some(id) => id,
            None => return INVALID_CONTEXT,
        },
    };
    CURRENT.set(id);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxDestroy_v2(context: *mut c_void) -> CuResult {
    let Some(id) = hook_abi::context_id(context).filter(|&id| lock().context_alive(id)) else {
        return INVALID_CONTEXT;
    };
    timeline::wait_until(lock().context_busy_until(id));
    hooks::resource(resource::CONTEXT_DESTROY_STARTING, context, std::ptr::null_mut());
    if CURRENT.get() == id {
        CURRENT.set(0);
    }
    if lock().destroy_context(id) { SUCCESS } else { INVALID_CONTEXT }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> CuResult {
    Api::new(17, c"cuCtxSynchronize").run(|_| match current() {
        Ok(context) => {
            let until = lock().context_busy_until(context);
            timeline::wait_until(until);
            SUCCESS
        }
        Err(error) => error,
    })
}

/// # Safety
/// `stream` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut *mut c_void, _flags: c_uint) -> CuResult {
    let context = match current() {
        Ok(context) => context,
        Err(error) => return error,
    };
    let id = lock().create_stream(context);
    let handle = hook_abi::stream_handle(id);
    hooks::resource(resource::STREAM_CREATED, hook_abi::context_handle(context), handle);
    // SAFETY: by contract.
    unsafe { give(stream, handle) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: *mut c_void) -> CuResult {
    let (context, id) = match current_stream(stream) {
        Ok(found) => found,
        Err(error) => return error,
    };
    hooks::resource(resource::STREAM_DESTROY_STARTING, hook_abi::context_handle(context), stream);
    if lock().destroy_stream(id) { SUCCESS } else { INVALID_HANDLE }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy(stream: *mut c_void) -> CuResult {
    cuStreamDestroy_v2(stream)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> CuResult {
    Api::new(126, c"cuStreamSynchronize").run(|_| {
        let until = current_stream(stream).and_then(|(_, id)| lock().stream_busy_until(id).ok_or(INVALID_HANDLE));
        match until {
            Ok(until) => {
                timeline::wait_until(until);
                SUCCESS
            }
            Err(error) => error,
        }
    })
}
