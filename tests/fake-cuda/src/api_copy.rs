//! Device memory, copies and memsets. Addresses have nothing behind them and no byte is moved; only the time passes.

use std::ffi::{c_uchar, c_void};

use crate::api_context::{current, current_stream};
use crate::api_device::give;
use crate::driver_lock::lock;
use crate::hook_abi::{WORK_MEMCPY, WORK_MEMSET, Work};
use crate::hooks::{self, Api};
use crate::result::{CuResult, INVALID_HANDLE, INVALID_VALUE, SUCCESS};
use crate::timeline;

const PAGEABLE: u8 = 1;
const DEVICE: u8 = 3;

/// # Safety
/// `address` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> CuResult {
    if bytes == 0 {
        return INVALID_VALUE;
    }
    match current() {
        // SAFETY: by contract.
        Ok(_) => unsafe { give(address, lock().allocate(bytes as u64)) },
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(_address: u64) -> CuResult {
    current().err().unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(_to: u64, _from: *const c_void, bytes: usize, stream: *mut c_void) -> CuResult {
    let api = Api::new(277, c"cuMemcpyHtoDAsync_v2");
    api.run(|correlation| put(correlation, stream, Memory::Copy([1, PAGEABLE, DEVICE]), bytes))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(_to: *mut c_void, _from: u64, bytes: usize, stream: *mut c_void) -> CuResult {
    let api = Api::new(279, c"cuMemcpyDtoHAsync_v2");
    api.run(|correlation| put(correlation, stream, Memory::Copy([2, DEVICE, PAGEABLE]), bytes))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(_to: u64, _from: u64, bytes: usize, stream: *mut c_void) -> CuResult {
    let api = Api::new(281, c"cuMemcpyDtoDAsync_v2");
    api.run(|correlation| put(correlation, stream, Memory::Copy([8, DEVICE, DEVICE]), bytes))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(_to: u64, value: c_uchar, bytes: usize, stream: *mut c_void) -> CuResult {
    let api = Api::new(216, c"cuMemsetD8Async");
    api.run(|correlation| put(correlation, stream, Memory::Set(value), bytes))
}

enum Memory {
    Copy([u8; 3]),
    Set(u8),
}

fn put(correlation_id: u32, stream: *mut c_void, what: Memory, bytes: usize) -> CuResult {
    let (context_id, stream_id) = match current_stream(stream) {
        Ok(found) => found,
        Err(error) => return error,
    };
    let (kind, copy, value, on_device) = match what {
        Memory::Copy(copy) => (WORK_MEMCPY, copy, 0, copy[1..] == [DEVICE, DEVICE]),
        Memory::Set(value) => (WORK_MEMSET, [0; 3], u32::from(value), true),
    };
    let mut state = lock();
    let Some(stream) = state.stream_mut(stream_id) else { return INVALID_HANDLE };
    let (start_ns, end_ns) = stream.put(timeline::copy_ns(bytes as u64, on_device));
    hooks::work(&Work {
        kind,
        correlation_id,
        start_ns,
        end_ns,
        device_id: 0,
        context_id,
        stream_id,
        channel_id: 9 + stream_id % 4,
        shape: [0; 6],
        grid_id: 0,
        name: std::ptr::null(),
        registers: 0,
        static_shared_bytes: 0,
        dynamic_shared_bytes: 0,
        local_bytes_per_thread: 0,
        bytes: bytes as u64,
        value,
        copy,
    });
    SUCCESS
}
