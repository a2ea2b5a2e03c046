//! The one subscriber and its callbacks.
//!
//! Guarantees: a callback comes only while its (domain, id) is enabled; delivering one takes no lock and waits for
//! nothing. A subscriber is never freed, so a callback that is under way when it unsubscribes stays valid.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::counters;
use crate::driver;
use crate::faults::fault;
use crate::hook_abi::{self, ApiCall, ResourceEvent, resource};
use crate::result::{CuptiResult, INVALID_PARAMETER, MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, NOT_INITIALIZED, SUCCESS};
use crate::watch;

const DOMAIN_RESOURCE: u32 = 3;
const DOMAIN_SYNCHRONIZE: u32 = 4;
const STREAM_SYNCHRONIZED: u32 = 1;
const CONTEXT_SYNCHRONIZED: u32 = 2;
const DOMAINS: usize = 7;
const IDS: usize = 1024;

/// `CUpti_CallbackFunc`.
pub type CallbackFunc = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// What a `CUpti_SubscriberHandle` points at.
pub struct Subscriber {
    callback: CallbackFunc,
    user: *mut c_void,
}

static SUBSCRIBER: AtomicPtr<Subscriber> = AtomicPtr::new(std::ptr::null_mut());
static ENABLED: [[AtomicBool; IDS]; DOMAINS] = [const { [const { AtomicBool::new(false) }; IDS] }; DOMAINS];

/// # Safety
/// `handle` may be written, or is null; `callback` may be called with `user` from any thread until unsubscribed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(
    handle: *mut *mut Subscriber,
    callback: Option<CallbackFunc>,
    user: *mut c_void,
) -> CuptiResult {
    watch::look();
    fault!("subscribe");
    let (Some(callback), false) = (callback, handle.is_null()) else { return INVALID_PARAMETER };
    if driver::door().is_none() {
        return NOT_INITIALIZED;
    }
    let new = Box::into_raw(Box::new(Subscriber { callback, user }));
    // SYNC: the Release half pairs with the Acquire load in `subscriber`.
    if SUBSCRIBER.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        // SAFETY: made by Box::into_raw above and published to nobody.
        drop(unsafe { Box::from_raw(new) });
        return MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    // SAFETY: not null, so by contract it may be written.
    unsafe { handle.write(new) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiUnsubscribe(handle: *mut Subscriber) -> CuptiResult {
    fault!("unsubscribe");
    if handle.is_null()
        || SUBSCRIBER.compare_exchange(handle, std::ptr::null_mut(), Ordering::AcqRel, Ordering::Relaxed).is_err()
    {
        return INVALID_PARAMETER;
    }
    disable_all();
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(enable: u32, handle: *mut Subscriber, domain: u32, cbid: u32) -> CuptiResult {
    fault!("enable_callback");
    match enabled(domain, cbid).filter(|_| is_current(handle)) {
        Some(flag) => {
            flag.store(enable != 0, Ordering::Relaxed);
            SUCCESS
        }
        None => INVALID_PARAMETER,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableDomain(enable: u32, handle: *mut Subscriber, domain: u32) -> CuptiResult {
    fault!("enable_domain");
    match ENABLED.get(domain as usize).filter(|_| is_current(handle) && domain != 0) {
        Some(flags) => {
            flags.iter().for_each(|flag| flag.store(enable != 0, Ordering::Relaxed));
            SUCCESS
        }
        None => INVALID_PARAMETER,
    }
}

/// Takes the subscription away, as `cuptiFinalize` does.
pub fn forget_subscriber() {
    SUBSCRIBER.store(std::ptr::null_mut(), Ordering::Release);
    disable_all();
}

fn disable_all() {
    ENABLED.iter().flatten().for_each(|flag| flag.store(false, Ordering::Relaxed));
}

fn is_current(handle: *mut Subscriber) -> bool {
    !handle.is_null() && SUBSCRIBER.load(Ordering::Relaxed) == handle
}

fn enabled(domain: u32, cbid: u32) -> Option<&'static AtomicBool> {
    ENABLED.get(domain as usize)?.get(cbid as usize).filter(|_| domain != 0)
}

/// Calls the subscriber, if there is one and the id is enabled.
fn deliver(domain: u32, cbid: u32, data: *const c_void) {
    if !is_enabled(domain, cbid) {
        return;
    }
    // SYNC: pairs with the Release half of the exchange in `cuptiSubscribe`.
    let subscriber = SUBSCRIBER.load(Ordering::Acquire);
    // SAFETY: null, or made by Box::into_raw in `cuptiSubscribe`, published whole and never freed.
    let Some(subscriber) = (unsafe { subscriber.as_ref() }) else { return };
    counters::CALLBACKS.add(1);
    // SAFETY: by the contract of `cuptiSubscribe`; `data` is what the domain and id call for, valid during the call.
    watch::during(0, || unsafe { (subscriber.callback)(subscriber.user, domain, cbid, data) });
}

/// `CUpti_ResourceData`.
#[repr(C)]
struct ResourceData {
    context: *mut c_void,
    stream: *mut c_void,
    descriptor: *mut c_void,
}

/// `CUpti_ModuleResourceData`.
#[repr(C)]
struct ModuleResourceData {
    module_id: u32,
    cubin_size: usize,
    cubin: *const c_char,
}

/// # Safety
/// `event` is valid during the call.
pub unsafe extern "C" fn on_resource(event: *const ResourceEvent) {
    // SAFETY: by contract.
    let event = unsafe { &*event };
    let mut module =
        ModuleResourceData { module_id: event.module_id, cubin_size: event.cubin_size, cubin: event.cubin.cast() };
    let is_module = matches!(event.cbid, resource::MODULE_LOADED | resource::MODULE_UNLOAD_STARTING);
    if is_module && is_enabled(DOMAIN_RESOURCE, event.cbid) {
        counters::MODULE_CALLBACKS.add(1);
    }
    let descriptor = if is_module { (&raw mut module).cast() } else { std::ptr::null_mut() };
    let data = ResourceData { context: event.context, stream: event.stream, descriptor };
    deliver(DOMAIN_RESOURCE, event.cbid, (&raw const data).cast());
}

/// `CUpti_CallbackData`.
#[repr(C)]
struct CallbackData {
    site: u32,
    function_name: *const c_char,
    params: *const c_void,
    return_value: *mut c_void,
    symbol_name: *const c_char,
    context: *mut c_void,
    context_uid: u32,
    correlation_data: *mut u64,
    correlation_id: u32,
}

/// Whether a callback of this id reaches somebody.
pub fn is_enabled(domain: u32, cbid: u32) -> bool {
    enabled(domain, cbid).is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Tells the subscriber of a call's begin or end.
pub fn tell_of_call(call: &ApiCall) {
    let data = CallbackData {
        site: call.site,
        function_name: call.function_name,
        params: call.params,
        return_value: call.return_value.cast(),
        symbol_name: call.symbol_name,
        context: call.context,
        context_uid: hook_abi::context_id(call.context).unwrap_or(0),
        correlation_data: call.correlation_data,
        correlation_id: call.correlation_id,
    };
    deliver(call.domain, call.cbid, (&raw const data).cast());
}

/// `CUpti_SynchronizeData`.
#[repr(C)]
struct SynchronizeData {
    context: *mut c_void,
    stream: *mut c_void,
}

/// A null stream stands for the whole context.
pub extern "C" fn on_synchronized(context: *mut c_void, stream: *mut c_void) {
    let cbid = if stream.is_null() { CONTEXT_SYNCHRONIZED } else { STREAM_SYNCHRONIZED };
    let data = SynchronizeData { context, stream };
    deliver(DOMAIN_SYNCHRONIZE, cbid, (&raw const data).cast());
}
