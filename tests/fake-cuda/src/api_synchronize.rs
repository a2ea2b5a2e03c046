//! Events, and waiting for streams, events and contexts.
//!
//! The wait itself holds no lock. Once it is over the driver takes its lock, tells CUPTI under it, and returns: a client
//! that waits for something in its synchronization callback waits under the driver lock.

use std::ffi::{c_uint, c_void};

use crate::api_context::{Context, current, current_stream};
use crate::api_device::give;
use crate::driver_lock::lock;
use crate::hook_abi::{HOST_SYNCHRONIZATION, HostEvent, NOT_APPLICABLE, stream_handle, synchronization};
use crate::hooks::{self, Api};
use crate::result::{CuResult, INVALID_HANDLE, SUCCESS};
use crate::state::Event;
use crate::timeline;

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> CuResult {
    Api::new(17, c"cuCtxSynchronize").run(|correlation_id| {
        let waited = current().map(|context| {
            let start_ns = timeline::now_ns();
            let until = lock().context_busy_until(context.id);
            let what = HostEvent { operation: synchronization::CONTEXT, correlation_id, start_ns, ..nothing() };
            wait(what, context, until, Some(std::ptr::null_mut()));
        });
        waited.err().unwrap_or(SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> CuResult {
    Api::new(126, c"cuStreamSynchronize").run(|correlation_id| {
        let start_ns = timeline::now_ns();
        let waited = current_stream(stream).and_then(|(context, stream_id)| {
            let until = lock().stream_busy_until(stream_id).ok_or(INVALID_HANDLE)?;
            let operation = synchronization::STREAM;
            let what = HostEvent { operation, correlation_id, start_ns, stream_id, ..nothing() };
            wait(what, context, until, Some(stream_handle(stream_id)));
            Ok(())
        });
        waited.err().unwrap_or(SUCCESS)
    })
}

/// # Safety
/// `event` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut *mut c_void, _flags: c_uint) -> CuResult {
    match current() {
        Ok(context) => {
            let new = lock().create_event(context);
            // SAFETY: by contract.
            unsafe { give(event, std::ptr::without_provenance_mut(new)) }
        }
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: *mut c_void) -> CuResult {
    lock().events.remove(event.addr()).map_or(INVALID_HANDLE, |_| SUCCESS)
}

/// The event is over when all that the stream has been given so far is.
#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: *mut c_void, stream: *mut c_void) -> CuResult {
    Api::new(119, c"cuEventRecord").run(|_| {
        let recorded = current_stream(stream).and_then(|(_, stream_id)| {
            let mut state = lock();
            let done_ns = state.stream_busy_until(stream_id).ok_or(INVALID_HANDLE)?;
            state.record_event(event.addr(), done_ns).ok_or(INVALID_HANDLE)
        });
        recorded.err().unwrap_or(SUCCESS)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: *mut c_void) -> CuResult {
    Api::new(121, c"cuEventSynchronize").run(|correlation_id| {
        let start_ns = timeline::now_ns();
        let found = lock().events.get(event.addr()).copied();
        let Some(event) = found else { return INVALID_HANDLE };
        let what = HostEvent { operation: synchronization::EVENT, correlation_id, start_ns, ..of_event(&event) };
        wait(what, event.context, event.done_ns, None);
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: *mut c_void, event: *mut c_void, _flags: c_uint) -> CuResult {
    Api::new(295, c"cuStreamWaitEvent").run(|correlation_id| {
        let start_ns = timeline::now_ns();
        let told = current_stream(stream).and_then(|(_, stream_id)| {
            let mut state = lock();
            let event = *state.events.get(event.addr()).ok_or(INVALID_HANDLE)?;
            state.stream_mut(stream_id).ok_or(INVALID_HANDLE)?.wait_for(event.done_ns);
            let operation = synchronization::STREAM_WAIT_EVENT;
            let device_id = event.context.device;
            let end_ns = timeline::now_ns();
            let place = HostEvent { device_id, context_id: event.context.id, stream_id, ..of_event(&event) };
            hooks::host(&HostEvent { operation, correlation_id, start_ns, end_ns, ..place });
            Ok(())
        });
        told.err().unwrap_or(SUCCESS)
    })
}

fn nothing() -> HostEvent {
    HostEvent {
        kind: HOST_SYNCHRONIZATION,
        stream_id: NOT_APPLICABLE,
        event_id: NOT_APPLICABLE,
        event_sync_id: u64::from(NOT_APPLICABLE),
        ..HostEvent::default()
    }
}

fn of_event(event: &Event) -> HostEvent {
    HostEvent { event_id: event.id, event_sync_id: event.recorded, ..nothing() }
}

/// Waits, then tells of it. `callback` is the stream of CUPTI's synchronization callback, null for a whole context.
fn wait(what: HostEvent, context: Context, until_ns: u64, callback: Option<*mut c_void>) {
    timeline::wait_until(until_ns);
    let _held = lock();
    if let Some(stream) = callback {
        hooks::synchronized(context.handle(), stream);
    }
    let end_ns = timeline::now_ns();
    hooks::host(&HostEvent { context_id: context.id, device_id: context.device, end_ns, ..what });
}
