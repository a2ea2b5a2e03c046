//! The one CUPTI that listens, if any, and how it is told.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::api_context;
use crate::driver_lock;
use crate::hook_abi::{ApiCall, Door, HOOK_ABI, Hooks, ResourceEvent, SITE_ENTER, SITE_EXIT, Work};
use crate::result::CuResult;

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(std::ptr::null_mut());
static CORRELATION: AtomicU32 = AtomicU32::new(1);

/// Registers the hooks of a CUPTI; the last one wins. 0 on success, 1 for hooks of another ABI.
///
/// # Safety
/// `hooks` points at hooks that live and stay unchanged as long as the process; `door` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_cuda_register_hooks(hooks: *const Hooks, door: *mut Door) -> i32 {
    // SAFETY: by contract `hooks` is valid to read; `abi` is the first field of every version.
    if unsafe { (*hooks).abi } != HOOK_ABI {
        return 1;
    }
    let lent = Door {
        lock: driver_lock::raw_lock,
        unlock: driver_lock::raw_unlock,
        current_context: api_context::current_raw,
    };
    // SAFETY: by contract `door` may be written.
    unsafe { door.write(lent) };
    // SYNC: pairs with the Acquire load in `get`.
    HOOKS.store(hooks.cast_mut(), Ordering::Release);
    0
}

fn get() -> Option<&'static Hooks> {
    // SYNC: pairs with the Release store in `fake_cuda_register_hooks`.
    let hooks = HOOKS.load(Ordering::Acquire);
    // SAFETY: null, or hooks that by the registration's contract live and stay unchanged as long as the process.
    unsafe { hooks.as_ref() }
}

/// Tells of a resource event that has no module.
pub fn resource(cbid: u32, context: *mut c_void, stream: *mut c_void) {
    let event = ResourceEvent { cbid, context, stream, module_id: 0, cubin: std::ptr::null(), cubin_size: 0 };
    resource_event(&event);
}

pub fn resource_event(event: &ResourceEvent) {
    if let Some(hooks) = get() {
        // SAFETY: the hook takes a valid event and looks at it only during the call.
        unsafe { (hooks.resource)(event) };
    }
}

pub fn work(work: &Work) {
    if let Some(hooks) = get() {
        // SAFETY: the hook takes a valid piece of work and looks at it only during the call.
        unsafe { (hooks.work)(work) };
    }
}

/// A driver API call as CUPTI sees it.
pub struct Api {
    pub cbid: u32,
    pub function_name: &'static CStr,
    pub params: *const c_void,
    pub symbol_name: Option<&'static CStr>,
}

impl Api {
    pub fn new(cbid: u32, function_name: &'static CStr) -> Self {
        Self { cbid, function_name, params: std::ptr::null(), symbol_name: None }
    }

    /// Runs the call under a new correlation id, between its two callbacks if they are listened to.
    pub fn run(&self, call: impl FnOnce(u32) -> CuResult) -> CuResult {
        let correlation_id = CORRELATION.fetch_add(1, Ordering::Relaxed);
        let Some(hooks) = get().filter(|hooks| (hooks.api_wanted)(self.cbid)) else { return call(correlation_id) };
        let (mut result, mut kept) = (0, 0_u64);
        let mut event = ApiCall {
            site: SITE_ENTER,
            cbid: self.cbid,
            function_name: self.function_name.as_ptr(),
            params: self.params,
            return_value: &raw mut result,
            symbol_name: self.symbol_name.map_or(std::ptr::null(), CStr::as_ptr),
            context: api_context::current_raw(),
            correlation_id,
            correlation_data: &raw mut kept,
        };
        // SAFETY: every pointer of the event is valid during the call, or null where the ABI allows it.
        unsafe { (hooks.api)(&raw const event) };
        let returned = call(correlation_id);
        event.site = SITE_EXIT;
        // SAFETY: `return_value` points at `result`, a local that is only reached through that pointer.
        unsafe { event.return_value.write(returned) };
        // SAFETY: as above.
        unsafe { (hooks.api)(&raw const event) };
        returned
    }
}
