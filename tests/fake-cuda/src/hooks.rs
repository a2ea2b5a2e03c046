//! The one CUPTI that listens, if any, and how it is told.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::api_context;
use crate::driver_lock;
use crate::hook_abi::{
    ApiCall, DOMAIN_DRIVER_API, DOMAIN_RUNTIME_API, Door, HOOK_ABI, Hooks, HostEvent, ResourceEvent, SITE_ENTER,
    SITE_EXIT, Work,
};
use crate::result::CuResult;
use crate::timeline;

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(std::ptr::null_mut());
static CALLS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The correlation id of the runtime's call that this thread is in; the driver's calls inside it share it.
    static SHARED: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Ids count from `FAKE_CUDA_FIRST_CORRELATION` (default 1), and wrap.
fn next_correlation_id() -> u32 {
    static FIRST: OnceLock<u32> = OnceLock::new();
    let first = *FIRST
        .get_or_init(|| std::env::var("FAKE_CUDA_FIRST_CORRELATION").ok().and_then(|v| v.parse().ok()).unwrap_or(1));
    first.wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed))
}

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
        holds_lock: driver_lock::holds_lock,
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

pub fn host(event: &HostEvent) {
    if let Some(hooks) = get() {
        // SAFETY: the hook takes a valid event and looks at it only during the call.
        unsafe { (hooks.host)(event) };
    }
}

/// Tells that a stream, or with a null one the context, was waited for. The driver lock is held.
pub fn synchronized(context: *mut c_void, stream: *mut c_void) {
    if let Some(hooks) = get() {
        (hooks.synchronized)(context, stream);
    }
}

/// An API call as CUPTI sees it.
pub struct Api {
    domain: u32,
    cbid: u32,
    function_name: &'static CStr,
    params: *const c_void,
    /// Launches of one kernel: its name, which lives as long as the process.
    symbol_name: *const c_char,
}

impl Api {
    /// A call of the driver.
    pub fn new(cbid: u32, function_name: &'static CStr) -> Self {
        let none = std::ptr::null();
        Self { domain: DOMAIN_DRIVER_API, cbid, function_name, params: none, symbol_name: none.cast() }
    }

    /// A call of the runtime.
    pub fn runtime(cbid: u32, function_name: &'static CStr) -> Self {
        Self { domain: DOMAIN_RUNTIME_API, ..Self::new(cbid, function_name) }
    }

    /// The arguments as CUPTI shows them. They outlive the call's [`Api::run`].
    pub fn with<T>(self, params: &T) -> Self {
        Self { params: (&raw const *params).cast(), ..self }
    }

    /// A launch of the kernel of this name; null if there is none.
    pub fn launching(self, symbol_name: *const c_char) -> Self {
        Self { symbol_name, ..self }
    }

    /// Runs the call under a new correlation id, or that of the runtime's call that it is part of, between its two
    /// callbacks if they are listened to.
    pub fn run(&self, call: impl FnOnce(u32) -> CuResult) -> CuResult {
        let outer = SHARED.get();
        let correlation_id = outer.unwrap_or_else(next_correlation_id);
        if self.domain == DOMAIN_RUNTIME_API {
            SHARED.set(Some(correlation_id));
        }
        let result = self.tell(correlation_id, call);
        SHARED.set(outer);
        result
    }

    fn tell(&self, correlation_id: u32, call: impl FnOnce(u32) -> CuResult) -> CuResult {
        let Some(hooks) = get().filter(|hooks| (hooks.api_wanted)(self.domain, self.cbid)) else {
            return call(correlation_id);
        };
        let (mut result, mut kept) = (0, 0_u64);
        let mut event = ApiCall {
            site: SITE_ENTER,
            domain: self.domain,
            cbid: self.cbid,
            start_ns: timeline::now_ns(),
            end_ns: 0,
            function_name: self.function_name.as_ptr(),
            params: self.params,
            return_value: &raw mut result,
            symbol_name: self.symbol_name,
            context: api_context::current_raw(),
            correlation_id,
            correlation_data: &raw mut kept,
        };
        // SAFETY: every pointer of the event is valid during the call, or null where the ABI allows it.
        unsafe { (hooks.api)(&raw const event) };
        let returned = call(correlation_id);
        event.site = SITE_EXIT;
        event.end_ns = timeline::now_ns();
        // SAFETY: `return_value` points at `result`, a local that is only reached through that pointer.
        unsafe { event.return_value.write(returned) };
        // SAFETY: as above.
        unsafe { (hooks.api)(&raw const event) };
        returned
    }
}
