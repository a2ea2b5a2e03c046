//! What the driver tells: which of it becomes a record, and which a callback.

use crate::hook_abi::{ApiCall, HostEvent, SITE_EXIT, WORK_GRAPH, WORK_KERNEL, WORK_MEMCPY, WORK_PEER_COPY, Work};
use crate::layout::{KIND_CONCURRENT_KERNEL, KIND_GRAPH_TRACE, KIND_KERNEL, KIND_MEMCPY, KIND_MEMCPY2, KIND_MEMSET};
use crate::settings::settings;
use crate::{activity, buffers, callbacks, records, records_host};

/// # Safety
/// `work` is valid during the call.
pub unsafe extern "C" fn on_work(work: *const Work) {
    // SAFETY: by contract.
    let work = unsafe { &*work };
    let Some(kind) = wanted_kind(work) else { return };
    if kind == KIND_MEMCPY {
        buffers::note_copy();
    }
    buffers::lay_down(records::of_work(kind, work, &settings().sizes));
}

/// The kind of record that is wanted for a piece of work, if any. A graph is one record or its nodes' records.
fn wanted_kind(work: &Work) -> Option<u32> {
    let on = |kind: u32| activity::is_on(kind).then_some(kind);
    match work.kind {
        WORK_GRAPH => on(KIND_GRAPH_TRACE),
        _ if work.graph_id != 0 && activity::is_on(KIND_GRAPH_TRACE) => None,
        WORK_KERNEL => on(KIND_CONCURRENT_KERNEL).or_else(|| on(KIND_KERNEL)),
        WORK_MEMCPY => on(KIND_MEMCPY),
        WORK_PEER_COPY => on(KIND_MEMCPY2),
        _ => on(KIND_MEMSET),
    }
}

/// # Safety
/// `event` is valid during the call.
pub unsafe extern "C" fn on_host(event: *const HostEvent) {
    // SAFETY: by contract.
    let event = unsafe { &*event };
    if activity::is_on(records_host::kind_of_event(event.kind)) {
        buffers::lay_down(records_host::of_event(event, &settings().sizes));
    }
}

pub extern "C" fn api_wanted(domain: u32, cbid: u32) -> bool {
    callbacks::is_enabled(domain, cbid) || activity::is_on(records_host::kind_of_domain(domain))
}

/// # Safety
/// `call` is valid during the call.
pub unsafe extern "C" fn on_api(call: *const ApiCall) {
    // SAFETY: by contract.
    let call = unsafe { &*call };
    callbacks::tell_of_call(call);
    if call.site == SITE_EXIT && activity::is_on(records_host::kind_of_domain(call.domain)) {
        buffers::lay_down(records_host::of_call(call));
    }
}
