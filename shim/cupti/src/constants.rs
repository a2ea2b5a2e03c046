//! The numbers of CUPTI's interface that the shim uses, under NVIDIA's names less the `CUPTI_` in front.
//!
//! They are the same in every CUPTI from 11.8 to 13.5; `.ci/layouts` compares each with NVIDIA's own headers.

/// Copies between host and device, and within a device.
pub const ACTIVITY_KIND_MEMCPY: u32 = 1;
pub const ACTIVITY_KIND_MEMSET: u32 = 2;
/// Kernels, serialised by CUPTI: never enabled, but its records have the layout of `CONCURRENT_KERNEL`.
pub const ACTIVITY_KIND_KERNEL: u32 = 3;
pub const ACTIVITY_KIND_DRIVER: u32 = 4;
pub const ACTIVITY_KIND_RUNTIME: u32 = 5;
/// Kernels, left to run side by side as the application meant them to.
pub const ACTIVITY_KIND_CONCURRENT_KERNEL: u32 = 10;
/// Copies between devices, whose records have a layout of their own.
pub const ACTIVITY_KIND_MEMCPY2: u32 = 22;

/// Lets `cuptiActivityFlushAll` deliver buffers that hold unfinished records.
pub const ACTIVITY_FLAG_FLUSH_FORCED: u32 = 1;
/// In `MemcpyRecord::flags`: the copy did not wait.
pub const ACTIVITY_FLAG_MEMCPY_ASYNC: u8 = 1;
/// In `MemsetRecord::flags`: the set did not wait.
pub const ACTIVITY_FLAG_MEMSET_ASYNC: u16 = 1;

pub const ACTIVITY_ATTR_DEVICE_BUFFER_SIZE: u32 = 0;
pub const ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT: u32 = 2;
pub const ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER: u32 = 5;
pub const ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE: u32 = 6;

pub const CB_DOMAIN_DRIVER_API: u32 = 1;
pub const CB_DOMAIN_RUNTIME_API: u32 = 2;
pub const CB_DOMAIN_RESOURCE: u32 = 3;

pub const CBID_RESOURCE_CONTEXT_CREATED: u32 = 1;
pub const CBID_RESOURCE_CONTEXT_DESTROY_STARTING: u32 = 2;
pub const CBID_RESOURCE_STREAM_CREATED: u32 = 3;
pub const CBID_RESOURCE_STREAM_DESTROY_STARTING: u32 = 4;
pub const CBID_RESOURCE_MODULE_LOADED: u32 = 6;
pub const CBID_RESOURCE_MODULE_UNLOAD_STARTING: u32 = 7;

/// In a record's start or end: CUPTI has no time for it, or it has not finished.
pub const TIMESTAMP_UNKNOWN: u64 = 0;
/// In a record's channel: the work was launched from the device.
pub const INVALID_CHANNEL_ID: u32 = u32::MAX;

/// What a CUPTI function returns. Numbers that are not named here are passed on as numbers.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct CuptiResult(pub u32);

impl CuptiResult {
    pub const SUCCESS: Self = Self(0);
    pub const INVALID_PARAMETER: Self = Self(1);
    /// From `cuptiActivityGetNextRecord`: the buffer holds no further record.
    pub const MAX_LIMIT_REACHED: Self = Self(12);
    pub const NOT_COMPATIBLE: Self = Self(14);
    pub const NOT_INITIALIZED: Self = Self(15);
    /// From `cuptiActivityGetNextRecord`: the next record is incomplete or no record; the walk ends there.
    pub const INVALID_KIND: Self = Self(21);
    pub const NOT_SUPPORTED: Self = Self(27);
    pub const INSUFFICIENT_PRIVILEGES: Self = Self(35);
    pub const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: Self = Self(39);
    /// From every function of CUPTI 13.3 and later where no driver library is found.
    pub const UNKNOWN: Self = Self(999);

    /// NVIDIA's name for the code, without a call into CUPTI: a callback may ask.
    pub fn name(self) -> Option<&'static str> {
        NAMED_RESULTS.iter().find(|(result, _)| *result == self).map(|(_, name)| *name)
    }

    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }
}

/// The codes that a person may be told about.
pub const NAMED_RESULTS: &[(CuptiResult, &str)] = &[
    (CuptiResult::SUCCESS, "CUPTI_SUCCESS"),
    (CuptiResult::INVALID_PARAMETER, "CUPTI_ERROR_INVALID_PARAMETER"),
    (CuptiResult(2), "CUPTI_ERROR_INVALID_DEVICE"),
    (CuptiResult(3), "CUPTI_ERROR_INVALID_CONTEXT"),
    (CuptiResult(7), "CUPTI_ERROR_INVALID_OPERATION"),
    (CuptiResult(8), "CUPTI_ERROR_OUT_OF_MEMORY"),
    (CuptiResult(9), "CUPTI_ERROR_HARDWARE"),
    (CuptiResult(10), "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT"),
    (CuptiResult(11), "CUPTI_ERROR_API_NOT_IMPLEMENTED"),
    (CuptiResult::MAX_LIMIT_REACHED, "CUPTI_ERROR_MAX_LIMIT_REACHED"),
    (CuptiResult(13), "CUPTI_ERROR_NOT_READY"),
    (CuptiResult::NOT_COMPATIBLE, "CUPTI_ERROR_NOT_COMPATIBLE"),
    (CuptiResult::NOT_INITIALIZED, "CUPTI_ERROR_NOT_INITIALIZED"),
    (CuptiResult::INVALID_KIND, "CUPTI_ERROR_INVALID_KIND"),
    (CuptiResult(23), "CUPTI_ERROR_DISABLED"),
    (CuptiResult(24), "CUPTI_ERROR_INVALID_MODULE"),
    (CuptiResult(26), "CUPTI_ERROR_HARDWARE_BUSY"),
    (CuptiResult::NOT_SUPPORTED, "CUPTI_ERROR_NOT_SUPPORTED"),
    (CuptiResult(33), "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED"),
    (CuptiResult::INSUFFICIENT_PRIVILEGES, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"),
    (CuptiResult(36), "CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED"),
    (CuptiResult(38), "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED"),
    (CuptiResult::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"),
    (CuptiResult(40), "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES"),
    (CuptiResult(41), "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED"),
    (CuptiResult(42), "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED"),
    (CuptiResult(43), "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED"),
    (CuptiResult(44), "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED"),
    (CuptiResult(45), "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED"),
    (CuptiResult::UNKNOWN, "CUPTI_ERROR_UNKNOWN"),
];
