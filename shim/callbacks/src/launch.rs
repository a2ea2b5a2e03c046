//! A launch is entered: counted, as long as it is not known whether CUPTI delivers records, and written where readers
//! want to know what was launched and has not finished.

use crate::{tapped::Tapped, thread};
use gputap_cupti::{abi::CallbackData, constants::API_ENTER};
use gputap_ringbuf::{
    event::{EventKind, LaunchEvent, NO_NAME},
    header::counters::Counter,
    lane::directory::Refused,
    process::monotonic_ns,
};
use std::ffi::CStr;

/// Notes the launch.
///
/// # Safety
/// `data` is what CUPTI passes to a callback of the DRIVER_API domain, and this is such a callback, of a launch.
pub unsafe fn called(tapped: &Tapped, callback_id: u32, data: *const CallbackData) {
    // SAFETY: the caller's promise; CUPTI's structs are aligned.
    let Some(call) = (unsafe { data.as_ref() }) else { return };
    if call.callback_site != API_ENTER {
        return;
    }
    if !tapped.has_seen_work() {
        tapped.tap.count(Counter::LaunchesSeen, 1);
    }
    if tapped.wants(EventKind::Launch) {
        // SAFETY: the caller's promise.
        unsafe { write(tapped, callback_id, call) };
    }
}

/// # Safety
/// As for [`called`].
unsafe fn write(tapped: &Tapped, callback_id: u32, call: &CallbackData) {
    let mut lane = match tapped.tap.enter_lane(thread::pointer(), thread::id()) {
        Ok(lane) => lane,
        Err(Refused::NoLane) => return tapped.tap.count(Counter::NoLane, 1),
        Err(Refused::Nested) => return tapped.tap.count(Counter::Nested, 1),
    };
    let name_id = if call.symbol_name.is_null() {
        NO_NAME
    } else {
        // SAFETY: CUPTI's name of the kernel is NUL-terminated and stands during the callback.
        let name = unsafe { CStr::from_ptr(call.symbol_name) };
        tapped.kernel_name(&mut lane, name.to_bytes())
    };
    let event = LaunchEvent {
        time_ns: monotonic_ns(),
        correlation_id: tapped.correlations.widen(call.correlation_id),
        callback_id,
        thread_id: thread::id() as u32,
        name_id,
        context_id: call.context_uid,
    };
    // A payload of a few words fits in a chunk.
    let _ = lane.write(EventKind::Launch as u16, &event.encode());
}
