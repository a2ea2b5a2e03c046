//! MODULE_LOADED: the raw cubin goes into the store, nothing else happens.

use crate::tapped::Tapped;
use gputap_cupti::abi::{ModuleResourceData, ResourceData};
use gputap_ringbuf::{header::counters::Counter, process::monotonic_ns, tap::ModuleLoad};

/// Copies the module's cubin, which is valid only during the callback.
///
/// # Safety
/// `data` is what CUPTI passes to a MODULE_LOADED callback, and this is such a callback.
pub unsafe fn loaded(tapped: &Tapped, data: *const ResourceData) {
    let start_ns = monotonic_ns();
    // SAFETY: the caller's promise; CUPTI's structs are aligned.
    let Some(resource) = (unsafe { data.as_ref() }) else { return };
    // SAFETY: for module callbacks the descriptor is a ModuleResourceData, or null.
    let Some(module) = (unsafe { resource.resource_descriptor.cast::<ModuleResourceData>().as_ref() }) else { return };
    if module.cubin.is_null() || module.cubin_size_bytes == 0 {
        return;
    }
    let load = ModuleLoad { module_id: module.module_id, context: resource.context as u64 };
    // SAFETY: CUPTI gives `cubin_size_bytes` readable bytes that stand until the callback returns.
    unsafe { tapped.tap.store_cubin(module.cubin.cast(), module.cubin_size_bytes, load) };
    let took_ns = monotonic_ns().saturating_sub(start_ns);
    tapped.tap.count(Counter::ModuleCallbackNs, took_ns);
    tapped.tap.raise_to(Counter::ModuleCallbackMaxNs, took_ns);
}
