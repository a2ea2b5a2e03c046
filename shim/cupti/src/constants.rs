//! The numbers of CUPTI's interface that the shim uses, under NVIDIA's names less the `CUPTI_` in front.
//!
//! They are the same in every CUPTI from 11.8 to 13.5, save that older ones lack those that say so;
//! `.ci/layouts` compares each with NVIDIA's own headers.

mod launches;

pub use launches::*;

/// Copies between host and device, and within a device.
pub const ACTIVITY_KIND_MEMCPY: u32 = 1;
pub const ACTIVITY_KIND_MEMSET: u32 = 2;
/// Kernels, serialised by CUPTI: never enabled, but its records have the layout of `CONCURRENT_KERNEL`.
pub const ACTIVITY_KIND_KERNEL: u32 = 3;
pub const ACTIVITY_KIND_DRIVER: u32 = 4;
pub const ACTIVITY_KIND_RUNTIME: u32 = 5;
/// Kernels, left to run side by side as the application meant them to.
pub const ACTIVITY_KIND_CONCURRENT_KERNEL: u32 = 10;
/// What an application marks with NVTX.
pub const ACTIVITY_KIND_MARKER: u32 = 12;
/// Colours and payloads of markers.
pub const ACTIVITY_KIND_MARKER_DATA: u32 = 13;
pub const ACTIVITY_KIND_OVERHEAD: u32 = 17;
/// Copies between devices, whose records have a layout of their own.
pub const ACTIVITY_KIND_MEMCPY2: u32 = 22;
pub const ACTIVITY_KIND_SYNCHRONIZATION: u32 = 38;
pub const ACTIVITY_KIND_EXTERNAL_CORRELATION: u32 = 39;
/// Allocations and frees, one record each.
pub const ACTIVITY_KIND_MEMORY2: u32 = 49;
pub const ACTIVITY_KIND_MEMORY_POOL: u32 = 50;
/// Graphs as a whole. The records of their nodes stop once this is on, and, the header of 13.5 says, do not come back
/// when it is off again.
pub const ACTIVITY_KIND_GRAPH_TRACE: u32 = 51;

/// Lets `cuptiActivityFlushAll` deliver buffers that hold unfinished records.
pub const ACTIVITY_FLAG_FLUSH_FORCED: u32 = 1;
/// In `MemcpyRecord::flags`: the copy did not wait.
pub const ACTIVITY_FLAG_MEMCPY_ASYNC: u8 = 1;
/// In `MemsetRecord::flags`: the set did not wait.
pub const ACTIVITY_FLAG_MEMSET_ASYNC: u16 = 1;

// In `MarkerRecord::flags`.
/// A mark without a length.
pub const ACTIVITY_FLAG_MARKER_INSTANTANEOUS: u32 = 1;
/// A range begins.
pub const ACTIVITY_FLAG_MARKER_START: u32 = 1 << 1;
/// A range ends.
pub const ACTIVITY_FLAG_MARKER_END: u32 = 1 << 2;
/// The application wants a synchronization object of its own.
pub const ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE: u32 = 1 << 3;
/// It got it.
pub const ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE_SUCCESS: u32 = 1 << 4;
/// It did not get it.
pub const ACTIVITY_FLAG_MARKER_SYNC_ACQUIRE_FAILED: u32 = 1 << 5;
/// It gave it back.
pub const ACTIVITY_FLAG_MARKER_SYNC_RELEASE: u32 = 1 << 6;

// In `object_kind` of a marker or an overhead.
pub const ACTIVITY_OBJECT_UNKNOWN: u32 = 0;
pub const ACTIVITY_OBJECT_PROCESS: u32 = 1;
pub const ACTIVITY_OBJECT_THREAD: u32 = 2;
pub const ACTIVITY_OBJECT_DEVICE: u32 = 3;
pub const ACTIVITY_OBJECT_CONTEXT: u32 = 4;
pub const ACTIVITY_OBJECT_STREAM: u32 = 5;

// In `SynchronizationRecord::synchronization_type`.
pub const ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN: u32 = 0;
pub const ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE: u32 = 1;
/// A stream waits, not the calling thread.
pub const ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT: u32 = 2;
pub const ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE: u32 = 3;
pub const ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE: u32 = 4;

// In `MemoryRecord::operation_type`.
pub const ACTIVITY_MEMORY_OPERATION_TYPE_INVALID: u32 = 0;
pub const ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION: u32 = 1;
pub const ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE: u32 = 2;

// In `memory_kind` of an allocation or a set, and in `src_kind` and `dst_kind` of a copy.
pub const ACTIVITY_MEMORY_KIND_UNKNOWN: u32 = 0;
pub const ACTIVITY_MEMORY_KIND_PAGEABLE: u32 = 1;
pub const ACTIVITY_MEMORY_KIND_PINNED: u32 = 2;
pub const ACTIVITY_MEMORY_KIND_DEVICE: u32 = 3;
pub const ACTIVITY_MEMORY_KIND_ARRAY: u32 = 4;
pub const ACTIVITY_MEMORY_KIND_MANAGED: u32 = 5;
pub const ACTIVITY_MEMORY_KIND_DEVICE_STATIC: u32 = 6;
pub const ACTIVITY_MEMORY_KIND_MANAGED_STATIC: u32 = 7;

// In `pool_type` of an allocation or a pool's record.
/// An allocation from no pool.
pub const ACTIVITY_MEMORY_POOL_TYPE_INVALID: u32 = 0;
pub const ACTIVITY_MEMORY_POOL_TYPE_LOCAL: u32 = 1;
/// From another process.
pub const ACTIVITY_MEMORY_POOL_TYPE_IMPORTED: u32 = 2;

// In `MemoryPoolRecord::operation_type`.
pub const ACTIVITY_MEMORY_POOL_OPERATION_TYPE_INVALID: u32 = 0;
pub const ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED: u32 = 1;
pub const ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED: u32 = 2;
pub const ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED: u32 = 3;

// In `OverheadRecord::overhead_kind`.
pub const ACTIVITY_OVERHEAD_UNKNOWN: u32 = 0;
/// The driver compiles.
pub const ACTIVITY_OVERHEAD_DRIVER_COMPILER: u32 = 1;
/// CUPTI delivers a buffer.
pub const ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH: u32 = 1 << 16;
pub const ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION: u32 = 2 << 16;
/// CUPTI makes or destroys what it needs.
pub const ACTIVITY_OVERHEAD_CUPTI_RESOURCE: u32 = 3 << 16;
/// From 12.3 on.
pub const ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING: u32 = 4 << 16;
/// From 12.3 on.
pub const ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING: u32 = 5 << 16;
/// A launch waited for room. Has details. From 12.4 on.
pub const ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL: u32 = 6 << 16;
/// CUPTI asks for a buffer. From 12.6 on.
pub const ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST: u32 = 7 << 16;
/// CUPTI prepares to watch managed memory. From 12.8 on.
pub const ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT: u32 = 8 << 16;

pub const ACTIVITY_ATTR_DEVICE_BUFFER_SIZE: u32 = 0;
pub const ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT: u32 = 2;
pub const ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER: u32 = 5;
pub const ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE: u32 = 6;

pub const CB_DOMAIN_DRIVER_API: u32 = 1;
pub const CB_DOMAIN_RUNTIME_API: u32 = 2;
pub const CB_DOMAIN_RESOURCE: u32 = 3;

/// In `CallbackData::callback_site`.
pub const API_ENTER: u32 = 0;
/// In `CallbackData::callback_site`.
pub const API_EXIT: u32 = 1;

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
/// In a synchronization record: the field does not apply.
pub const SYNCHRONIZATION_INVALID_VALUE: u32 = u32::MAX;

/// The most bytes of a name for `cuptiSubscribe_v2`, the final NUL not counted. From 13.0 on.
pub const SUBSCRIBER_NAME_MAX_LEN: usize = 53;
/// The fewest bytes for the other's name from `cuptiSubscribe_v2` to come whole, its NUL counted. From 13.0 on.
pub const OLD_SUBSCRIBER_NAME_MIN_LEN: usize = 64;

/// `INVALID_CONTEXT_ID` and `INVALID_STREAM_ID`, which 13.2 changed: an allocation has no context, or is not in a
/// stream's order.
pub const fn invalid_id(cupti_version: u32) -> u32 {
    match cupti_version {
        ..130_200 => u32::MAX,
        130_200.. => 0,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_context_and_no_stream_became_0_with_13_2() {
        assert_eq!([18, 130_101, 130_200, u32::MAX].map(invalid_id), [u32::MAX, u32::MAX, 0, 0]);
    }

    #[test]
    fn each_launch_is_listed_once() {
        let mut launches = DRIVER_LAUNCHES.to_vec();
        launches.sort_unstable();
        launches.dedup();
        assert_eq!(launches.len(), DRIVER_LAUNCHES.len());
        assert!(
            launches.contains(&DRIVER_TRACE_CBID_cuLaunchKernel) && launches.contains(&DRIVER_TRACE_CBID_cuGraphLaunch)
        );
    }
}
