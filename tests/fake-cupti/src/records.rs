//! From a piece of work to the bytes of its activity record.

use crate::hook_abi::Work;
use crate::layout::{KIND_MEMCPY, KIND_MEMSET, KernelRecord, MemcpyRecord, MemsetRecord, Sizes, time_offsets};

const ASYNC: u8 = 1;
const MEMORY_DEVICE: u16 = 3;
const CHANNEL_COMPUTE: u32 = 1;
const CHANNEL_ASYNC_MEMCPY: u32 = 2;
const CACHE_CONFIG_UNKNOWN: u32 = 0;

/// Times of a record, shifted to the client's clock, or both 0.
#[derive(Clone, Copy)]
pub struct Times {
    pub start: u64,
    pub end: u64,
}

/// Writes the record of `work`, as long as `sizes` says, at `to`.
///
/// # Safety
/// `to` may be written for the record's size and is aligned to 8.
pub unsafe fn write(kind: u32, work: &Work, times: Times, sizes: &Sizes, to: *mut u8) {
    match kind {
        // SAFETY: `sizes.memcpy` is at most the structure's size (asserted in `layout`), and by contract `to` has room.
        KIND_MEMCPY => unsafe { put(&memcpy(work, times), sizes.memcpy, to) },
        // SAFETY: as above.
        KIND_MEMSET => unsafe { put(&memset(work, times), sizes.memset, to) },
        // SAFETY: as above.
        _ => unsafe { put(&kernel(kind, work, times), sizes.kernel, to) },
    }
}

/// The kind and the end of the record at `at`.
///
/// # Safety
/// A record of a kind that [`write()`] wrote lies there.
pub unsafe fn kind_and_end(at: *const u8) -> (u32, u64) {
    // SAFETY: every record begins with its kind and holds its end at the kind's offset.
    unsafe {
        let kind = at.cast::<u32>().read();
        (kind, at.add(time_offsets(kind).1).cast::<u64>().read())
    }
}

/// Makes the record's times zero.
///
/// # Safety
/// As [`kind_and_end`], and nobody else has the record.
pub unsafe fn clear_times(kind: u32, at: *mut u8) {
    let (start, end) = time_offsets(kind);
    // SAFETY: both offsets lie in a record of this kind, and are aligned to 8 like the record.
    unsafe {
        at.add(start).cast::<u64>().write(0);
        at.add(end).cast::<u64>().write(0);
    }
    if !matches!(kind, KIND_MEMCPY | KIND_MEMSET) {
        // SAFETY: kernels have `completed` in every version.
        unsafe { at.add(std::mem::offset_of!(KernelRecord, completed)).cast::<u64>().write(0) };
    }
}

/// # Safety
/// `size` is at most `T`'s and `to` may be written for it.
unsafe fn put<T>(record: &T, size: usize, to: *mut u8) {
    // SAFETY: by contract; the record is a local, so the two do not overlap.
    unsafe { (&raw const *record).cast::<u8>().copy_to_nonoverlapping(to, size) };
}

fn kernel(kind: u32, work: &Work, times: Times) -> KernelRecord {
    KernelRecord {
        kind,
        cache_config: 0,
        shared_memory_config: 0,
        registers_per_thread: work.registers as u16,
        partitioned_cache_requested: CACHE_CONFIG_UNKNOWN,
        partitioned_cache_executed: CACHE_CONFIG_UNKNOWN,
        start: times.start,
        end: times.end,
        completed: times.end,
        device_id: work.device_id,
        context_id: work.context_id,
        stream_id: work.stream_id,
        shape: work.shape,
        static_shared_memory: work.static_shared_bytes as i32,
        dynamic_shared_memory: work.dynamic_shared_bytes as i32,
        local_memory_per_thread: work.local_bytes_per_thread,
        local_memory_total: 0,
        correlation_id: work.correlation_id,
        grid_id: work.grid_id,
        name: work.name,
        reserved0: 0,
        queued: 0,
        submitted: 0,
        launch_type: 0,
        carveout_is_requested: 0,
        carveout_requested: 0,
        padding: 0,
        shared_memory_executed: (work.static_shared_bytes + work.dynamic_shared_bytes).next_multiple_of(1024),
        graph_node_id: 0,
        shmem_limit_config: 0,
        graph_id: 0,
        access_policy_window: 0,
        channel_id: work.channel_id,
        channel_type: CHANNEL_COMPUTE,
        cluster: [0; 3],
        cluster_scheduling_policy: 0,
        local_memory_total_v2: u64::from(work.local_bytes_per_thread) * 270_336,
        max_potential_cluster_size: 0,
        max_active_clusters: 0,
        is_device_launched: 0,
        padding3: [0; 7],
        priority: 0,
        padding4: 0,
        execution_model: 0,
        padding5: 0,
        source_graph_id: 0,
        padding6: 0,
        source_graph_node_id: 0,
    }
}

fn memcpy(work: &Work, times: Times) -> MemcpyRecord {
    MemcpyRecord {
        kind: KIND_MEMCPY,
        copy_kind: work.copy[0],
        src_kind: work.copy[1],
        dst_kind: work.copy[2],
        flags: ASYNC,
        bytes: work.bytes,
        start: times.start,
        end: times.end,
        device_id: work.device_id,
        context_id: work.context_id,
        stream_id: work.stream_id,
        correlation_id: work.correlation_id,
        runtime_correlation_id: 0,
        pad: 0,
        reserved0: 0,
        graph_node_id: 0,
        graph_id: 0,
        channel_id: work.channel_id,
        channel_type: CHANNEL_ASYNC_MEMCPY,
        is_device_launched: 0,
        pad2: [0; 3],
        copy_count: 1,
        source_graph_id: 0,
        pad3: 0,
        source_graph_node_id: 0,
    }
}

fn memset(work: &Work, times: Times) -> MemsetRecord {
    MemsetRecord {
        kind: KIND_MEMSET,
        value: work.value,
        bytes: work.bytes,
        start: times.start,
        end: times.end,
        device_id: work.device_id,
        context_id: work.context_id,
        stream_id: work.stream_id,
        correlation_id: work.correlation_id,
        flags: u16::from(ASYNC),
        memory_kind: MEMORY_DEVICE,
        pad: 0,
        reserved0: 0,
        graph_node_id: 0,
        graph_id: 0,
        channel_id: work.channel_id,
        channel_type: CHANNEL_COMPUTE,
        is_device_launched: 0,
        pad2: [0; 3],
        source_graph_id: 0,
        pad3: 0,
        source_graph_node_id: 0,
    }
}
