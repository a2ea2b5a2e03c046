//! The functions that CUPTI calls. No panic leaves them, a forked child does nothing in them, and an application that
//! is tapped no longer (or not yet) passes through.

use crate::{
    completed, launch, module,
    pool::BUFFER_BYTES,
    tapped::{self, Tapped},
};
use gputap_cupti::{
    abi::{CallbackData, CuContext, ResourceData},
    constants::{CB_DOMAIN_DRIVER_API, CB_DOMAIN_RESOURCE, CBID_RESOURCE_MODULE_LOADED},
};
use gputap_ringbuf::header::counters::Counter;
use std::{
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Runs `inside` with the tap; a panic is counted, also as `what` it may have cost, and goes no further.
fn enter(what: Option<Counter>, inside: impl FnOnce(&'static Tapped)) {
    let Some(tapped) = tapped::current() else { return };
    if catch_unwind(AssertUnwindSafe(|| inside(tapped))).is_err() {
        [Some(Counter::Panics), what].into_iter().flatten().for_each(|counter| tapped.tap.count(counter, 1));
    }
}

/// `CUpti_CallbackFunc`. Only MODULE_LOADED and launches are ever enabled.
///
/// # Safety
/// Called by CUPTI, with what it passes.
pub unsafe extern "C" fn on_callback(_user: *mut c_void, domain: u32, callback_id: u32, data: *const c_void) {
    match (domain, callback_id) {
        // SAFETY: CUPTI passes a ResourceData to callbacks of the RESOURCE domain.
        (CB_DOMAIN_RESOURCE, CBID_RESOURCE_MODULE_LOADED) => enter(None, |tapped| unsafe {
            module::loaded(tapped, data.cast::<ResourceData>());
        }),
        // SAFETY: CUPTI passes a CallbackData to callbacks of the DRIVER_API domain, where only launches are enabled.
        (CB_DOMAIN_DRIVER_API, _) => enter(None, |tapped| unsafe {
            launch::called(tapped, callback_id, data.cast::<CallbackData>());
        }),
        _ => {}
    }
}

/// `CUpti_BuffersCallbackRequestFunc`. With all buffers out, it gives none, and CUPTI counts what it drops; before 12.9 a
/// null buffer crashes it, so it gets one that is thrown away.
///
/// # Safety
/// Called by CUPTI, with what it passes.
pub unsafe extern "C" fn on_buffer_requested(buffer: *mut *mut u8, size_bytes: *mut usize, max_records: *mut usize) {
    let mut given = (NO_ROOM.0.as_ptr().cast_mut().cast::<u8>(), 0);
    enter(None, |tapped| {
        given = match tapped.pool.take() {
            Some(taken) => (taken, BUFFER_BYTES),
            None if tapped.may_refuse_buffers => (std::ptr::null_mut(), 0),
            None => {
                tapped.tap.count(Counter::PoolEmpty, 1);
                (tapped.pool.spare(), BUFFER_BYTES)
            }
        };
    });
    // SAFETY: CUPTI passes three places to be written.
    unsafe {
        *buffer = given.0;
        *size_bytes = given.1;
        *max_records = 0;
    }
}

/// Where CUPTI asks in a process that is not tapped (a forked child): an address, and no room at it.
static NO_ROOM: NoRoom = NoRoom([0; 1]);

#[repr(align(64))]
struct NoRoom([u64; 1]);

/// `CUpti_BuffersCallbackCompleteFunc`.
///
/// # Safety
/// Called by CUPTI, with what it passes.
pub unsafe extern "C" fn on_buffer_completed(
    context: CuContext,
    stream_id: u32,
    buffer: *mut u8,
    _size_bytes: usize,
    valid_bytes: usize,
) {
    // SAFETY: CUPTI passes a buffer that it got from us, with `valid_bytes` of records.
    enter(Some(Counter::PoolEmpty), |tapped| unsafe {
        completed::completed(tapped, context, stream_id, buffer, valid_bytes)
    });
}
