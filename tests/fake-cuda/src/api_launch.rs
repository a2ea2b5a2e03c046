//! `cuLaunchKernel`.

use std::ffi::{c_uint, c_void};

use crate::api_context::current_stream;
use crate::api_module;
use crate::driver_lock::lock;
use crate::hook_abi::{WORK_KERNEL, Work};
use crate::hooks::{self, Api};
use crate::result::{CuResult, INVALID_HANDLE, INVALID_VALUE, SUCCESS};
use crate::state::Function;
use crate::timeline;

/// The arguments as CUPTI shows them (`cuLaunchKernel_params`).
#[repr(C)]
struct Params {
    function: *mut c_void,
    shape: [c_uint; 6],
    shared_bytes: c_uint,
    stream: *mut c_void,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "NVIDIA's signature")]
pub extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared_bytes: c_uint,
    stream: *mut c_void,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CuResult {
    let shape = [grid_x, grid_y, grid_z, block_x, block_y, block_z];
    let params = Params { function, shape, shared_bytes, stream, kernel_params, extra };
    let api = Api { params: (&raw const params).cast(), ..Api::new(307, c"cuLaunchKernel") };
    api.run(|correlation_id| launch(&params, correlation_id).err().unwrap_or(SUCCESS))
}

fn launch(params: &Params, correlation_id: u32) -> Result<(), CuResult> {
    let (context_id, stream_id) = current_stream(params.stream)?;
    let [.., block_x, block_y, block_z] = params.shape;
    let threads = u64::from(block_x) * u64::from(block_y) * u64::from(block_z);
    if params.shape.contains(&0) || threads > 1024 {
        return Err(INVALID_VALUE);
    }
    let mut state = lock();
    let behind = state.stream_busy_until(stream_id).ok_or(INVALID_HANDLE)?;
    if behind > timeline::now_ns() + timeline::queue_limit_ns() {
        drop(state);
        timeline::wait_until(behind - timeline::queue_limit_ns());
        state = lock();
    }
    let function: Function = *state.functions.get(params.function.addr()).ok_or(INVALID_HANDLE)?;
    // Under lazy loading this is where a module loads: inside a launch, with the driver lock held.
    api_module::load(&mut state, function.module).ok_or(INVALID_HANDLE)?;
    state.launches += 1;
    let launches = state.launches;
    let duration_ns = timeline::jittered_ns(function.duration_ns, launches);
    let (start_ns, end_ns) = state.stream_mut(stream_id).ok_or(INVALID_HANDLE)?.put(duration_ns);
    hooks::work(&Work {
        kind: WORK_KERNEL,
        correlation_id,
        start_ns,
        end_ns,
        device_id: 0,
        context_id,
        stream_id,
        channel_id: 1 + stream_id % 8,
        shape: params.shape.map(|n| n as i32),
        grid_id: launches as i64,
        name: function.name.as_ptr(),
        registers: function.registers,
        static_shared_bytes: function.static_shared_bytes,
        dynamic_shared_bytes: params.shared_bytes,
        local_bytes_per_thread: function.local_bytes,
        bytes: 0,
        value: 0,
        copy: [0; 3],
    });
    Ok(())
}
