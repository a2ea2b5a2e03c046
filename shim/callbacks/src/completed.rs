//! Buffer completed: CUPTI's records become compact events in the lane of the thread that CUPTI calls on.

use crate::{records::RawRecord, tapped::Tapped, thread};
use gputap_cupti::{
    abi::CuContext,
    constants::{
        ACTIVITY_FLAG_MEMCPY_ASYNC, ACTIVITY_KIND_CONCURRENT_KERNEL, ACTIVITY_KIND_KERNEL, ACTIVITY_KIND_MEMCPY,
        ACTIVITY_KIND_MEMSET,
    },
    layout::{self, KernelRecord, MemcpyRecord, MemsetRecord},
};
use gputap_ringbuf::{
    event::{EventKind, KernelEvent, MemcpyEvent, MemsetEvent, NO_NAME},
    header::counters::Counter,
    lane::directory::Refused,
    process::monotonic_ns,
    tap::Lane,
};

/// Reads a completed buffer and gives it back to the pool.
///
/// # Safety
/// The arguments are what CUPTI passes to buffer-completed, and this is such a callback.
pub unsafe fn completed(tapped: &Tapped, context: CuContext, stream_id: u32, buffer: *mut u8, valid_bytes: usize) {
    let start_ns = monotonic_ns();
    if !tapped.pool.is_spare(buffer) {
        // SAFETY: the caller's promise; the buffer is given back only afterwards.
        let mut records = unsafe { tapped.records.records(buffer, valid_bytes) };
        match tapped.tap.enter_lane(thread::pointer(), thread::id()) {
            Ok(mut lane) => {
                records.by_ref().filter(|r| is_wanted(tapped, r)).for_each(|r| write(tapped, &mut lane, r));
            }
            Err(refused) => {
                let counter = match refused {
                    Refused::NoLane => Counter::NoLane,
                    Refused::Nested => Counter::Nested,
                };
                let events = records.by_ref().filter(|r| is_event(r) && is_wanted(tapped, r));
                tapped.tap.count(counter, events.count() as u64);
            }
        }
        if records.is_broken() {
            tapped.tap.count(Counter::PoolEmpty, 1);
        }
        tapped.pool.give_back(buffer);
    }
    // SAFETY: the caller's promise.
    if let Some(dropped) = unsafe { tapped.records.dropped(context, stream_id) } {
        tapped.tap.count(Counter::CuptiDropped, dropped);
    }
    tapped.tap.count(Counter::BuffersCompleted, 1);
    tapped.tap.count(Counter::CompletedNs, monotonic_ns().saturating_sub(start_ns));
}

fn kind(record: &RawRecord) -> u32 {
    // SAFETY: the walk gives no record with fewer than four readable bytes.
    unsafe { layout::kind(record.start) }
}

fn event_kind(record: &RawRecord) -> Option<EventKind> {
    match kind(record) {
        ACTIVITY_KIND_CONCURRENT_KERNEL | ACTIVITY_KIND_KERNEL => Some(EventKind::Kernel),
        ACTIVITY_KIND_MEMCPY => Some(EventKind::Memcpy),
        ACTIVITY_KIND_MEMSET => Some(EventKind::Memset),
        _ => None,
    }
}

fn is_event(record: &RawRecord) -> bool {
    event_kind(record).is_some()
}

/// False for copies and sets that nobody asked for: CUPTI delivers them because their kinds are never switched off.
fn is_wanted(tapped: &Tapped, record: &RawRecord) -> bool {
    event_kind(record).is_none_or(|kind| tapped.wants(kind))
}

fn write(tapped: &Tapped, lane: &mut Lane<'_>, raw: RawRecord) {
    let layouts = &tapped.layouts;
    let (start, available) = (raw.start, raw.available_bytes);
    // SAFETY (all three reads): `available` bytes from `start` are readable: the rest of the buffer's valid part.
    let written = match event_kind(&raw) {
        // SAFETY: as above.
        Some(EventKind::Kernel) => unsafe { layouts.kernel.read(start, available) }.map(|r| {
            let event = kernel(tapped, lane, &r);
            lane.write(EventKind::Kernel as u16, &event.encode())
        }),
        // SAFETY: as above.
        Some(EventKind::Memcpy) => unsafe { layouts.memcpy.read(start, available) }
            .map(|r| lane.write(EventKind::Memcpy as u16, &memcpy(&r).encode())),
        // SAFETY: as above.
        Some(EventKind::Memset) => unsafe { layouts.memset.read(start, available) }
            .map(|r| lane.write(EventKind::Memset as u16, &memset(&r).encode())),
        None => None,
    };
    if written.is_none() {
        // An event that is too short for its layout is not there, and not nothing.
        tapped.tap.count(if is_event(&raw) { Counter::PoolEmpty } else { Counter::UnknownRecords }, 1);
    }
}

fn kernel(tapped: &Tapped, lane: &mut Lane<'_>, r: &KernelRecord) -> KernelEvent {
    if r.end_ns == 0 {
        tapped.tap.count(Counter::Unfinished, 1);
    }
    let name_id = if r.name.is_null() {
        NO_NAME
    } else {
        // SAFETY: CUPTI's names are NUL-terminated and stand at least until the callback returns.
        let name = unsafe { std::ffi::CStr::from_ptr(r.name) };
        tapped.name_slot(lane, name.to_bytes()).unwrap_or(NO_NAME)
    };
    KernelEvent {
        start_ns: r.start_ns,
        end_ns: r.end_ns,
        name_id,
        correlation_id: r.correlation_id,
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

fn memcpy(r: &MemcpyRecord) -> MemcpyEvent {
    MemcpyEvent {
        start_ns: r.start_ns,
        end_ns: r.end_ns,
        bytes: r.copied_bytes,
        correlation_id: r.correlation_id,
        device_id: r.device_id,
        context_id: r.context_id,
        stream_id: r.stream_id,
        graph_id: r.graph_id,
        graph_node_id: r.graph_node_id,
        copy_kind: r.copy_kind,
        src_kind: r.src_kind,
        dst_kind: r.dst_kind,
        flags: r.flags & ACTIVITY_FLAG_MEMCPY_ASYNC,
    }
}

fn memset(r: &MemsetRecord) -> MemsetEvent {
    MemsetEvent {
        start_ns: r.start_ns,
        end_ns: r.end_ns,
        bytes: r.filled_bytes,
        correlation_id: r.correlation_id,
        device_id: r.device_id,
        context_id: r.context_id,
        stream_id: r.stream_id,
        graph_id: r.graph_id,
        graph_node_id: r.graph_node_id,
        value: r.value,
        memory_kind: r.memory_kind as u8,
        flags: r.flags as u8,
    }
}
