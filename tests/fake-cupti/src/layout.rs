//! The activity records as C lays them out on x86_64, in their longest form (CUPTI 13.5).
//!
//! Each version only appended fields, so an older record is a prefix of these: `Kernel8` ⊂ 9 ⊂ 10 ⊂ 11 ⊂ 12 ⊂ 13,
//! `Memcpy5` ⊂ 6 ⊂ 7, `Memset4` ⊂ 5. [`Sizes`](crate::sizes::Sizes) says how long the prefix is. Offsets and sizes were
//! compared with NVIDIA's headers of 11.8, 12.1, 12.4, 12.6, 12.8, 12.9, 13.0 to 13.5; the asserts below keep them.
//! Work on the GPU is here, what the CPU does in [`crate::layout_host`].

use std::ffi::c_char;
use std::mem::{offset_of, size_of};

pub const KIND_MEMCPY: u32 = 1;
pub const KIND_MEMSET: u32 = 2;
pub const KIND_KERNEL: u32 = 3;
pub const KIND_CONCURRENT_KERNEL: u32 = 10;
pub const KIND_MEMCPY2: u32 = 22;
pub const KIND_GRAPH_TRACE: u32 = 51;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelRecord {
    pub kind: u32,
    pub cache_config: u8,
    pub shared_memory_config: u8,
    pub registers_per_thread: u16,
    pub partitioned_cache_requested: u32,
    pub partitioned_cache_executed: u32,
    pub start: u64,
    pub end: u64,
    pub completed: u64,
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    /// Grid x, y, z, then block x, y, z.
    pub shape: [i32; 6],
    pub static_shared_memory: i32,
    pub dynamic_shared_memory: i32,
    pub local_memory_per_thread: u32,
    pub local_memory_total: u32,
    pub correlation_id: u32,
    pub grid_id: i64,
    pub name: *const c_char,
    pub reserved0: u64,
    pub queued: u64,
    pub submitted: u64,
    pub launch_type: u8,
    pub carveout_is_requested: u8,
    pub carveout_requested: u8,
    pub padding: u8,
    pub shared_memory_executed: u32,
    pub graph_node_id: u64,
    pub shmem_limit_config: u32,
    pub graph_id: u32,
    pub access_policy_window: u64,
    pub channel_id: u32,
    pub channel_type: u32,
    pub cluster: [u32; 3],
    pub cluster_scheduling_policy: u32,
    pub local_memory_total_v2: u64,
    // From Kernel9 (12.x).
    pub max_potential_cluster_size: u32,
    pub max_active_clusters: u32,
    // From Kernel10 (13.0).
    pub is_device_launched: u8,
    pub padding3: [u8; 7],
    // From Kernel11 (13.1).
    pub priority: i32,
    pub padding4: u32,
    // From Kernel12 (13.3).
    pub execution_model: u32,
    pub padding5: u32,
    // From Kernel13 (13.4).
    pub source_graph_id: u32,
    pub padding6: u32,
    pub source_graph_node_id: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemcpyRecord {
    pub kind: u32,
    pub copy_kind: u8,
    pub src_kind: u8,
    pub dst_kind: u8,
    pub flags: u8,
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub correlation_id: u32,
    pub runtime_correlation_id: u32,
    pub pad: u32,
    pub reserved0: u64,
    pub graph_node_id: u64,
    pub graph_id: u32,
    pub channel_id: u32,
    pub channel_type: u32,
    pub is_device_launched: u8,
    pub pad2: [u8; 3],
    // From Memcpy6 (12.8).
    pub copy_count: u64,
    // From Memcpy7 (13.4).
    pub source_graph_id: u32,
    pub pad3: u32,
    pub source_graph_node_id: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemsetRecord {
    pub kind: u32,
    pub value: u32,
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub correlation_id: u32,
    pub flags: u16,
    pub memory_kind: u16,
    pub pad: u32,
    pub reserved0: u64,
    pub graph_node_id: u64,
    pub graph_id: u32,
    pub channel_id: u32,
    pub channel_type: u32,
    pub is_device_launched: u8,
    pub pad2: [u8; 3],
    // From Memset5 (13.4).
    pub source_graph_id: u32,
    pub pad3: u32,
    pub source_graph_node_id: u64,
}

/// `CUpti_ActivityMemcpyPtoP4`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PeerCopyRecord {
    pub kind: u32,
    pub copy_kind: u8,
    pub src_kind: u8,
    pub dst_kind: u8,
    pub flags: u8,
    pub bytes: u64,
    pub start: u64,
    pub end: u64,
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub src_device_id: u32,
    pub src_context_id: u32,
    pub dst_device_id: u32,
    pub dst_context_id: u32,
    pub correlation_id: u32,
    pub reserved0: u64,
    pub graph_node_id: u64,
    pub graph_id: u32,
    pub channel_id: u32,
    pub channel_type: u32,
    pub pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GraphTraceRecord {
    pub kind: u32,
    pub correlation_id: u32,
    pub start: u64,
    pub end: u64,
    pub device_id: u32,
    pub graph_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub reserved: u64,
    // From GraphTrace2 (12.4 at the latest).
    pub end_device_id: u32,
    pub end_context_id: u32,
}

const _: () = {
    assert!(size_of::<PeerCopyRecord>() == 96);
    assert!(offset_of!(PeerCopyRecord, src_device_id) == 44);
    assert!(offset_of!(PeerCopyRecord, correlation_id) == 60);
    assert!(offset_of!(PeerCopyRecord, graph_node_id) == 72);
    assert!(offset_of!(PeerCopyRecord, channel_type) == 88);
    assert!(size_of::<GraphTraceRecord>() == 56);
    assert!(offset_of!(GraphTraceRecord, stream_id) == 36);
    assert!(offset_of!(GraphTraceRecord, end_device_id) == 48);
    assert!(size_of::<KernelRecord>() == 248);
    assert!(size_of::<MemcpyRecord>() == 112);
    assert!(size_of::<MemsetRecord>() == 104);
    assert!(offset_of!(KernelRecord, registers_per_thread) == 6);
    assert!(offset_of!(KernelRecord, start) == 16);
    assert!(offset_of!(KernelRecord, device_id) == 40);
    assert!(offset_of!(KernelRecord, shape) == 52);
    assert!(offset_of!(KernelRecord, correlation_id) == 92);
    assert!(offset_of!(KernelRecord, name) == 104);
    assert!(offset_of!(KernelRecord, queued) == 120);
    assert!(offset_of!(KernelRecord, launch_type) == 136);
    assert!(offset_of!(KernelRecord, graph_node_id) == 144);
    assert!(offset_of!(KernelRecord, channel_id) == 168);
    assert!(offset_of!(KernelRecord, cluster) == 176);
    assert!(offset_of!(KernelRecord, local_memory_total_v2) == 192);
    assert!(offset_of!(KernelRecord, max_potential_cluster_size) == 200);
    assert!(offset_of!(KernelRecord, is_device_launched) == 208);
    assert!(offset_of!(KernelRecord, priority) == 216);
    assert!(offset_of!(KernelRecord, execution_model) == 224);
    assert!(offset_of!(KernelRecord, source_graph_id) == 232);
    assert!(offset_of!(MemcpyRecord, device_id) == 32);
    assert!(offset_of!(MemcpyRecord, reserved0) == 56);
    assert!(offset_of!(MemcpyRecord, channel_type) == 80);
    assert!(offset_of!(MemcpyRecord, copy_count) == 88);
    assert!(offset_of!(MemcpyRecord, source_graph_id) == 96);
    assert!(offset_of!(MemsetRecord, flags) == 48);
    assert!(offset_of!(MemsetRecord, reserved0) == 56);
    assert!(offset_of!(MemsetRecord, source_graph_id) == 88);
};
