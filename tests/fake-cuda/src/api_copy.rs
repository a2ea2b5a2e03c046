//! Copies and memsets. No byte is moved; only the time passes.

use std::ffi::{c_uchar, c_void};

use crate::api_context::{Context, current_stream};
use crate::driver_lock::lock;
use crate::hook_abi::{WORK_MEMCPY, WORK_MEMSET, WORK_PEER_COPY, Work};
use crate::hooks::{self, Api};
use crate::result::{CuResult, INVALID_CONTEXT, INVALID_HANDLE, SUCCESS};
use crate::timeline;

const PAGEABLE: u8 = 1;
const DEVICE: u8 = 3;

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(_to: u64, _from: *const c_void, bytes: usize, stream: *mut c_void) -> CuResult {
    put(Api::new(277, c"cuMemcpyHtoDAsync_v2"), stream, copy([1, PAGEABLE, DEVICE]), bytes)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(_to: *mut c_void, _from: u64, bytes: usize, stream: *mut c_void) -> CuResult {
    put(Api::new(279, c"cuMemcpyDtoHAsync_v2"), stream, copy([2, DEVICE, PAGEABLE]), bytes)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(_to: u64, _from: u64, bytes: usize, stream: *mut c_void) -> CuResult {
    put(Api::new(281, c"cuMemcpyDtoDAsync_v2"), stream, copy([8, DEVICE, DEVICE]), bytes)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(_to: u64, value: c_uchar, bytes: usize, stream: *mut c_void) -> CuResult {
    let what = Work { kind: WORK_MEMSET, value: u32::from(value), ..Work::NONE };
    put(Api::new(216, c"cuMemsetD8Async"), stream, what, bytes)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyPeerAsync(
    _to: u64,
    to_context: *mut c_void,
    _from: u64,
    from_context: *mut c_void,
    bytes: usize,
    stream: *mut c_void,
) -> CuResult {
    let (Some(to), Some(from)) = (Context::of(to_context), Context::of(from_context)) else { return INVALID_CONTEXT };
    let peers = [from.device, from.id, to.device, to.id];
    let what = Work { kind: WORK_PEER_COPY, peers, ..copy([10, DEVICE, DEVICE]) };
    put(Api::new(319, c"cuMemcpyPeerAsync"), stream, what, bytes)
}

fn copy(copy: [u8; 3]) -> Work {
    Work { kind: WORK_MEMCPY, copy, ..Work::NONE }
}

/// Puts `what` on the stream, with its place, its times and its correlation id.
fn put(api: Api, stream: *mut c_void, what: Work, bytes: usize) -> CuResult {
    api.run(|correlation_id| {
        let (context, stream_id) = match current_stream(stream) {
            Ok(found) => found,
            Err(error) => return error,
        };
        let on_device = what.kind == WORK_MEMSET || what.copy[1..] == [DEVICE, DEVICE];
        let mut state = lock();
        let Some(stream) = state.stream_mut(stream_id) else { return INVALID_HANDLE };
        let (start_ns, end_ns) = stream.put(timeline::copy_ns(bytes as u64, on_device));
        hooks::work(&Work {
            correlation_id,
            start_ns,
            end_ns,
            device_id: context.device,
            context_id: context.id,
            stream_id,
            channel_id: 9 + stream_id % 4,
            bytes: bytes as u64,
            ..what
        });
        SUCCESS
    })
}
