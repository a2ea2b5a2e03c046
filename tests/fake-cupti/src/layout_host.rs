//! The activity records of what the CPU does, as C lays them out on x86_64, in their longest form.
//!
//! As in [`crate::layout`], an older version's record is a prefix, and offsets were compared with NVIDIA's headers.

use std::ffi::c_char;
use std::mem::{offset_of, size_of};

pub const KIND_DRIVER: u32 = 4;
pub const KIND_RUNTIME: u32 = 5;
pub const KIND_MARKER: u32 = 12;
pub const KIND_OVERHEAD: u32 = 17;
pub const KIND_SYNCHRONIZATION: u32 = 38;
pub const KIND_MEMORY2: u32 = 49;
pub const KIND_MEMORY_POOL: u32 = 50;

/// `CUpti_ActivityAPI`, of DRIVER and RUNTIME.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ApiRecord {
    pub kind: u32,
    pub cbid: u32,
    pub start: u64,
    pub end: u64,
    pub process_id: u32,
    pub thread_id: u32,
    pub correlation_id: u32,
    pub return_value: u32,
}

/// `CUpti_ActivityMarker2`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MarkerRecord {
    pub kind: u32,
    pub flags: u32,
    pub timestamp: u64,
    pub id: u32,
    pub object_kind: u32,
    /// Of a thread: process, thread, nothing.
    pub object_id: [u32; 3],
    pub pad: u32,
    pub name: *const c_char,
    pub domain: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct OverheadRecord {
    pub kind: u32,
    pub overhead_kind: u32,
    pub object_kind: u32,
    pub object_id: [u32; 3],
    pub start: u64,
    pub end: u64,
    // From Overhead3 (12.4 at the latest).
    pub correlation_id: u32,
    pub reserved0: u32,
    pub overhead_data: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SynchronizationRecord {
    pub kind: u32,
    pub synchronization_type: u32,
    pub start: u64,
    pub end: u64,
    pub correlation_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub event_id: u32,
    // From Synchronization2 (12.8).
    pub event_sync_id: u64,
    pub return_value: u32,
    pub pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryRecord {
    pub kind: u32,
    pub operation: u32,
    pub memory_kind: u32,
    pub correlation_id: u32,
    pub address: u64,
    pub bytes: u64,
    pub timestamp: u64,
    pub program_counter: u64,
    pub process_id: u32,
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    pub name: *const c_char,
    pub is_async: u32,
    pub pad1: u32,
    pub pool_type: u32,
    pub pad2: u32,
    pub pool_address: u64,
    pub pool_release_threshold: u64,
    pub pool_size: u64,
    pub pool_utilized_size: u64,
    // From Memory4 (12.6).
    pub source: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MemoryPoolRecord {
    pub kind: u32,
    pub operation: u32,
    pub pool_type: u32,
    pub correlation_id: u32,
    pub process_id: u32,
    pub device_id: u32,
    pub min_bytes_to_keep: u64,
    pub address: u64,
    pub size: u64,
    pub release_threshold: u64,
    pub timestamp: u64,
    pub utilized_size: u64,
    // From MemoryPool3 (13.0).
    pub is_managed_pool: u8,
    pub pad2: [u8; 7],
}

const _: () = {
    assert!(size_of::<ApiRecord>() == 40);
    assert!(offset_of!(ApiRecord, correlation_id) == 32);
    assert!(size_of::<MarkerRecord>() == 56);
    assert!(offset_of!(MarkerRecord, id) == 16);
    assert!(offset_of!(MarkerRecord, object_id) == 24);
    assert!(offset_of!(MarkerRecord, name) == 40);
    assert!(size_of::<OverheadRecord>() == 56);
    assert!(offset_of!(OverheadRecord, start) == 24);
    assert!(offset_of!(OverheadRecord, correlation_id) == 40);
    assert!(offset_of!(OverheadRecord, overhead_data) == 48);
    assert!(size_of::<SynchronizationRecord>() == 56);
    assert!(offset_of!(SynchronizationRecord, correlation_id) == 24);
    assert!(offset_of!(SynchronizationRecord, event_sync_id) == 40);
    assert!(offset_of!(SynchronizationRecord, return_value) == 48);
    assert!(size_of::<MemoryRecord>() == 128);
    assert!(offset_of!(MemoryRecord, timestamp) == 32);
    assert!(offset_of!(MemoryRecord, process_id) == 48);
    assert!(offset_of!(MemoryRecord, name) == 64);
    assert!(offset_of!(MemoryRecord, is_async) == 72);
    assert!(offset_of!(MemoryRecord, pool_type) == 80);
    assert!(offset_of!(MemoryRecord, pool_address) == 88);
    assert!(offset_of!(MemoryRecord, pool_size) == 104);
    assert!(offset_of!(MemoryRecord, source) == 120);
    assert!(size_of::<MemoryPoolRecord>() == 80);
    assert!(offset_of!(MemoryPoolRecord, process_id) == 16);
    assert!(offset_of!(MemoryPoolRecord, address) == 32);
    assert!(offset_of!(MemoryPoolRecord, timestamp) == 56);
    assert!(offset_of!(MemoryPoolRecord, is_managed_pool) == 72);
};
