//! The private interface between the fake driver and a fake CUPTI: plain C structures and functions.
//!
//! Both libraries compile this file, neither links the other: two copies of `cuInit` in a process would be two drivers.
#![allow(dead_code, reason = "each of the two libraries uses its own half")]

use std::ffi::{c_char, c_void};

/// Raised with every change of a structure below; a driver refuses hooks of another number.
pub const HOOK_ABI: u32 = 1;

/// The exported name of [`RegisterHooks`].
pub const REGISTER_SYMBOL: &[u8] = b"fake_cuda_register_hooks\0";

/// Registers `hooks` (which must live as long as the process) and fills `door`; 0 on success.
pub type RegisterHooks = unsafe extern "C" fn(hooks: *const Hooks, door: *mut Door) -> i32;

/// What CUPTI wants to be told. Every function may be called from any thread.
#[repr(C)]
pub struct Hooks {
    pub abi: u32,
    /// A resource event; module events come with the driver lock held.
    pub resource: unsafe extern "C" fn(*const ResourceEvent),
    /// Work was put on a stream; the driver lock is held, times are already known and may lie ahead.
    pub work: unsafe extern "C" fn(*const Work),
    /// Whether a driver API callback id is listened to.
    pub api_wanted: extern "C" fn(cbid: u32) -> bool,
    /// An API call begins or ends; no lock is held.
    pub api: unsafe extern "C" fn(*const ApiCall),
}

/// What the driver lends to CUPTI.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Door {
    pub lock: extern "C" fn(),
    pub unlock: unsafe extern "C" fn(),
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
}

pub const SITE_ENTER: u32 = 0;
pub const SITE_EXIT: u32 = 1;

#[repr(C)]
pub struct ApiCall {
    pub site: u32,
    pub cbid: u32,
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
const TAG_MASK: usize = 0xffff_0000_0000_0000;

/// A context handle carries its id, so that reading the id needs neither memory nor a lock.
pub fn context_handle(id: u32) -> *mut c_void {
    std::ptr::without_provenance_mut(CONTEXT_TAG | (id as usize) << 4)
}

pub fn context_id(handle: *const c_void) -> Option<u32> {
    (handle.addr() & TAG_MASK == CONTEXT_TAG).then_some((handle.addr() >> 4) as u32)
}

pub fn stream_handle(id: u32) -> *mut c_void {
    std::ptr::without_provenance_mut(STREAM_TAG | (id as usize) << 4)
}

/// The id of a stream of `context`; the null handle (and the legacy and per-thread ones) name its default stream.
pub fn stream_id(context: u32, handle: *const c_void) -> Option<u32> {
    match handle.addr() {
        0..=2 => Some(default_stream_id(context)),
        addr => (addr & TAG_MASK == STREAM_TAG).then_some((addr >> 4) as u32),
    }
}

/// The default stream of the first context is 7, as CUPTI shows it.
pub fn default_stream_id(context: u32) -> u32 {
    if context == 1 { 7 } else { FIRST_OTHER_DEFAULT_STREAM + context }
}

/// Created streams are numbered from 13 and stay below this.
pub const FIRST_OTHER_DEFAULT_STREAM: u32 = 1 << 24;
