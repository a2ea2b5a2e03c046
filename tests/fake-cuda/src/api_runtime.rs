//! A few calls of the runtime, which in reality has a library of its own (libcudart): each is one call of the driver
//! inside one of the runtime's, under one correlation id.

use std::ffi::{c_uint, c_void};

use crate::api_launch::cuLaunchKernel;
use crate::api_memory::cuMemAlloc_v2;
use crate::api_synchronize::cuCtxSynchronize;
use crate::hooks::Api;
use crate::result::CuResult;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dim3 {
    x: c_uint,
    y: c_uint,
    z: c_uint,
}

/// `function` is a driver's function handle, as `cudaKernel_t` may be.
#[unsafe(no_mangle)]
pub extern "C" fn cudaLaunchKernel(
    function: *const c_void,
    grid: Dim3,
    block: Dim3,
    arguments: *mut *mut c_void,
    shared_bytes: usize,
    stream: *mut c_void,
) -> CuResult {
    Api::runtime(211, c"cudaLaunchKernel_v7000").run(|_| {
        let (function, none) = (function.cast_mut(), std::ptr::null_mut());
        let shared_bytes = shared_bytes as c_uint;
        cuLaunchKernel(
            function,
            grid.x,
            grid.y,
            grid.z,
            block.x,
            block.y,
            block.z,
            shared_bytes,
            stream,
            arguments,
            none,
        )
    })
}

/// # Safety
/// `address` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaMalloc(address: *mut u64, bytes: usize) -> CuResult {
    // SAFETY: by contract.
    Api::runtime(20, c"cudaMalloc_v3020").run(|_| unsafe { cuMemAlloc_v2(address, bytes) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaDeviceSynchronize() -> CuResult {
    Api::runtime(165, c"cudaDeviceSynchronize_v3020").run(|_| cuCtxSynchronize())
}
