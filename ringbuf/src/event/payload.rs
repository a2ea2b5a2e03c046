//! What the events hold. Times are nanoseconds of CLOCK_MONOTONIC; 0 where CUPTI has none.
//!
//! Correlation ids are unique for the life of the process: CUPTI's 32 bits in the low half, how often they have wrapped
//! in the high half. 0 where CUPTI gives none.

use super::packed::events;

events! {
    /// A kernel's execution on a device. Source: `CUpti_ActivityKernel*`, kind CONCURRENT_KERNEL.
    KernelEvent {
        start_ns: u64,
        /// 0 where CUPTI delivered the record before the kernel had finished.
        end_ns: u64,
        correlation_id: u64,
        /// 0 where no graph launched it.
        graph_node_id: u64,
        /// Slot of the kernel's mangled name in the definitions area, or [`super::NO_NAME`].
        name_id: u32,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        /// 0 where no graph launched it.
        graph_id: u32,
        grid: [u32; 3],
        block: [u32; 3],
        static_shared_bytes: u32,
        dynamic_shared_bytes: u32,
        local_bytes_per_thread: u32,
        registers_per_thread: u16,
    }

    /// A copy of memory. Source: `CUpti_ActivityMemcpy*`, kind MEMCPY, and `CUpti_ActivityMemcpyPtoP*`, kind MEMCPY2.
    MemcpyEvent {
        start_ns: u64,
        end_ns: u64,
        bytes: u64,
        correlation_id: u64,
        graph_node_id: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        graph_id: u32,
        /// As `device_id`, but for a copy between devices.
        src_device_id: u32,
        dst_device_id: u32,
        /// `CUpti_ActivityMemcpyKind`: 1 host to device, 2 device to host, 8 device to device, 10 peer to peer, ...
        copy_kind: u8,
        /// `CUpti_ActivityMemoryKind` of the source: 1 pageable, 2 pinned, 3 device, 4 array, 5 managed, ...
        src_kind: u8,
        /// `CUpti_ActivityMemoryKind` of the destination.
        dst_kind: u8,
        /// Bit 0: asynchronous.
        flags: u8,
    }

    /// A fill of memory. Source: `CUpti_ActivityMemset*`, kind MEMSET.
    MemsetEvent {
        start_ns: u64,
        end_ns: u64,
        bytes: u64,
        correlation_id: u64,
        graph_node_id: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        graph_id: u32,
        value: u32,
        memory_kind: u8,
        /// Bit 0: asynchronous.
        flags: u8,
    }

    /// The host waited for the device. Source: `CUpti_ActivitySynchronization*`.
    SyncEvent {
        start_ns: u64,
        end_ns: u64,
        correlation_id: u64,
        /// `CUpti_ActivitySynchronizationType`: 1 event, 2 stream waits for event, 3 stream, 4 context.
        sync_kind: u32,
        context_id: u32,
        /// `u32::MAX` where no stream is meant.
        stream_id: u32,
        /// `u32::MAX` where no event is meant.
        cuda_event_id: u32,
    }

    /// A whole graph's execution, instead of its nodes'. Source: `CUpti_ActivityGraphTrace*`.
    GraphEvent {
        start_ns: u64,
        end_ns: u64,
        correlation_id: u64,
        graph_id: u32,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
    }

    /// Memory was allocated or freed. Source: `CUpti_ActivityMemory*`, kind MEMORY2.
    MemoryEvent {
        time_ns: u64,
        correlation_id: u64,
        address: u64,
        bytes: u64,
        /// 0 where no pool is meant, as in the fields that follow.
        pool_address: u64,
        pool_size_bytes: u64,
        pool_used_bytes: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        /// `CUpti_ActivityMemoryOperationType`: 1 allocation, 2 release.
        operation: u8,
        /// `CUpti_ActivityMemoryKind`.
        memory_kind: u8,
        /// Bit 0: asynchronous, in the order of a stream.
        flags: u8,
        /// `CUpti_ActivityMemoryPoolType`: 0 none, 1 of this process, 2 imported.
        pool_kind: u8,
    }

    /// A memory pool was made, trimmed or destroyed. Source: `CUpti_ActivityMemoryPool*`.
    PoolEvent {
        time_ns: u64,
        correlation_id: u64,
        address: u64,
        size_bytes: u64,
        used_bytes: u64,
        release_threshold_bytes: u64,
        /// What a trim was told to keep.
        keep_bytes: u64,
        device_id: u32,
        /// `CUpti_ActivityMemoryPoolOperationType`: 1 made, 2 destroyed, 3 trimmed.
        operation: u8,
        /// `CUpti_ActivityMemoryPoolType`.
        pool_kind: u8,
    }

    /// Time that CUPTI, the driver or the compiler took for itself. Source: `CUpti_ActivityOverhead*`.
    OverheadEvent {
        start_ns: u64,
        end_ns: u64,
        /// `CUpti_ActivityOverheadKind`: 1 driver compiler, 1 << 16 buffer flush, 2 << 16 instrumentation, 3 << 16 resource, ...
        overhead_kind: u32,
        /// The thread whose time it was; 0 where it was none's.
        thread_id: u32,
    }

    /// A call of the runtime's or the driver's API. Source: `CUpti_ActivityAPI`, kinds RUNTIME and DRIVER.
    ApiEvent {
        start_ns: u64,
        end_ns: u64,
        correlation_id: u64,
        /// CUPTI's number of the function, in the runtime's or the driver's numbering.
        callback_id: u32,
        /// CUPTI's number of the thread, which is not the kernel's.
        thread_id: u32,
        /// `cudaError_t` or `CUresult`.
        return_value: u32,
    }

    /// An NVTX mark, or one end of a range. Source: `CUpti_ActivityMarker2`.
    MarkerEvent {
        time_ns: u64,
        /// Ends have the id of their start.
        marker_id: u32,
        /// `CUpti_ActivityFlag`: 1 mark, 2 start of a range, 4 its end.
        flags: u32,
        /// Slot of the text; [`super::NO_NAME`] at an end, and where it found no room.
        name_id: u32,
        /// Slot of the domain's name; [`super::NO_NAME`] for the default domain.
        domain_id: u32,
        /// CUPTI's number of the thread; 0 where it belongs to none.
        thread_id: u32,
    }

    /// A launch was called; what it launched may not have begun. Source: the driver API's callback at its entry.
    LaunchEvent {
        time_ns: u64,
        /// That of the kernel's or graph's record to come.
        correlation_id: u64,
        /// CUPTI's number of the driver's function.
        callback_id: u32,
        /// The kernel's id of the thread; 0 where it could not be told.
        thread_id: u32,
        /// Slot of the kernel's name; [`super::NO_NAME`] for a graph.
        name_id: u32,
        context_id: u32,
    }
}
