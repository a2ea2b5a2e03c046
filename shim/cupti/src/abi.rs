//! The C side of CUPTI: its opaque handles, the structs that its callbacks hand over, and the types of its functions.
//!
//! The functions and structs here are the same in CUPTI 11.8 to 13.5. Linux only: `CUPTIAPI` is the C convention there.
//! `.ci/layouts` compares the sizes and offsets with NVIDIA's headers.

use std::ffi::{c_char, c_void};

use super::constants::CuptiResult;

/// `CUcontext`, never followed.
pub type CuContext = *mut c_void;
/// `CUstream`, never followed.
pub type CuStream = *mut c_void;
/// `CUpti_SubscriberHandle`, never followed.
pub type SubscriberHandle = *mut c_void;

/// `CUpti_ResourceData`: what a callback of the RESOURCE domain gets. Valid only inside the callback.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ResourceData {
    pub context: CuContext,
    /// The only member of a union: set for the stream callbacks.
    pub stream: CuStream,
    /// For the module callbacks, a [`ModuleResourceData`].
    pub resource_descriptor: *mut c_void,
}

/// `CUpti_ModuleResourceData`. Valid only inside the callback, and so are the bytes that `cubin` points to.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ModuleResourceData {
    pub module_id: u32,
    pub cubin_size_bytes: usize,
    pub cubin: *const c_char,
}

/// `CUpti_GetCubinCrcParams`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GetCubinCrcParams {
    /// Of this struct: CUPTI tells by it which fields the caller knows. [`GetCubinCrcParams::SIZE_BYTES`].
    pub size_bytes: usize,
    pub cubin_size_bytes: usize,
    pub cubin: *const c_void,
    /// Written by CUPTI.
    pub cubin_crc: u64,
}

impl GetCubinCrcParams {
    pub const SIZE_BYTES: usize = size_of::<Self>();
}

/// `cbdata` is a [`ResourceData`] where `domain` is RESOURCE.
pub type CallbackFn = unsafe extern "C" fn(userdata: *mut c_void, domain: u32, callback_id: u32, cbdata: *const c_void);

/// CUPTI wants a buffer. A `max_records` of 0 lets it fill the buffer; CUPTI before 12.9 crashes on a null buffer.
pub type BufferRequestedFn =
    unsafe extern "C" fn(buffer: *mut *mut u8, size_bytes: *mut usize, max_records: *mut usize);

/// CUPTI gives a buffer back, of which the first `valid_size_bytes` hold records.
/// Buffers are global since CUDA 6.0: `context` is null and `stream_id` 0, each record names its own.
pub type BufferCompletedFn = unsafe extern "C" fn(
    context: CuContext,
    stream_id: u32,
    buffer: *mut u8,
    size_bytes: usize,
    valid_size_bytes: usize,
);

/// Must return nanoseconds; CUPTI calls it on the application's threads.
pub type TimestampFn = unsafe extern "C" fn() -> u64;

/// `cuptiGetVersion`. The result comes first: on failure the version stays as it was.
pub type GetVersion = unsafe extern "C" fn(version: *mut u32) -> CuptiResult;
/// `cuptiSubscribe`.
pub type Subscribe =
    unsafe extern "C" fn(subscriber: *mut SubscriberHandle, callback: CallbackFn, userdata: *mut c_void) -> CuptiResult;
/// `cuptiUnsubscribe`.
pub type Unsubscribe = unsafe extern "C" fn(subscriber: SubscriberHandle) -> CuptiResult;
/// `cuptiFinalize`.
pub type Finalize = unsafe extern "C" fn() -> CuptiResult;
/// `cuptiEnableCallback`: one callback id on (1) or off (0).
pub type EnableCallback =
    unsafe extern "C" fn(enable: u32, subscriber: SubscriberHandle, domain: u32, callback_id: u32) -> CuptiResult;
/// `cuptiActivityRegisterCallbacks`.
pub type ActivityRegisterCallbacks =
    unsafe extern "C" fn(requested: BufferRequestedFn, completed: BufferCompletedFn) -> CuptiResult;
/// `cuptiActivityEnable`.
pub type ActivityEnable = unsafe extern "C" fn(kind: u32) -> CuptiResult;
/// `cuptiActivityDisable`.
pub type ActivityDisable = unsafe extern "C" fn(kind: u32) -> CuptiResult;
/// `cuptiActivityFlushAll`.
pub type ActivityFlushAll = unsafe extern "C" fn(flag: u32) -> CuptiResult;
/// `cuptiActivityGetNextRecord`: `record` is null at first, then the record before; it comes back as the next one.
pub type ActivityGetNextRecord =
    unsafe extern "C" fn(buffer: *mut u8, valid_size_bytes: usize, record: *mut *mut u8) -> CuptiResult;
/// `cuptiActivityGetNumDroppedRecords`.
pub type ActivityGetNumDroppedRecords =
    unsafe extern "C" fn(context: CuContext, stream_id: u32, dropped: *mut usize) -> CuptiResult;
/// `cuptiActivitySetAttribute`.
pub type ActivitySetAttribute =
    unsafe extern "C" fn(attribute: u32, value_size_bytes: *mut usize, value: *mut c_void) -> CuptiResult;
/// `cuptiActivityRegisterTimestampCallback`.
pub type ActivityRegisterTimestampCallback = unsafe extern "C" fn(timestamp: TimestampFn) -> CuptiResult;
/// `cuptiGetTimestamp`, in nanoseconds.
pub type GetTimestamp = unsafe extern "C" fn(timestamp_ns: *mut u64) -> CuptiResult;
/// `cuptiGetResultString`: a string that CUPTI owns and never frees.
pub type GetResultString = unsafe extern "C" fn(result: CuptiResult, string: *mut *const c_char) -> CuptiResult;
/// `cuptiGetCubinCrc`.
pub type GetCubinCrc = unsafe extern "C" fn(params: *mut GetCubinCrcParams) -> CuptiResult;
