//! Making graphs of kernels. Dependencies are not kept: nodes run in the order in which they were added.

use std::ffi::{c_uint, c_ulonglong, c_void};

use crate::api_device::give;
use crate::driver_lock::lock;
use crate::graphs::Node;
use crate::hook_abi::{self, graph_exec_handle, graph_exec_id, graph_handle, graph_id, node_handle};
use crate::result::{CuResult, INVALID_HANDLE, INVALID_VALUE, SUCCESS};

/// # Safety
/// `graph` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphCreate(graph: *mut *mut c_void, _flags: c_uint) -> CuResult {
    let id = lock().graphs.create();
    // SAFETY: by contract.
    unsafe { give(graph, graph_handle(id)) }
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
pub struct KernelNodeParams {
    function: *mut c_void,
    shape: [c_uint; 6],
    shared_bytes: c_uint,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
    kernel: *mut c_void,
    context: *mut c_void,
}

/// # Safety
/// `node` may be written and `params` be read, or they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddKernelNode_v2(
    node: *mut *mut c_void,
    graph: *mut c_void,
    _dependencies: *const *mut c_void,
    _count: usize,
    params: *const KernelNodeParams,
) -> CuResult {
    // SAFETY: null, or by contract readable.
    let Some(params) = (unsafe { params.as_ref() }) else { return INVALID_VALUE };
    let new = Node { function: params.function.addr(), shape: params.shape, shared_bytes: params.shared_bytes };
    let added = graph_id(graph).and_then(|id| Some(node_handle(id, lock().graphs.add(id, new)?)));
    // SAFETY: by contract.
    added.map_or(INVALID_HANDLE, |handle| unsafe { give(node, handle) })
}

/// # Safety
/// `exec` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(
    exec: *mut *mut c_void,
    graph: *mut c_void,
    _flags: c_ulonglong,
) -> CuResult {
    let new = graph_id(graph).and_then(|id| lock().graphs.instantiate(id));
    // SAFETY: by contract.
    new.map_or(INVALID_HANDLE, |id| unsafe { give(exec, graph_exec_handle(id)) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroy(graph: *mut c_void) -> CuResult {
    let gone = hook_abi::graph_id(graph).is_some_and(|id| lock().graphs.destroy(id));
    if gone { SUCCESS } else { INVALID_HANDLE }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecDestroy(exec: *mut c_void) -> CuResult {
    let gone = graph_exec_id(exec).is_some_and(|id| lock().graphs.destroy_exec(id));
    if gone { SUCCESS } else { INVALID_HANDLE }
}
