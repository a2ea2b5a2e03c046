//! Launches.
//!
//! A launch that has to load its module (the first one of it, under lazy loading) holds the driver lock from its begin
//! to its end, the API callbacks included. Where a real driver's launch callbacks stand is not known; this is the worst
//! that a client may have to live with.

use std::ffi::{c_uint, c_void};

use crate::api_context::{Context, current_stream};
use crate::api_module;
use crate::driver_lock::{Guard, lock};
use crate::graphs::Node;
use crate::hook_abi::{self, WORK_GRAPH, WORK_KERNEL, Work};
use crate::hooks::{self, Api};
use crate::result::{CuResult, INVALID_HANDLE, INVALID_VALUE, SUCCESS};
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
    let api = Api::new(307, c"cuLaunchKernel").with(&params);
    launch_one(api, node(function, shape, shared_bytes), stream)
}

/// `cuLaunchCooperativeKernel_params`.
#[repr(C)]
struct CooperativeParams {
    function: *mut c_void,
    shape: [c_uint; 6],
    shared_bytes: c_uint,
    stream: *mut c_void,
    kernel_params: *mut *mut c_void,
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "NVIDIA's signature")]
pub extern "C" fn cuLaunchCooperativeKernel(
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
) -> CuResult {
    let shape = [grid_x, grid_y, grid_z, block_x, block_y, block_z];
    let params = CooperativeParams { function, shape, shared_bytes, stream, kernel_params };
    let api = Api::new(477, c"cuLaunchCooperativeKernel").with(&params);
    launch_one(api, node(function, shape, shared_bytes), stream)
}

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    shape: [c_uint; 6],
    shared_bytes: c_uint,
    stream: *mut c_void,
    attributes: *mut c_void,
    attribute_count: c_uint,
}

/// `cuLaunchKernelEx_params`.
#[repr(C)]
struct ExParams {
    config: *const LaunchConfig,
    function: *mut c_void,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
}

/// The attributes are not looked at.
///
/// # Safety
/// `config` may be read, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernelEx(
    config: *const LaunchConfig,
    function: *mut c_void,
    kernel_params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> CuResult {
    let params = ExParams { config, function, kernel_params, extra };
    let api = Api::new(652, c"cuLaunchKernelEx").with(&params);
    // SAFETY: null, or by contract readable.
    let Some(config) = (unsafe { config.as_ref() }) else { return INVALID_VALUE };
    launch_one(api, node(function, config.shape, config.shared_bytes), config.stream)
}

/// `cuGraphLaunch_params`.
#[repr(C)]
struct GraphParams {
    exec: *mut c_void,
    stream: *mut c_void,
}

/// Runs the nodes one after the other on the stream.
#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(exec: *mut c_void, stream: *mut c_void) -> CuResult {
    let params = GraphParams { exec, stream };
    let api = Api::new(514, c"cuGraphLaunch").with(&params);
    let state = lock();
    let found = hook_abi::graph_exec_id(exec).and_then(|id| Some((id, state.graphs.exec(id)?.clone())));
    let Some((graph_id, graph)) = found else { return INVALID_HANDLE };
    let held = keep_if_loading(state, &graph.nodes);
    under_one_call(&api, held, |state, correlation_id| {
        let place = Place::find(state, stream)?;
        let of_graph = Work { correlation_id, graph_id, source_graph_id: graph.source, ..Work::NONE };
        for node in &graph.nodes {
            api_module::load_of(state, node.function).ok_or(INVALID_HANDLE)?;
        }
        let mut whole: Option<(u64, u64)> = None;
        for (number, node) in (0..).zip(&graph.nodes) {
            let graph_node_id = hook_abi::graph_node_id(graph_id, number);
            let source_graph_node_id = hook_abi::graph_node_id(graph.source, number);
            let work = Work { graph_node_id, source_graph_node_id, ..of_graph };
            let (start, end) = place.put(state, node, work, whole.is_some())?;
            whole = Some((whole.map_or(start, |whole| whole.0), end));
        }
        let (start_ns, end_ns) = whole.unwrap_or_default();
        hooks::work(&place.of(Work { kind: WORK_GRAPH, start_ns, end_ns, ..of_graph }));
        Ok(())
    })
}

fn node(function: *mut c_void, shape: [u32; 6], shared_bytes: u32) -> Node {
    Node { function: function.addr(), shape, shared_bytes }
}

fn launch_one(api: Api, node: Node, stream: *mut c_void) -> CuResult {
    let state = lock();
    let symbol_name = state.functions.get(node.function).map_or(std::ptr::null(), |f| f.name.as_ptr());
    let held = keep_if_loading(state, &[node]);
    under_one_call(&api.launching(symbol_name), held, |state, correlation_id| {
        let place = Place::find(state, stream)?;
        place.put(state, &node, Work { correlation_id, ..Work::NONE }, false).map(|_| ())
    })
}

/// Gives the driver lock back, unless one of the launches would have to load a module.
fn keep_if_loading(state: Guard, nodes: &[Node]) -> Option<Guard> {
    nodes.iter().any(|node| api_module::must_load(&state, node.function)).then_some(state)
}

/// Runs `launch` as the call `api`, under the driver lock: `held` is kept until the call's callbacks are over.
fn under_one_call(
    api: &Api,
    mut held: Option<Guard>,
    launch: impl FnOnce(&mut Guard, u32) -> Result<(), CuResult>,
) -> CuResult {
    api.run(|correlation_id| match &mut held {
        Some(state) => launch(state, correlation_id).err().unwrap_or(SUCCESS),
        None => launch(&mut lock(), correlation_id).err().unwrap_or(SUCCESS),
    })
}

/// A stream to launch on.
struct Place {
    context: Context,
    stream_id: u32,
}

impl Place {
    /// Waits, without the driver lock, while the stream is too far behind.
    fn find(state: &mut Guard, stream: *mut c_void) -> Result<Self, CuResult> {
        let (context, stream_id) = current_stream(stream)?;
        let behind = state.stream_busy_until(stream_id).ok_or(INVALID_HANDLE)?;
        if behind > timeline::now_ns() + timeline::queue_limit_ns() {
            state.unlocked(|| timeline::wait_until(behind - timeline::queue_limit_ns()));
        }
        Ok(Self { context, stream_id })
    }

    fn of(&self, work: Work) -> Work {
        let Context { id, device } = self.context;
        let channel_id = 1 + self.stream_id % 8;
        Work { device_id: device, context_id: id, stream_id: self.stream_id, channel_id, ..work }
    }

    /// Launches a kernel, right behind the work before it if it `follows`, and tells of it: when it starts and ends.
    fn put(&self, state: &mut Guard, node: &Node, work: Work, follows: bool) -> Result<(u64, u64), CuResult> {
        let [.., block_x, block_y, block_z] = node.shape;
        let threads = u64::from(block_x) * u64::from(block_y) * u64::from(block_z);
        if node.shape.contains(&0) || threads > 1024 {
            return Err(INVALID_VALUE);
        }
        let function = *state.functions.get(node.function).ok_or(INVALID_HANDLE)?;
        // Under lazy loading this is where a module loads: inside a launch, with the driver lock held.
        api_module::load_of(state, node.function).ok_or(INVALID_HANDLE)?;
        state.launches += 1;
        let launches = state.launches;
        let duration_ns = timeline::jittered_ns(function.duration_ns, launches);
        let stream = state.stream_mut(self.stream_id).ok_or(INVALID_HANDLE)?;
        let (start_ns, end_ns) = if follows { stream.follow(duration_ns) } else { stream.put(duration_ns) };
        hooks::work(&self.of(Work {
            kind: WORK_KERNEL,
            start_ns,
            end_ns,
            shape: node.shape.map(|n| n as i32),
            grid_id: launches as i64,
            name: function.name.as_ptr(),
            registers: function.registers,
            static_shared_bytes: function.static_shared_bytes,
            dynamic_shared_bytes: node.shared_bytes,
            local_bytes_per_thread: function.local_bytes,
            ..work
        }));
        Ok((start_ns, end_ns))
    }
}
