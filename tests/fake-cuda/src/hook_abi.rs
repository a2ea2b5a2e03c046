//! The private interface between the fake driver and a fake CUPTI: plain C structures and functions.
//!
//! Both libraries compile this file, neither links the other: two copies of `cuInit` in a process would be two drivers.
#![allow(dead_code, reason = "each of the two libraries uses its own half")]

use std::ffi::{c_char, c_void};

/// Raised with every change of a structure below; a driver refuses hooks of another number.
pub const HOOK_ABI: u32 = 2;

/// The exported name of [`RegisterHooks`].
pub const REGISTER_SYMBOL: &[u8] = b"fake_cuda_register_hooks\0";

/// Registers `hooks` (which must live as long as the process) and fills `door`; 0 on success.
pub type RegisterHooks = unsafe extern "C" fn(hooks: *const Hooks, door: *mut Door) -> i32;

/// What CUPTI wants to be told. Every function may be called from any thread.
#[repr(C)]
pub struct Hooks {
    pub abi: u32,
    /// A resource event; those of modules and contexts come with the driver lock held.
    pub resource: unsafe extern "C" fn(*const ResourceEvent),
    /// Work was put on a stream; the driver lock is held, times are already known and may lie ahead.
    pub work: unsafe extern "C" fn(*const Work),
    /// Something that the CPU did; the driver lock is held.
    pub host: unsafe extern "C" fn(*const HostEvent),
    /// A stream, or with a null stream a whole context, was waited for; the driver lock is held.
    pub synchronized: extern "C" fn(context: *mut c_void, stream: *mut c_void),
    /// Whether somebody wants to know of an API call.
    pub api_wanted: extern "C" fn(domain: u32, cbid: u32) -> bool,
    /// An API call begins or ends; no lock is held, save by a launch that has to load its module.
    pub api: unsafe extern "C" fn(*const ApiCall),
}

/// What the driver lends to CUPTI.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Door {
    pub lock: extern "C" fn(),
    pub unlock: unsafe extern "C" fn(),
    /// Whether the calling thread holds the lock.
    pub holds_lock: extern "C" fn() -> bool,
    /// The calling thread's current context, or null.
    pub current_context: extern "C" fn() -> *mut c_void,
}

/// Callback ids of the resource domain, numbered as in CUPTI.
pub mod resource {
    pub const CONTEXT_CREATED: u32 = 1;
    pub const CONTEXT_DESTROY_STARTING: u32 = 2;
    pub const STREAM_CREATED: u32 = 3;
    pub const STREAM_DESTROY_STARTING: u32 = 4;
    pub const INIT_FINISHED: u32 = 5;
    pub const MODULE_LOADED: u32 = 6;
    pub const MODULE_UNLOAD_STARTING: u32 = 7;
}

#[repr(C)]
pub struct ResourceEvent {
    pub cbid: u32,
    pub context: *mut c_void,
    pub stream: *mut c_void,
    /// Module events only. The bytes are valid only until the hook returns.
    pub module_id: u32,
    pub cubin: *const u8,
    pub cubin_size: usize,
}

pub const WORK_KERNEL: u32 = 0;
pub const WORK_MEMCPY: u32 = 1;
pub const WORK_MEMSET: u32 = 2;
pub const WORK_PEER_COPY: u32 = 3;
/// A whole graph; its nodes are told of one by one as well, and the listener takes one or the other.
pub const WORK_GRAPH: u32 = 4;

/// One piece of work on the GPU, with the times that the simulated GPU gave it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Work {
    pub kind: u32,
    pub correlation_id: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub channel_id: u32,
    /// Kernels: grid x, y, z, then block x, y, z.
    pub shape: [i32; 6],
    pub grid_id: i64,
    /// Kernels: lives as long as the process.
    pub name: *const c_char,
    pub registers: u32,
    pub static_shared_bytes: u32,
    pub dynamic_shared_bytes: u32,
    pub local_bytes_per_thread: u32,
    /// Copies and memsets.
    pub bytes: u64,
    pub value: u32,
    /// `CUpti_ActivityMemcpyKind`, then the memory kinds of source and destination.
    pub copy: [u8; 3],
    /// Peer copies: device and context of the source, then of the destination.
    pub peers: [u32; 4],
    /// Graphs and their nodes: the executable graph, and the graph that it was made of; 0 for other work.
    pub graph_id: u32,
    pub source_graph_id: u32,
    pub graph_node_id: u64,
    pub source_graph_node_id: u64,
}

impl Work {
    /// All zero, and without a name.
    pub const NONE: Self = Self {
        kind: 0,
        correlation_id: 0,
        start_ns: 0,
        end_ns: 0,
        device_id: 0,
        context_id: 0,
        stream_id: 0,
        channel_id: 0,
        shape: [0; 6],
        grid_id: 0,
        name: std::ptr::null(),
        registers: 0,
        static_shared_bytes: 0,
        dynamic_shared_bytes: 0,
        local_bytes_per_thread: 0,
        bytes: 0,
        value: 0,
        copy: [0; 3],
        peers: [0; 4],
        graph_id: 0,
        source_graph_id: 0,
        graph_node_id: 0,
        source_graph_node_id: 0,
    };
}

pub const HOST_SYNCHRONIZATION: u32 = 0;
pub const HOST_MEMORY: u32 = 1;
pub const HOST_POOL: u32 = 2;

/// `CUPTI_SYNCHRONIZATION_INVALID_VALUE`: a field that means nothing here.
pub const NOT_APPLICABLE: u32 = u32::MAX;

/// `CUpti_ActivitySynchronizationType`.
pub mod synchronization {
    pub const EVENT: u32 = 1;
    pub const STREAM_WAIT_EVENT: u32 = 2;
    pub const STREAM: u32 = 3;
    pub const CONTEXT: u32 = 4;
}

/// `CUpti_ActivityMemoryOperationType`.
pub const MEMORY_ALLOCATED: u32 = 1;
pub const MEMORY_RELEASED: u32 = 2;

/// `CUpti_ActivityMemoryPoolOperationType`.
pub const POOL_CREATED: u32 = 1;
pub const POOL_DESTROYED: u32 = 2;
pub const POOL_TRIMMED: u32 = 3;

/// Something that the CPU did in a call: waited, allocated, freed, made or trimmed a pool.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct HostEvent {
    pub kind: u32,
    /// Numbered as in CUPTI, by kind.
    pub operation: u32,
    pub correlation_id: u32,
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub start_ns: u64,
    pub end_ns: u64,
    /// Synchronizations with an event: its id, and the number of its recording.
    pub event_id: u32,
    pub result: u32,
    pub event_sync_id: u64,
    /// Memory: the `CUpti_ActivityMemoryKind`, and whether the call goes through a stream.
    pub memory_kind: u32,
    pub is_async: u32,
    pub address: u64,
    pub bytes: u64,
    /// Address 0 for memory of no pool.
    pub pool: PoolFacts,
    /// Trimming.
    pub min_bytes_to_keep: u64,
}

/// A memory pool, as it is after the event.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolFacts {
    pub address: u64,
    pub release_threshold: u64,
    pub size_bytes: u64,
    pub used_bytes: u64,
}

/// `CUpti_CallbackDomain`.
pub const DOMAIN_DRIVER_API: u32 = 1;
pub const DOMAIN_RUNTIME_API: u32 = 2;

pub const SITE_ENTER: u32 = 0;
pub const SITE_EXIT: u32 = 1;

#[repr(C)]
pub struct ApiCall {
    pub site: u32,
    pub domain: u32,
    pub cbid: u32,
    pub start_ns: u64,
    /// 0 at the begin.
    pub end_ns: u64,
    pub function_name: *const c_char,
    /// The call's arguments as CUPTI lays them out; null for the calls that do not offer them.
    pub params: *const c_void,
    pub return_value: *mut u32,
    pub symbol_name: *const c_char,
    pub context: *mut c_void,
    pub correlation_id: u32,
    /// One word kept from a call's begin to its end.
    pub correlation_data: *mut u64,
}

const CONTEXT_TAG: usize = 0x0c7a_0000_0000_0000;
const STREAM_TAG: usize = 0x57a0_0000_0000_0000;
const GRAPH_TAG: usize = 0x6a90_0000_0000_0000;
const EXEC_TAG: usize = 0x6aec_0000_0000_0000;
const NODE_TAG: usize = 0x60de_0000_0000_0000;
const TAG_MASK: usize = 0xffff_0000_0000_0000;
const DEVICE_SHIFT: u32 = 40;
const GRAPH_OF_NODE_SHIFT: u32 = 24;
const NODE_MASK: usize = 0xf_ffff;

/// Handles carry ids, so that reading an id needs neither memory nor a lock.
fn handle(tag: usize, id: u32) -> *mut c_void {
    std::ptr::without_provenance_mut(tag | (id as usize) << 4)
}

fn id_of(tag: usize, handle: *const c_void) -> Option<u32> {
    (handle.addr() & TAG_MASK == tag).then_some((handle.addr() >> 4) as u32)
}

pub fn context_handle(id: u32, device: u32) -> *mut c_void {
    handle(CONTEXT_TAG, id).map_addr(|addr| addr | (device as usize) << DEVICE_SHIFT)
}

pub fn context_id(handle: *const c_void) -> Option<u32> {
    id_of(CONTEXT_TAG, handle)
}

pub fn context_device(handle: *const c_void) -> Option<u32> {
    context_id(handle).map(|_| (handle.addr() >> DEVICE_SHIFT) as u32 & 0xff)
}

pub fn stream_handle(id: u32) -> *mut c_void {
    handle(STREAM_TAG, id)
}

/// The id of a stream of `context`; the null handle (and the legacy and per-thread ones) name its default stream.
pub fn stream_id(context: u32, handle: *const c_void) -> Option<u32> {
    match handle.addr() {
        0..=2 => Some(default_stream_id(context)),
        _ => id_of(STREAM_TAG, handle),
    }
}

pub fn graph_handle(id: u32) -> *mut c_void {
    handle(GRAPH_TAG, id)
}

pub fn graph_id(handle: *const c_void) -> Option<u32> {
    id_of(GRAPH_TAG, handle)
}

pub fn graph_exec_handle(id: u32) -> *mut c_void {
    handle(EXEC_TAG, id)
}

pub fn graph_exec_id(handle: *const c_void) -> Option<u32> {
    id_of(EXEC_TAG, handle)
}

/// Node `number` (from 0) of a graph.
pub fn node_handle(graph: u32, number: u32) -> *mut c_void {
    handle(NODE_TAG, number).map_addr(|addr| addr | (graph as usize) << GRAPH_OF_NODE_SHIFT)
}

/// A node's 64-bit id: its graph's in the upper half, its number in the lower.
pub fn node_id(handle: *const c_void) -> Option<u64> {
    let addr = handle.addr();
    let graph = (addr & !TAG_MASK) >> GRAPH_OF_NODE_SHIFT;
    (addr & TAG_MASK == NODE_TAG).then_some(graph_node_id(graph as u32, (addr >> 4 & NODE_MASK) as u32))
}

pub fn graph_node_id(graph: u32, number: u32) -> u64 {
    u64::from(graph) << 32 | u64::from(number)
}

/// The default stream of the first context is 7, as CUPTI shows it.
pub fn default_stream_id(context: u32) -> u32 {
    if context == 1 { 7 } else { FIRST_OTHER_DEFAULT_STREAM + context }
}

/// Created streams are numbered from 13 and stay below this.
pub const FIRST_OTHER_DEFAULT_STREAM: u32 = 1 << 24;
