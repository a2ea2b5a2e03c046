//! In the application: the records that the witness saw, as events. Read by the fake's own layouts, which are the
//! longest form of each record, and not by the tap's tables.

use std::ffi::{CStr, c_char, c_void};

use fake_cupti::layout::{
    GraphTraceRecord, KIND_CONCURRENT_KERNEL, KIND_GRAPH_TRACE, KIND_MEMCPY, KIND_MEMCPY2, KIND_MEMSET, KernelRecord,
    MemcpyRecord, MemsetRecord, PeerCopyRecord,
};
use fake_cupti::layout_host::{
    ApiRecord, KIND_DRIVER, KIND_MARKER, KIND_MEMORY_POOL, KIND_MEMORY2, KIND_OVERHEAD, KIND_RUNTIME,
    KIND_SYNCHRONIZATION, MarkerRecord, MemoryPoolRecord, MemoryRecord, OverheadRecord, SynchronizationRecord,
};
use gputap_ringbuf::event::{
    ApiEvent, Event, GraphEvent, KernelEvent, MarkerEvent, MemcpyEvent, MemoryEvent, MemsetEvent, NO_NAME,
    OverheadEvent, PoolEvent, SyncEvent,
};

use super::told::Told;

type Visit = unsafe extern "C" fn(*mut c_void, *const u8, usize);
type Take = unsafe extern "C" fn(Visit, *mut c_void);

/// What the tap was shown since the last question, in that order; records of unknown kinds are left out.
pub fn take() -> Vec<Told> {
    let path = std::env::var_os("GPUTAP_CUPTI").expect("set");
    // SAFETY: the library that the tap has loaded already.
    let library = unsafe { libloading::Library::new(path) }.expect("loads");
    let mut told: Vec<Told> = Vec::new();
    // SAFETY: under this name the witness exports a function of this type, and `visit` gets the vector.
    unsafe { library.get::<Take>(b"cupti_witness_take\0").expect("a witness")(visit, (&raw mut told).cast()) };
    told
}

/// # Safety
/// `told` is the vector of [`take`]; `bytes` are readable from `at`, where a record begins.
unsafe extern "C" fn visit(told: *mut c_void, at: *const u8, bytes: usize) {
    // SAFETY: by contract.
    let (told, record) = unsafe { (&mut *told.cast::<Vec<Told>>(), std::slice::from_raw_parts(at, bytes)) };
    told.extend(read(record));
}

fn read(record: &[u8]) -> Option<Told> {
    let kind = u32::from_le_bytes(*record.first_chunk()?);
    let bare = |event: Event| Some(Told::new(event, None, None));
    match kind {
        KIND_CONCURRENT_KERNEL => {
            let r: KernelRecord = prefix(record);
            Some(Told::new(Event::Kernel(kernel(&r)), text(r.name), None))
        }
        KIND_MARKER => {
            let r: MarkerRecord = prefix(record);
            Some(Told::new(Event::Marker(marker(&r)), text(r.name), text(r.domain)))
        }
        KIND_MEMCPY => bare(Event::Memcpy(memcpy(&prefix(record)))),
        KIND_MEMCPY2 => bare(Event::Memcpy(peer_copy(&prefix(record)))),
        KIND_MEMSET => bare(Event::Memset(memset(&prefix(record)))),
        KIND_SYNCHRONIZATION => bare(Event::Sync(sync(&prefix(record)))),
        KIND_GRAPH_TRACE => bare(Event::Graph(graph(&prefix(record)))),
        KIND_MEMORY2 => bare(Event::Memory(memory(&prefix(record)))),
        KIND_MEMORY_POOL => bare(Event::Pool(pool(&prefix(record)))),
        KIND_OVERHEAD => bare(Event::Overhead(overhead(&prefix(record)))),
        KIND_RUNTIME => bare(Event::Runtime(api(&prefix(record)))),
        KIND_DRIVER => bare(Event::Driver(api(&prefix(record)))),
        _ => None,
    }
}

/// As much of a structure as the record has; the rest zero.
fn prefix<T: Copy>(record: &[u8]) -> T {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: no more than the structure and no more than the record; all bytes zero, and any bytes, are a value of
    // each of the record structures.
    unsafe {
        record.as_ptr().copy_to_nonoverlapping(value.as_mut_ptr().cast(), record.len().min(size_of::<T>()));
        value.assume_init()
    }
}

/// The fakes' texts live as long as the process.
fn text(at: *const c_char) -> Option<&'static [u8]> {
    // SAFETY: as said, and NUL-terminated.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_bytes())
}

fn kernel(r: &KernelRecord) -> KernelEvent {
    let [grid_x, grid_y, grid_z, block_x, block_y, block_z] = r.shape.map(|n| n as u32);
    KernelEvent {
        start_ns: r.start,
        end_ns: r.end,
        correlation_id: r.correlation_id.into(),
        graph_node_id: r.graph_node_id,
        name_id: NO_NAME,
        device_id: r.device_id,
        context_id: r.context_id,
        stream_id: r.stream_id,
        graph_id: r.graph_id,
        grid: [grid_x, grid_y, grid_z],
        block: [block_x, block_y, block_z],
        static_shared_bytes: r.static_shared_memory as u32,
        dynamic_shared_bytes: r.dynamic_shared_memory as u32,
        local_bytes_per_thread: r.local_memory_per_thread,
        registers_per_thread: r.registers_per_thread,
    }
}

fn memcpy(r: &MemcpyRecord) -> MemcpyEvent {
    MemcpyEvent {
        start_ns: r.start,
        end_ns: r.end,
        bytes: r.bytes,
        correlation_id: r.correlation_id.into(),
        graph_node_id: r.graph_node_id,
        device_id: r.device_id,
        context_id: r.context_id,
        stream_id: r.stream_id,
        graph_id: r.graph_id,
        src_device_id: r.device_id,
        dst_device_id: r.device_id,
        copy_kind: r.copy_kind,
        src_kind: r.src_kind,
        dst_kind: r.dst_kind,
        flags: r.flags,
    }
}

fn peer_copy(r: &PeerCopyRecord) -> MemcpyEvent {
    MemcpyEvent {
        start_ns: r.start,
        end_ns: r.end,
        bytes: r.bytes,
        correlation_id: r.correlation_id.into(),
        graph_node_id: r.graph_node_id,
        device_id: r.device_id,
        context_id: r.context_id,
        stream_id: r.stream_id,
        graph_id: r.graph_id,
        src_device_id: r.src_device_id,
        dst_device_id: r.dst_device_id,
        copy_kind: r.copy_kind,
        src_kind: r.src_kind,
        dst_kind: r.dst_kind,
        flags: r.flags,
    }
}

fn memset(r: &MemsetRecord) -> MemsetEvent {
    MemsetEvent {
        start_ns: r.start,
        end_ns: r.end,
        bytes: r.bytes,
        correlation_id: r.correlation_id.into(),
        graph_node_id: r.graph_node_id,
        device_id: r.device_id,
        context_id: r.context_id,
        stream_id: r.stream_id,
        graph_id: r.graph_id,
        value: r.value,
        memory_kind: r.memory_kind as u8,
        flags: r.flags as u8,
    }
}

fn sync(r: &SynchronizationRecord) -> SyncEvent {
    SyncEvent {
        start_ns: r.start,
        end_ns: r.end,
        correlation_id: r.correlation_id.into(),
        sync_kind: r.synchronization_type,
        context_id: r.context_id,
        stream_id: r.stream_id,
        cuda_event_id: r.event_id,
    }
}

fn graph(r: &GraphTraceRecord) -> GraphEvent {
    GraphEvent {
        start_ns: r.start,
        end_ns: r.end,
        correlation_id: r.correlation_id.into(),
        graph_id: r.graph_id,
        device_id: r.device_id,
        context_id: r.context_id,
        stream_id: r.stream_id,
    }
}

fn memory(r: &MemoryRecord) -> MemoryEvent {
    MemoryEvent {
        time_ns: r.timestamp,
        correlation_id: r.correlation_id.into(),
        address: r.address,
        bytes: r.bytes,
        pool_address: r.pool_address,
        pool_size_bytes: r.pool_size,
        pool_used_bytes: r.pool_utilized_size,
        device_id: r.device_id,
        context_id: r.context_id,
        stream_id: r.stream_id,
        operation: r.operation as u8,
        memory_kind: r.memory_kind as u8,
        flags: r.is_async as u8,
        pool_kind: r.pool_type as u8,
    }
}

fn pool(r: &MemoryPoolRecord) -> PoolEvent {
    PoolEvent {
        time_ns: r.timestamp,
        correlation_id: r.correlation_id.into(),
        address: r.address,
        size_bytes: r.size,
        used_bytes: r.utilized_size,
        release_threshold_bytes: r.release_threshold,
        keep_bytes: r.min_bytes_to_keep,
        device_id: r.device_id,
        operation: r.operation as u8,
        pool_kind: r.pool_type as u8,
    }
}

fn overhead(r: &OverheadRecord) -> OverheadEvent {
    let [_, thread_id, _] = r.object_id;
    OverheadEvent { start_ns: r.start, end_ns: r.end, overhead_kind: r.overhead_kind, thread_id }
}

fn api(r: &ApiRecord) -> ApiEvent {
    ApiEvent {
        start_ns: r.start,
        end_ns: r.end,
        correlation_id: r.correlation_id.into(),
        callback_id: r.cbid,
        thread_id: r.thread_id,
        return_value: r.return_value,
    }
}

fn marker(r: &MarkerRecord) -> MarkerEvent {
    let [_, thread_id, _] = r.object_id;
    MarkerEvent {
        time_ns: r.timestamp,
        marker_id: r.id,
        flags: r.flags,
        name_id: NO_NAME,
        domain_id: NO_NAME,
        thread_id,
    }
}
