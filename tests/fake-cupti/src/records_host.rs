//! From what the CPU did to its activity record.

use crate::draft::Draft;
use crate::hook_abi::{
    ApiCall, DOMAIN_RUNTIME_API, HOST_MEMORY, HOST_POOL, HOST_SYNCHRONIZATION, HostEvent, PoolFacts,
};
use crate::layout_host::{
    ApiRecord, KIND_DRIVER, KIND_MARKER, KIND_MEMORY_POOL, KIND_MEMORY2, KIND_OVERHEAD, KIND_RUNTIME,
    KIND_SYNCHRONIZATION, MarkerRecord, MemoryPoolRecord, MemoryRecord, OverheadRecord, SynchronizationRecord,
};
use crate::sizes::Sizes;

const OBJECT_THREAD: u32 = 2;
const POOL_LOCAL: u32 = 1;
const OVERHEAD_BUFFER_FLUSH: u32 = 1 << 16;

/// The kind of record that tells of a `HostEvent`'s kind.
pub fn kind_of_event(kind: u32) -> u32 {
    match kind {
        HOST_SYNCHRONIZATION => KIND_SYNCHRONIZATION,
        HOST_MEMORY => KIND_MEMORY2,
        _ => KIND_MEMORY_POOL,
    }
}

pub fn of_event(event: &HostEvent, sizes: &Sizes) -> Draft {
    let (kind, finished_ns) = (kind_of_event(event.kind), event.end_ns);
    match event.kind {
        HOST_SYNCHRONIZATION => Draft::new(kind, &synchronization(event), sizes.synchronization, finished_ns),
        HOST_POOL => Draft::new(kind, &memory_pool(event), sizes.memory_pool, finished_ns),
        _ => Draft::new(kind, &memory(event), sizes.memory, finished_ns),
    }
}

fn synchronization(event: &HostEvent) -> SynchronizationRecord {
    SynchronizationRecord {
        kind: KIND_SYNCHRONIZATION,
        synchronization_type: event.operation,
        start: event.start_ns,
        end: event.end_ns,
        correlation_id: event.correlation_id,
        context_id: event.context_id,
        stream_id: event.stream_id,
        event_id: event.event_id,
        event_sync_id: event.event_sync_id,
        return_value: event.result,
        pad: 0,
    }
}

/// 0 for no pool.
fn pool_type(pool: &PoolFacts) -> u32 {
    if pool.address == 0 { 0 } else { POOL_LOCAL }
}

fn memory(event: &HostEvent) -> MemoryRecord {
    MemoryRecord {
        kind: KIND_MEMORY2,
        operation: event.operation,
        memory_kind: event.memory_kind,
        correlation_id: event.correlation_id,
        address: event.address,
        bytes: event.bytes,
        timestamp: event.start_ns,
        program_counter: 0,
        process_id: std::process::id(),
        device_id: event.device_id,
        context_id: event.context_id,
        stream_id: event.stream_id,
        name: std::ptr::null(),
        is_async: event.is_async,
        pad1: 0,
        pool_type: pool_type(&event.pool),
        pad2: 0,
        pool_address: event.pool.address,
        pool_release_threshold: event.pool.release_threshold,
        pool_size: event.pool.size_bytes,
        pool_utilized_size: event.pool.used_bytes,
        source: std::ptr::null(),
    }
}

fn memory_pool(event: &HostEvent) -> MemoryPoolRecord {
    MemoryPoolRecord {
        kind: KIND_MEMORY_POOL,
        operation: event.operation,
        pool_type: pool_type(&event.pool),
        correlation_id: event.correlation_id,
        process_id: std::process::id(),
        device_id: event.device_id,
        min_bytes_to_keep: event.min_bytes_to_keep,
        address: event.pool.address,
        size: event.pool.size_bytes,
        release_threshold: event.pool.release_threshold,
        timestamp: event.start_ns,
        utilized_size: event.pool.used_bytes,
        is_managed_pool: 0,
        pad2: [0; 7],
    }
}

/// The kind of record that tells of a domain's calls.
pub fn kind_of_domain(domain: u32) -> u32 {
    if domain == DOMAIN_RUNTIME_API { KIND_RUNTIME } else { KIND_DRIVER }
}

/// Of a call that has ended.
pub fn of_call(call: &ApiCall) -> Draft {
    let kind = kind_of_domain(call.domain);
    // SAFETY: the driver's hook promises a valid call, whose result may be read.
    let return_value = unsafe { call.return_value.read() };
    let record = ApiRecord {
        kind,
        cbid: call.cbid,
        start: call.start_ns,
        end: call.end_ns,
        process_id: std::process::id(),
        thread_id: thread_id(),
        correlation_id: call.correlation_id,
        return_value,
    };
    Draft::new(kind, &record, size_of::<ApiRecord>(), call.end_ns)
}

/// The calling thread gave buffers back for so long.
pub fn of_flush(start_ns: u64, end_ns: u64, sizes: &Sizes) -> Draft {
    let record = OverheadRecord {
        kind: KIND_OVERHEAD,
        overhead_kind: OVERHEAD_BUFFER_FLUSH,
        object_kind: OBJECT_THREAD,
        object_id: this_thread(),
        start: start_ns,
        end: end_ns,
        correlation_id: 0,
        reserved0: 0,
        overhead_data: 0,
    };
    Draft::new(KIND_OVERHEAD, &record, sizes.overhead, end_ns)
}

/// What a marker says; both texts live as long as the process, or are null.
pub struct Marker {
    pub flags: u32,
    pub id: u32,
    pub timestamp_ns: u64,
    pub name: *const std::ffi::c_char,
    pub domain: *const std::ffi::c_char,
}

pub fn of_marker(marker: &Marker) -> Draft {
    let record = MarkerRecord {
        kind: KIND_MARKER,
        flags: marker.flags,
        timestamp: marker.timestamp_ns,
        id: marker.id,
        object_kind: OBJECT_THREAD,
        object_id: this_thread(),
        pad: 0,
        name: marker.name,
        domain: marker.domain,
    };
    Draft::new(KIND_MARKER, &record, size_of::<MarkerRecord>(), marker.timestamp_ns)
}

fn this_thread() -> [u32; 3] {
    [std::process::id(), thread_id(), 0]
}

fn thread_id() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::gettid() as u32 }
}
