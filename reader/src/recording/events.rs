//! Events as lines of comma-separated numbers, one file a kind. docs/format.md describes the columns.

use gputap_ringbuf::event::{KernelEvent, MemcpyEvent, MemsetEvent, NO_NAME};

pub(super) const KERNEL_HEADER: &str = "start_ns,end_ns,name_id,device,context,stream,correlation,graph,graph_node,\
    grid_x,grid_y,grid_z,block_x,block_y,block_z,registers,static_shared_bytes,dynamic_shared_bytes,\
    local_bytes_per_thread";
pub(super) const COPY_HEADER: &str = "start_ns,end_ns,bytes,copy_kind,src_kind,dst_kind,flags,device,context,stream,\
    correlation,graph,graph_node";
pub(super) const MEMSET_HEADER: &str = "start_ns,end_ns,bytes,value,memory_kind,flags,device,context,stream,\
    correlation,graph,graph_node";

pub(super) fn kernel(line: &mut Vec<u8>, event: &KernelEvent) {
    let k = event;
    // An empty cell: CSV's way of saying that there is none.
    let name_id = (k.name_id != NO_NAME).then_some(u64::from(k.name_id));
    let place = [k.device_id, k.context_id, k.stream_id, k.correlation_id, k.graph_id].map(u64::from);
    let shape = [k.grid, k.block].concat().into_iter().map(u64::from);
    let memory = [k.static_shared_bytes, k.dynamic_shared_bytes, k.local_bytes_per_thread].map(u64::from);
    number(line, k.start_ns);
    cell(line, Some(k.end_ns));
    cell(line, name_id);
    cells(line, place);
    cell(line, Some(k.graph_node_id));
    cells(line, shape);
    cell(line, Some(u64::from(k.registers_per_thread)));
    cells(line, memory);
}

pub(super) fn copy(line: &mut Vec<u8>, event: &MemcpyEvent) {
    let c = event;
    number(line, c.start_ns);
    cells(line, [c.end_ns, c.bytes]);
    cells(line, [c.copy_kind, c.src_kind, c.dst_kind, c.flags].map(u64::from));
    cells(line, [c.device_id, c.context_id, c.stream_id, c.correlation_id, c.graph_id].map(u64::from));
    cell(line, Some(c.graph_node_id));
}

pub(super) fn memset(line: &mut Vec<u8>, event: &MemsetEvent) {
    let m = event;
    number(line, m.start_ns);
    cells(line, [m.end_ns, m.bytes, u64::from(m.value), u64::from(m.memory_kind), u64::from(m.flags)]);
    cells(line, [m.device_id, m.context_id, m.stream_id, m.correlation_id, m.graph_id].map(u64::from));
    cell(line, Some(m.graph_node_id));
}

fn cells(line: &mut Vec<u8>, values: impl IntoIterator<Item = u64>) {
    values.into_iter().for_each(|value| cell(line, Some(value)));
}

fn cell(line: &mut Vec<u8>, value: Option<u64>) {
    line.push(b',');
    if let Some(value) = value {
        number(line, value);
    }
}

fn number(line: &mut Vec<u8>, value: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(header: &str, write: impl FnOnce(&mut Vec<u8>)) -> Vec<(String, String)> {
        let mut line = Vec::new();
        write(&mut line);
        let line = String::from_utf8(line).expect("ASCII");
        assert_eq!(line.split(',').count(), header.split(',').count());
        header.split(',').map(str::to_owned).zip(line.split(',').map(str::to_owned)).collect()
    }

    fn value<'a>(row: &'a [(String, String)], column: &str) -> &'a str {
        &row.iter().find(|(name, _)| name == column).expect("the column").1
    }

    #[test]
    fn every_column_holds_what_its_name_says() {
        let event = KernelEvent {
            start_ns: 1,
            end_ns: u64::MAX,
            name_id: NO_NAME,
            correlation_id: 4,
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
        let row = row(KERNEL_HEADER, |line| kernel(line, &event));
        let expected = [
            ("start_ns", "1"),
            ("end_ns", "18446744073709551615"),
            ("name_id", ""),
            ("correlation", "4"),
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

    #[test]
    fn copies_and_memsets_too() {
        let event = MemcpyEvent {
            start_ns: 1,
            bytes: 3,
            copy_kind: 4,
            dst_kind: 6,
            correlation_id: 9,
            graph_node_id: 12,
            ..Default::default()
        };
        let copied = row(COPY_HEADER, |line| copy(line, &event));
        for (column, expected) in
            [("bytes", "3"), ("copy_kind", "4"), ("dst_kind", "6"), ("correlation", "9"), ("graph_node", "12")]
        {
            assert_eq!(value(&copied, column), expected, "{column}");
        }
        let event = MemsetEvent { bytes: 3, value: 4, memory_kind: 5, flags: 6, stream_id: 7, ..Default::default() };
        let set = row(MEMSET_HEADER, |line| memset(line, &event));
        for (column, expected) in
            [("bytes", "3"), ("value", "4"), ("memory_kind", "5"), ("flags", "6"), ("stream", "7")]
        {
            assert_eq!(value(&set, column), expected, "{column}");
        }
    }
}
