//! Events as lines of comma-separated numbers, one file a kind. docs/format.md describes the columns.

use gputap_ringbuf::event::{
    ApiEvent, Event, EventKind, GraphEvent, KernelEvent, LaunchEvent, MarkerEvent, MemcpyEvent, MemoryEvent,
    MemsetEvent, NO_NAME, OverheadEvent, PoolEvent, SyncEvent,
};

/// The file of a kind.
pub(super) fn file_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Kernel => "kernels.csv",
        EventKind::Memcpy => "copies.csv",
        EventKind::Memset => "memsets.csv",
        EventKind::Sync => "syncs.csv",
        EventKind::Graph => "graphs.csv",
        EventKind::Memory => "memory.csv",
        EventKind::Pool => "pools.csv",
        EventKind::Overhead => "overheads.csv",
        EventKind::Runtime => "runtime.csv",
        EventKind::Driver => "driver.csv",
        EventKind::Marker => "nvtx.csv",
        EventKind::Launch => "launches.csv",
    }
}

/// The names of a kind's columns.
pub(super) fn header(kind: EventKind) -> String {
    let mut names = Vec::new();
    columns(&of_kind(kind), |name, _| names.push(name));
    names.join(",")
}

pub(super) fn row(line: &mut Vec<u8>, event: &Event) {
    let mut digits = itoa::Buffer::new();
    let mut is_first = true;
    columns(event, |_, value| {
        if !std::mem::take(&mut is_first) {
            line.push(b',');
        }
        // An empty cell: CSV's way of saying that there is none.
        if let Some(value) = value {
            line.extend_from_slice(digits.format(value).as_bytes());
        }
    });
}

/// An event of a kind, for its columns.
fn of_kind(kind: EventKind) -> Event {
    match kind {
        EventKind::Kernel => Event::Kernel(KernelEvent::default()),
        EventKind::Memcpy => Event::Memcpy(MemcpyEvent::default()),
        EventKind::Memset => Event::Memset(MemsetEvent::default()),
        EventKind::Sync => Event::Sync(SyncEvent::default()),
        EventKind::Graph => Event::Graph(GraphEvent::default()),
        EventKind::Memory => Event::Memory(MemoryEvent::default()),
        EventKind::Pool => Event::Pool(PoolEvent::default()),
        EventKind::Overhead => Event::Overhead(OverheadEvent::default()),
        EventKind::Runtime => Event::Runtime(ApiEvent::default()),
        EventKind::Driver => Event::Driver(ApiEvent::default()),
        EventKind::Marker => Event::Marker(MarkerEvent::default()),
        EventKind::Launch => Event::Launch(LaunchEvent::default()),
    }
}

/// Shows each column with its value, in order.
fn columns(event: &Event, mut show: impl FnMut(&'static str, Option<u64>)) {
    /// Numbers of any width, and names, which there may be none of.
    macro_rules! show {
        ($($name:literal: $value:expr,)*) => {{ $(show($name, cell($value));)* }};
    }
    match event {
        Event::Kernel(k) => show! {
            "start_ns": k.start_ns, "end_ns": k.end_ns, "name_id": Name(k.name_id),
            "device": k.device_id, "context": k.context_id, "stream": k.stream_id, "correlation": k.correlation_id,
            "graph": k.graph_id, "graph_node": k.graph_node_id,
            "grid_x": k.grid[0], "grid_y": k.grid[1], "grid_z": k.grid[2],
            "block_x": k.block[0], "block_y": k.block[1], "block_z": k.block[2],
            "registers": k.registers_per_thread, "static_shared_bytes": k.static_shared_bytes,
            "dynamic_shared_bytes": k.dynamic_shared_bytes, "local_bytes_per_thread": k.local_bytes_per_thread,
        },
        Event::Memcpy(c) => show! {
            "start_ns": c.start_ns, "end_ns": c.end_ns, "bytes": c.bytes,
            "copy_kind": c.copy_kind, "src_kind": c.src_kind, "dst_kind": c.dst_kind, "flags": c.flags,
            "device": c.device_id, "context": c.context_id, "stream": c.stream_id, "correlation": c.correlation_id,
            "graph": c.graph_id, "graph_node": c.graph_node_id,
            "src_device": c.src_device_id, "dst_device": c.dst_device_id,
        },
        Event::Memset(m) => show! {
            "start_ns": m.start_ns, "end_ns": m.end_ns, "bytes": m.bytes,
            "value": m.value, "memory_kind": m.memory_kind, "flags": m.flags,
            "device": m.device_id, "context": m.context_id, "stream": m.stream_id, "correlation": m.correlation_id,
            "graph": m.graph_id, "graph_node": m.graph_node_id,
        },
        Event::Sync(s) => show! {
            "start_ns": s.start_ns, "end_ns": s.end_ns, "sync_kind": s.sync_kind,
            "context": s.context_id, "stream": s.stream_id, "cuda_event": s.cuda_event_id,
            "correlation": s.correlation_id,
        },
        Event::Graph(g) => show! {
            "start_ns": g.start_ns, "end_ns": g.end_ns, "graph": g.graph_id,
            "device": g.device_id, "context": g.context_id, "stream": g.stream_id, "correlation": g.correlation_id,
        },
        Event::Memory(m) => show! {
            "time_ns": m.time_ns, "operation": m.operation, "memory_kind": m.memory_kind, "flags": m.flags,
            "address": m.address, "bytes": m.bytes,
            "device": m.device_id, "context": m.context_id, "stream": m.stream_id, "correlation": m.correlation_id,
            "pool_kind": m.pool_kind, "pool_address": m.pool_address, "pool_size_bytes": m.pool_size_bytes,
            "pool_used_bytes": m.pool_used_bytes,
        },
        Event::Pool(p) => show! {
            "time_ns": p.time_ns, "operation": p.operation, "pool_kind": p.pool_kind, "address": p.address,
            "size_bytes": p.size_bytes, "used_bytes": p.used_bytes,
            "release_threshold_bytes": p.release_threshold_bytes, "keep_bytes": p.keep_bytes,
            "device": p.device_id, "correlation": p.correlation_id,
        },
        Event::Overhead(o) => show! {
            "start_ns": o.start_ns, "end_ns": o.end_ns, "overhead_kind": o.overhead_kind, "thread": o.thread_id,
        },
        Event::Runtime(c) | Event::Driver(c) => show! {
            "start_ns": c.start_ns, "end_ns": c.end_ns, "callback": c.callback_id, "thread": c.thread_id,
            "return_value": c.return_value, "correlation": c.correlation_id,
        },
        Event::Marker(m) => show! {
            "time_ns": m.time_ns, "marker": m.marker_id, "flags": m.flags,
            "name_id": Name(m.name_id), "domain_id": Name(m.domain_id), "thread": m.thread_id,
        },
        Event::Launch(l) => show! {
            "time_ns": l.time_ns, "name_id": Name(l.name_id), "callback": l.callback_id, "thread": l.thread_id,
            "context": l.context_id, "correlation": l.correlation_id,
        },
    }
}

/// The id of a name, or of none.
struct Name(u32);

impl TryFrom<Name> for u64 {
    type Error = ();

    fn try_from(name: Name) -> Result<u64, ()> {
        if name.0 == NO_NAME { Err(()) } else { Ok(u64::from(name.0)) }
    }
}

fn cell(value: impl TryInto<u64>) -> Option<u64> {
    value.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(event: &Event) -> Vec<(String, String)> {
        let mut line = Vec::new();
        row(&mut line, event);
        let line = String::from_utf8(line).expect("ASCII");
        let header = header(event.kind());
        assert_eq!(line.split(',').count(), header.split(',').count());
        header.split(',').map(str::to_owned).zip(line.split(',').map(str::to_owned)).collect()
    }

    fn value<'a>(row: &'a [(String, String)], column: &str) -> &'a str {
        &row.iter().find(|(name, _)| name == column).expect("the column").1
    }

    #[test]
    fn a_kernel_s_columns_hold_what_their_names_say() {
        let event = KernelEvent {
            start_ns: 1,
            end_ns: u64::MAX,
            name_id: NO_NAME,
            correlation_id: 1 << 32 | 4,
            device_id: 5,
            context_id: 6,
            stream_id: 7,
            graph_id: 8,
            graph_node_id: 9,
            grid: [10, 11, 12],
            block: [13, 14, 15],
            registers_per_thread: 16,
            static_shared_bytes: 17,
            dynamic_shared_bytes: 18,
            local_bytes_per_thread: 19,
        };
        let row = cells(&Event::Kernel(event));
        let expected = [
            ("start_ns", "1"),
            ("end_ns", "18446744073709551615"),
            ("name_id", ""),
            ("correlation", "4294967300"),
            ("device", "5"),
            ("context", "6"),
            ("stream", "7"),
            ("graph", "8"),
            ("graph_node", "9"),
            ("grid_x", "10"),
            ("block_z", "15"),
            ("registers", "16"),
            ("static_shared_bytes", "17"),
            ("dynamic_shared_bytes", "18"),
            ("local_bytes_per_thread", "19"),
        ];
        expected.iter().for_each(|(column, expected)| assert_eq!(value(&row, column), *expected, "{column}"));
    }

    /// docs/format.md has every file with exactly its columns.
    #[test]
    fn the_document_names_every_column() {
        let document = include_str!("../../../docs/format.md");
        for &kind in EventKind::ALL {
            let file = format!("`{}`", file_name(kind));
            let row = document.lines().find(|line| line.starts_with('|') && line.contains(&file));
            let row = row.unwrap_or_else(|| panic!("{file} is in no row"));
            let told = row.rsplit('|').nth(1).expect("a last cell").replace('`', "");
            let shape = "grid_x, grid_y, grid_z, block_x, block_y, block_z";
            let columns: Vec<String> =
                told.replace("grid_x … block_z", shape).split(',').map(|c| c.trim().to_owned()).collect();
            assert_eq!(columns.join(","), header(kind), "{file}");
        }
    }

    /// Every field of an event has a column of its own: words that are all different make cells that are.
    #[test]
    fn no_field_is_left_out_and_none_shown_twice() {
        for &kind in EventKind::ALL {
            // Bytes without a repetition, so that no two fields of the same width are alike.
            let words: Vec<u64> =
                (0..12).map(|w| u64::from_le_bytes(std::array::from_fn(|b| w * 8 + b as u8 + 1))).collect();
            let event = Event::decode(kind as u16, &words).expect("a whole event");
            let row = cells(&event);
            let mut values: Vec<_> = row.iter().map(|(_, value)| value).collect();
            let fields = format!("{event:?}").matches(": ").count();
            // Grid and block are one field of three numbers each.
            let arrays = if kind == EventKind::Kernel { 4 } else { 0 };
            assert_eq!(values.len(), fields + arrays, "{event:?}");
            values.sort();
            values.dedup();
            assert_eq!(values.len(), row.len(), "{row:?}");
        }
    }
}
