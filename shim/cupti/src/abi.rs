//! The C side of CUPTI: its opaque handles, the structs that its callbacks hand over, and the types of its functions.
//!
//! The functions and structs here are the same in CUPTI 11.8 to 13.5, save that older ones lack those that say so, and
//! that [`SubscriberParams`] grew. Linux only: `CUPTIAPI` is the C convention there.
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

/// `CUpti_CallbackData`: what a callback of the DRIVER_API and RUNTIME_API domains gets. Valid only inside the callback.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CallbackData {
    /// `API_ENTER` or `API_EXIT`.
    pub callback_site: u32,
    /// A constant of CUPTI's, valid for good.
    pub function_name: *const c_char,
    /// The arguments, as a struct of NVIDIA's that differs from function to function.
    pub function_params: *const c_void,
    /// To a `CUresult` or a `cudaError_t`. Valid at the exit.
    pub function_return_value: *mut c_void,
    /// The kernel's name, where the function launches one.
    pub symbol_name: *const c_char,
    /// The calling thread's current context, or null. The runtime may make one between entry and exit.
    pub context: CuContext,
    pub context_uid: u32,
    /// 64 bits for the entry to leave something for the exit of the same call.
    pub correlation_data: *mut u64,
    /// The one that the records of the call, and of the work it starts, carry.
    pub correlation_id: u32,
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

/// `CUpti_SubscriberParams`. From 13.0 on; the last two fields from 13.2 on.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SubscriberParams {
    /// What [`SubscriberParams::size_bytes`] gives: CUPTI tells by it which fields the caller knows.
    pub size_bytes: usize,
    /// Ours: at most `SUBSCRIBER_NAME_MAX_LEN` bytes and a NUL, or null. CUPTI copies it, and puts "CUPTI for " before.
    pub subscriber_name: *const c_char,
    /// Where CUPTI writes the name of whoever is subscribed already (another client, or a tool of NVIDIA's) as it
    /// returns `MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`; null to ask for none. Where several may be subscribed, the first's.
    pub old_subscriber_name: *mut c_char,
    /// Of the memory behind `old_subscriber_name`; a name is cut where that is less than `OLD_SUBSCRIBER_NAME_MIN_LEN`.
    pub old_subscriber_size_bytes: usize,
    /// 1 to be one of several, 0 to be the only one. What the first subscriber chose binds those that follow: a request
    /// that cannot be met returns `MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED`. From 13.2 on.
    pub allow_multiple_subscribers: u8,
    pub padding: [u8; 7],
}

impl SubscriberParams {
    /// What a CUPTI of this version calls the size of the struct: the fields that it knows. `None` where it has neither
    /// the struct nor `cuptiSubscribe_v2`.
    pub const fn size_bytes(cupti_version: u32) -> Option<usize> {
        match cupti_version {
            ..130_000 => None,
            130_000..130_200 => Some(std::mem::offset_of!(Self, allow_multiple_subscribers)),
            130_200.. => Some(size_of::<Self>()),
        }
    }
}

/// `cbdata` is a [`ResourceData`] where `domain` is RESOURCE, a [`CallbackData`] where it is DRIVER_API or RUNTIME_API.
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
/// `cuptiSubscribe_v2`: may be told a name, and tells who is there already. `params` may be null. From 13.0 on.
pub type SubscribeV2 = unsafe extern "C" fn(
    subscriber: *mut SubscriberHandle,
    callback: CallbackFn,
    userdata: *mut c_void,
    params: *mut SubscriberParams,
) -> CuptiResult;
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
/// `cuptiActivityEnableDriverApi` and `cuptiActivityEnableRuntimeApi`: the records of one function on (1) or off (0),
/// without the kind `DRIVER` or `RUNTIME`. Enabling the kind afterwards undoes it. From 12.5 on.
pub type ActivityEnableApi = unsafe extern "C" fn(callback_id: u32, enable: u8) -> CuptiResult;
/// `cuptiActivityEnableAllSyncRecords`: off (0) leaves out queries of events and streams that have not finished.
/// They are recorded by default. From 12.8 on.
pub type ActivityEnableAllSyncRecords = unsafe extern "C" fn(enable: u8) -> CuptiResult;
/// `cuptiActivityEnableAllocationSource`: fills `MemoryRecord::source`, at a price. Off by default. From 12.6 on.
pub type ActivityEnableAllocationSource = unsafe extern "C" fn(enable: u8) -> CuptiResult;
/// `cuptiActivityEnableDeviceGraph`: records graphs that are launched from the device. Before CUDA is initialised, and
/// once. From 12.3 on.
pub type ActivityEnableDeviceGraph = unsafe extern "C" fn(enable: u8) -> CuptiResult;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cupti_is_told_of_no_field_of_a_subscriber_that_it_does_not_know() {
        let sizes = [18, 28, 130_001, 130_101, 130_200, 130_500].map(SubscriberParams::size_bytes);
        assert_eq!(sizes, [None, None, Some(32), Some(32), Some(40), Some(40)]);
    }
}
