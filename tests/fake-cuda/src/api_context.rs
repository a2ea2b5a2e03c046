//! Contexts and streams. The driver lock is held while CUPTI is told that a context was made or is about to go.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};

use crate::api_device::{give, known_device};
use crate::api_module;
use crate::driver_lock::{Guard, lock};
use crate::hook_abi::{self, resource};
use crate::hooks::{self, Api};
use crate::result::{CuResult, INVALID_CONTEXT, INVALID_HANDLE, SUCCESS};
use crate::timeline;

/// A context as every thread may know it without a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Context {
    pub id: u32,
    pub device: u32,
}

impl Context {
    pub fn handle(self) -> *mut c_void {
        hook_abi::context_handle(self.id, self.device)
    }

    /// The context of a handle, dead or alive.
    pub fn of(handle: *const c_void) -> Option<Self> {
        Some(Self { id: hook_abi::context_id(handle)?, device: hook_abi::context_device(handle)? })
    }
}

thread_local! {
    /// The thread's current context.
    static CURRENT: Cell<Option<Context>> = const { Cell::new(None) };
}

/// The calling thread's current context.
pub fn current() -> Result<Context, CuResult> {
    CURRENT.get().ok_or(INVALID_CONTEXT)
}

/// The same as a handle, or null.
pub extern "C" fn current_raw() -> *mut c_void {
    current().map_or(std::ptr::null_mut(), Context::handle)
}

/// The current context and the id of `stream` in it.
pub fn current_stream(stream: *const c_void) -> Result<(Context, u32), CuResult> {
    let context = current()?;
    Ok((context, hook_abi::stream_id(context.id, stream).ok_or(INVALID_HANDLE)?))
}

/// # Safety
/// `context` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> CuResult {
    Api::new(386, c"cuDevicePrimaryCtxRetain").run(|_| {
        let device = match known_device(device) {
            Ok(device) => device,
            Err(error) => return error,
        };
        let mut state = lock();
        let primary = match state.primary_context(device) {
            Some(id) => Context { id, device },
            None => {
                let new = create(&mut state, device);
                state.set_primary_context(device, Some(new.id));
                new
            }
        };
        // SAFETY: by contract.
        unsafe { give(context, primary.handle()) }
    })
}

/// Destroys the primary context, whoever uses it.
#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxReset_v2(device: c_int) -> CuResult {
    Api::new(545, c"cuDevicePrimaryCtxReset_v2").run(|_| {
        let device = match known_device(device) {
            Ok(device) => device,
            Err(error) => return error,
        };
        let primary = lock().primary_context(device);
        match primary {
            Some(id) => destroy(Context { id, device }),
            None => SUCCESS,
        }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxReset(device: c_int) -> CuResult {
    cuDevicePrimaryCtxReset_v2(device)
}

/// # Safety
/// `context` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxCreate_v2(context: *mut *mut c_void, _flags: c_uint, device: c_int) -> CuResult {
    Api::new(235, c"cuCtxCreate_v2").run(|_| {
        let device = match known_device(device) {
            Ok(device) => device,
            Err(error) => return error,
        };
        let new = create(&mut lock(), device);
        CURRENT.set(Some(new));
        // SAFETY: by contract.
        unsafe { give(context, new.handle()) }
    })
}

/// Makes a context, and tells of it under the caller's hold of the driver lock.
fn create(state: &mut Guard, device: u32) -> Context {
    let new = Context { id: state.create_context(device), device };
    hooks::resource(resource::CONTEXT_CREATED, new.handle(), std::ptr::null_mut());
    new
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> CuResult {
    let new = Context::of(context).filter(|context| lock().context_alive(context.id));
    if new.is_none() && !context.is_null() {
        return INVALID_CONTEXT;
    }
    CURRENT.set(new);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxDestroy_v2(context: *mut c_void) -> CuResult {
    Api::new(322, c"cuCtxDestroy_v2").run(|_| Context::of(context).map_or(INVALID_CONTEXT, destroy))
}

/// Waits for the context's work, then unloads its modules and destroys it, under one hold of the driver lock.
fn destroy(context: Context) -> CuResult {
    let until = lock().context_busy_until(context.id);
    timeline::wait_until(until);
    let mut state = lock();
    if !state.context_alive(context.id) {
        return INVALID_CONTEXT;
    }
    hooks::resource(resource::CONTEXT_DESTROY_STARTING, context.handle(), std::ptr::null_mut());
    api_module::unload_all(&mut state, context);
    state.destroy_context(context.id);
    if CURRENT.get() == Some(context) {
        CURRENT.set(None);
    }
    SUCCESS
}

/// # Safety
/// `stream` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut *mut c_void, _flags: c_uint) -> CuResult {
    let context = match current() {
        Ok(context) => context,
        Err(error) => return error,
    };
    let id = lock().create_stream(context.id);
    let handle = hook_abi::stream_handle(id);
    hooks::resource(resource::STREAM_CREATED, context.handle(), handle);
    // SAFETY: by contract.
    unsafe { give(stream, handle) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: *mut c_void) -> CuResult {
    let (context, id) = match current_stream(stream) {
        Ok(found) => found,
        Err(error) => return error,
    };
    hooks::resource(resource::STREAM_DESTROY_STARTING, context.handle(), stream);
    if lock().destroy_stream(id) { SUCCESS } else { INVALID_HANDLE }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy(stream: *mut c_void) -> CuResult {
    cuStreamDestroy_v2(stream)
}
