//! CUPTI's records as events.

use crate::{records::RawRecord, tapped::Tapped, times::Times};
use gputap_cupti::{
    constants::{
        ACTIVITY_FLAG_MEMCPY_ASYNC, ACTIVITY_FLAG_MEMSET_ASYNC, ACTIVITY_KIND_CONCURRENT_KERNEL, ACTIVITY_KIND_DRIVER,
        ACTIVITY_KIND_GRAPH_TRACE, ACTIVITY_KIND_KERNEL, ACTIVITY_KIND_MARKER, ACTIVITY_KIND_MEMCPY,
        ACTIVITY_KIND_MEMCPY2, ACTIVITY_KIND_MEMORY_POOL, ACTIVITY_KIND_MEMORY2, ACTIVITY_KIND_MEMSET,
        ACTIVITY_KIND_OVERHEAD, ACTIVITY_KIND_RUNTIME, ACTIVITY_KIND_SYNCHRONIZATION, ACTIVITY_OBJECT_THREAD,
        ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL,
    },
    layout::{
        self, ApiRecord, GraphTraceRecord, KernelRecord, MarkerRecord, MemcpyPtopRecord, MemcpyRecord,
        MemoryPoolRecord, MemoryRecord, MemsetRecord, OverheadRecord, SynchronizationRecord,
    },
};
use gputap_ringbuf::{
    event::{
        ApiEvent, EventKind, GraphEvent, KernelEvent, MarkerEvent, MemcpyEvent, MemoryEvent, MemsetEvent, NO_NAME,
        OverheadEvent, PoolEvent, SyncEvent,
    },
    tap::Lane,
};
use std::ffi::{CStr, c_char, c_void};

/// What a record becomes; `None` for a kind that is not asked for.
pub fn event_kind(raw: &RawRecord) -> Option<EventKind> {
    Some(match cupti_kind(raw) {
        ACTIVITY_KIND_CONCURRENT_KERNEL | ACTIVITY_KIND_KERNEL => EventKind::Kernel,
        ACTIVITY_KIND_MEMCPY | ACTIVITY_KIND_MEMCPY2 => EventKind::Memcpy,
        ACTIVITY_KIND_MEMSET => EventKind::Memset,
        ACTIVITY_KIND_SYNCHRONIZATION => EventKind::Sync,
        ACTIVITY_KIND_GRAPH_TRACE => EventKind::Graph,
        ACTIVITY_KIND_MEMORY2 => EventKind::Memory,
        ACTIVITY_KIND_MEMORY_POOL => EventKind::Pool,
        ACTIVITY_KIND_OVERHEAD => EventKind::Overhead,
        ACTIVITY_KIND_RUNTIME => EventKind::Runtime,
        ACTIVITY_KIND_DRIVER => EventKind::Driver,
        ACTIVITY_KIND_MARKER => EventKind::Marker,
        _ => return None,
    })
}

fn cupti_kind(raw: &RawRecord) -> u32 {
    // SAFETY: the walk gives no record with fewer than four readable bytes.
    unsafe { layout::kind(raw.start) }
}

/// A record that nobody wants: what comes with it is freed all the same.
pub fn let_go(tapped: &Tapped, kind: EventKind, raw: RawRecord) {
    if kind == EventKind::Overhead {
        // SAFETY: `available_bytes` from `start` are readable: the rest of the buffer's valid part.
        let record = unsafe { tapped.layouts.overhead.read(raw.start, raw.available_bytes) };
        tapped.details.put(record.as_ref().map_or(std::ptr::null_mut(), details_of));
    }
}

/// What came with the record, to be freed; null where nothing did. Only one kind of overhead has details. In the others
/// nothing is taken for a pointer: freeing what a CUPTI has there that lays its records out in a way of its own ends the
/// job.
fn details_of(record: &OverheadRecord) -> *mut c_void {
    let details = record.details.filter(|_| record.overhead_kind == ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL);
    details.unwrap_or(std::ptr::null_mut())
}

/// Turns the records of one buffer into events, and writes them into the lane of the thread.
pub struct Writer<'a, 'l> {
    pub tapped: &'a Tapped,
    pub times: Times<'a>,
    pub lane: Lane<'l>,
}

/// Reads the record by its table, makes the event and writes it; `None` where the record is shorter than its table.
macro_rules! write {
    ($writer:ident, $raw:ident, $table:ident, $kind:expr, $make:ident) => {{
        let table = $writer.tapped.layouts.$table;
        // SAFETY: `available_bytes` from `start` are readable: the rest of the buffer's valid part.
        let record = unsafe { table.read($raw.start, $raw.available_bytes) }?;
        let event = $writer.$make(&record);
        // A payload of a dozen words fits in a chunk.
        $writer.lane.write($kind as u16, &event.encode()).ok()
    }};
}

/// The event of a copy, from either of its records, whose fields have the same names but for the two devices.
macro_rules! copy {
    ($writer:ident, $r:ident, $src_device_id:expr, $dst_device_id:expr) => {{
        let (start_ns, end_ns) = $writer.times.span($r.start_ns, $r.end_ns);
        MemcpyEvent {
            start_ns,
            end_ns,
            bytes: $r.copied_bytes,
            correlation_id: $writer.correlation($r.correlation_id),
            device_id: $r.device_id,
            context_id: $r.context_id,
            stream_id: $r.stream_id,
            graph_id: $r.graph_id,
            graph_node_id: $r.graph_node_id,
            src_device_id: $src_device_id,
            dst_device_id: $dst_device_id,
            copy_kind: $r.copy_kind,
            src_kind: $r.src_kind,
            dst_kind: $r.dst_kind,
            flags: $r.flags & ACTIVITY_FLAG_MEMCPY_ASYNC,
        }
    }};
}

impl Writer<'_, '_> {
    /// `None` where the record is not whole.
    pub fn write(&mut self, kind: EventKind, raw: RawRecord) -> Option<()> {
        match kind {
            EventKind::Kernel => write!(self, raw, kernel, kind, kernel),
            EventKind::Memcpy if cupti_kind(&raw) == ACTIVITY_KIND_MEMCPY2 => {
                write!(self, raw, memcpy_ptop, kind, memcpy_ptop)
            }
            EventKind::Memcpy => write!(self, raw, memcpy, kind, memcpy),
            EventKind::Memset => write!(self, raw, memset, kind, memset),
            EventKind::Sync => write!(self, raw, synchronization, kind, sync),
            EventKind::Graph => write!(self, raw, graph_trace, kind, graph),
            EventKind::Memory => write!(self, raw, memory, kind, memory),
            EventKind::Pool => write!(self, raw, memory_pool, kind, pool),
            EventKind::Overhead => write!(self, raw, overhead, kind, overhead),
            EventKind::Runtime | EventKind::Driver => write!(self, raw, api, kind, api),
            EventKind::Marker => write!(self, raw, marker, kind, marker),
            // No record of CUPTI's.
            EventKind::Launch => None,
        }
    }

    fn correlation(&self, id: u32) -> u64 {
        self.tapped.correlations.widen(id)
    }

    fn kernel(&mut self, r: &KernelRecord) -> KernelEvent {
        let (start_ns, end_ns) = self.times.span(r.start_ns, r.end_ns);
        // SAFETY: what CUPTI names is a name.
        let name = unsafe { bytes_of(&r.name) };
        KernelEvent {
            start_ns,
            end_ns,
            name_id: name.map_or(NO_NAME, |name| self.tapped.kernel_name(&mut self.lane, name)),
            correlation_id: self.correlation(r.correlation_id),
            device_id: r.device_id,
            context_id: r.context_id,
            stream_id: r.stream_id,
            graph_id: r.graph_id,
            graph_node_id: r.graph_node_id,
            grid: [r.grid_x, r.grid_y, r.grid_z],
            block: [r.block_x, r.block_y, r.block_z],
            registers_per_thread: r.registers_per_thread,
            static_shared_bytes: r.static_shared_memory_bytes,
            dynamic_shared_bytes: r.dynamic_shared_memory_bytes,
            local_bytes_per_thread: r.local_memory_per_thread_bytes,
        }
    }

    fn memcpy(&self, r: &MemcpyRecord) -> MemcpyEvent {
        copy!(self, r, r.device_id, r.device_id)
    }

    fn memcpy_ptop(&self, r: &MemcpyPtopRecord) -> MemcpyEvent {
        copy!(self, r, r.src_device_id, r.dst_device_id)
    }

    fn memset(&self, r: &MemsetRecord) -> MemsetEvent {
        let (start_ns, end_ns) = self.times.span(r.start_ns, r.end_ns);
        MemsetEvent {
            start_ns,
            end_ns,
            bytes: r.filled_bytes,
            correlation_id: self.correlation(r.correlation_id),
            device_id: r.device_id,
            context_id: r.context_id,
            stream_id: r.stream_id,
            graph_id: r.graph_id,
            graph_node_id: r.graph_node_id,
            value: r.value,
            memory_kind: r.memory_kind as u8,
            flags: (r.flags & ACTIVITY_FLAG_MEMSET_ASYNC) as u8,
        }
    }

    fn sync(&self, r: &SynchronizationRecord) -> SyncEvent {
        let (start_ns, end_ns) = self.times.span(r.start_ns, r.end_ns);
        SyncEvent {
            start_ns,
            end_ns,
            correlation_id: self.correlation(r.correlation_id),
            sync_kind: r.synchronization_type,
            context_id: r.context_id,
            stream_id: r.stream_id,
            cuda_event_id: r.cuda_event_id,
        }
    }

    fn graph(&self, r: &GraphTraceRecord) -> GraphEvent {
        let (start_ns, end_ns) = self.times.span(r.start_ns, r.end_ns);
        GraphEvent {
            start_ns,
            end_ns,
            correlation_id: self.correlation(r.correlation_id),
            graph_id: r.graph_id,
            device_id: r.device_id,
            context_id: r.context_id,
            stream_id: r.stream_id,
        }
    }

    fn memory(&self, r: &MemoryRecord) -> MemoryEvent {
        let of_pool = r.pool_type != 0;
        let pool = |value: u64| if of_pool { value } else { 0 };
        MemoryEvent {
            time_ns: self.times.at(r.timestamp_ns),
            correlation_id: self.correlation(r.correlation_id),
            address: r.address,
            bytes: r.allocated_bytes,
            pool_address: pool(r.pool_address),
            pool_size_bytes: pool(if r.pool_type == POOL_OF_THIS_PROCESS {
                r.pool_size_bytes_or_process_id
            } else {
                0
            }),
            pool_used_bytes: pool(r.pool_utilized_bytes),
            device_id: r.device_id,
            context_id: r.context_id,
            stream_id: r.stream_id,
            operation: r.operation_type as u8,
            memory_kind: r.memory_kind as u8,
            flags: u8::from(r.is_async != 0),
            pool_kind: r.pool_type as u8,
        }
    }

    fn pool(&self, r: &MemoryPoolRecord) -> PoolEvent {
        PoolEvent {
            time_ns: self.times.at(r.timestamp_ns),
            correlation_id: self.correlation(r.correlation_id),
            address: r.address,
            size_bytes: r.pool_size_bytes,
            used_bytes: r.utilized_bytes,
            release_threshold_bytes: r.release_threshold_bytes,
            keep_bytes: r.min_bytes_to_keep,
            device_id: r.device_id,
            operation: r.operation_type as u8,
            pool_kind: r.pool_type as u8,
        }
    }

    fn overhead(&self, r: &OverheadRecord) -> OverheadEvent {
        let (start_ns, end_ns) = self.times.span(r.start_ns, r.end_ns);
        self.tapped.details.put(details_of(r));
        let thread_id = if r.object_kind == ACTIVITY_OBJECT_THREAD { r.thread_id } else { 0 };
        OverheadEvent { start_ns, end_ns, overhead_kind: r.overhead_kind, thread_id }
    }

    fn api(&self, r: &ApiRecord) -> ApiEvent {
        let (start_ns, end_ns) = self.times.span(r.start_ns, r.end_ns);
        ApiEvent {
            start_ns,
            end_ns,
            correlation_id: self.correlation(r.correlation_id),
            callback_id: r.callback_id,
            thread_id: r.thread_id,
            return_value: r.return_value,
        }
    }

    fn marker(&mut self, r: &MarkerRecord) -> MarkerEvent {
        // SAFETY: what CUPTI names is a name.
        let (name, domain) = unsafe { (bytes_of(&r.name), bytes_of(&r.domain)) };
        let mut slot = |text: Option<&[u8]>| text.map_or(NO_NAME, |text| self.tapped.text(&mut self.lane, text));
        MarkerEvent {
            time_ns: self.times.at(r.timestamp_ns),
            marker_id: r.id,
            flags: r.flags,
            name_id: slot(name),
            domain_id: slot(domain),
            thread_id: if r.object_kind == ACTIVITY_OBJECT_THREAD { r.thread_id } else { 0 },
        }
    }
}

/// `CUpti_ActivityMemoryPoolType`: of this process, whose size is told.
const POOL_OF_THIS_PROCESS: u32 = 1;

/// A name that CUPTI points to; `None` for null.
///
/// # Safety
/// `name` is null, or points to a NUL-terminated string that stands while the record does that it was read from.
unsafe fn bytes_of(name: &*const c_char) -> Option<&[u8]> {
    // SAFETY: the caller's promise.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(*name) }.to_bytes())
}
