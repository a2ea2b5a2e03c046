//! From a piece of work on the GPU to its activity record.

use crate::draft::Draft;
use crate::hook_abi::Work;
use crate::layout::{
    GraphTraceRecord, KIND_GRAPH_TRACE, KIND_MEMCPY, KIND_MEMCPY2, KIND_MEMSET, KernelRecord, MemcpyRecord,
    MemsetRecord, PeerCopyRecord,
};
use crate::sizes::Sizes;

const ASYNC: u8 = 1;
const MEMORY_DEVICE: u16 = 3;
const CHANNEL_COMPUTE: u32 = 1;
const CHANNEL_ASYNC_MEMCPY: u32 = 2;
const CACHE_CONFIG_UNKNOWN: u32 = 0;

/// The record of `work`, of this kind.
pub fn of_work(kind: u32, work: &Work, sizes: &Sizes) -> Draft {
    let finished_ns = work.end_ns;
    match kind {
        KIND_MEMCPY => Draft::new(kind, &memcpy(work), sizes.memcpy, finished_ns),
        KIND_MEMSET => Draft::new(kind, &memset(work), sizes.memset, finished_ns),
        KIND_MEMCPY2 => Draft::new(kind, &peer_copy(work), size_of::<PeerCopyRecord>(), finished_ns),
        KIND_GRAPH_TRACE => Draft::new(kind, &graph(work), sizes.graph_trace, finished_ns),
        _ => Draft::new(kind, &kernel(kind, work), sizes.kernel, finished_ns),
    }
}

fn kernel(kind: u32, work: &Work) -> KernelRecord {
    KernelRecord {
        kind,
        cache_config: 0,
        shared_memory_config: 0,
        registers_per_thread: work.registers as u16,
        partitioned_cache_requested: CACHE_CONFIG_UNKNOWN,
        partitioned_cache_executed: CACHE_CONFIG_UNKNOWN,
        start: work.start_ns,
        end: work.end_ns,
        completed: work.end_ns,
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
        graph_node_id: work.graph_node_id,
        shmem_limit_config: 0,
        graph_id: work.graph_id,
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
        source_graph_id: work.source_graph_id,
        padding6: 0,
        source_graph_node_id: work.source_graph_node_id,
    }
}

fn memcpy(work: &Work) -> MemcpyRecord {
    MemcpyRecord {
        kind: KIND_MEMCPY,
        copy_kind: work.copy[0],
        src_kind: work.copy[1],
        dst_kind: work.copy[2],
        flags: ASYNC,
        bytes: work.bytes,
        start: work.start_ns,
        end: work.end_ns,
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

fn memset(work: &Work) -> MemsetRecord {
    MemsetRecord {
        kind: KIND_MEMSET,
        value: work.value,
        bytes: work.bytes,
        start: work.start_ns,
        end: work.end_ns,
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

fn peer_copy(work: &Work) -> PeerCopyRecord {
    let [src_device_id, src_context_id, dst_device_id, dst_context_id] = work.peers;
    PeerCopyRecord {
        kind: KIND_MEMCPY2,
        copy_kind: work.copy[0],
        src_kind: work.copy[1],
        dst_kind: work.copy[2],
        flags: ASYNC,
        bytes: work.bytes,
        start: work.start_ns,
        end: work.end_ns,
        device_id: work.device_id,
        context_id: work.context_id,
        stream_id: work.stream_id,
        src_device_id,
        src_context_id,
        dst_device_id,
        dst_context_id,
        correlation_id: work.correlation_id,
        reserved0: 0,
        graph_node_id: 0,
        graph_id: 0,
        channel_id: work.channel_id,
        channel_type: CHANNEL_ASYNC_MEMCPY,
        pad: 0,
    }
}

fn graph(work: &Work) -> GraphTraceRecord {
    GraphTraceRecord {
        kind: KIND_GRAPH_TRACE,
        correlation_id: work.correlation_id,
        start: work.start_ns,
        end: work.end_ns,
        device_id: work.device_id,
        graph_id: work.graph_id,
        context_id: work.context_id,
        stream_id: work.stream_id,
        reserved: 0,
        end_device_id: work.device_id,
        end_context_id: work.context_id,
    }
}
