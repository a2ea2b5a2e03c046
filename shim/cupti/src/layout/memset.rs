//! Memset records (`MEMSET`).

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of a memset record lie.
    layout MemsetLayout;
    /// One memset.
    record MemsetRecord;
    always {
        value: u32,
        filled_bytes: u64,
        /// 0 where CUPTI has no time.
        start_ns: u64,
        /// 0 where CUPTI has no time.
        end_ns: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        correlation_id: u32,
        /// `ACTIVITY_FLAG_MEMSET_ASYNC` or 0.
        flags: u16,
        /// `CUpti_ActivityMemoryKind` written to.
        memory_kind: u16,
        /// 0 where no graph launched it.
        graph_node_id: u64,
        /// 0 where no graph launched it.
        graph_id: u32,
        /// `INVALID_CHANNEL_ID` where launched from the device.
        channel_id: u32,
        /// `CUpti_ChannelType`: 1 compute, 2 asynchronous copies.
        channel_type: u32,
    }
    later {
        /// 1 as part of a graph that was launched from the device. From 13.0 on.
        device_launched: u8,
        /// The graph that the node was instantiated from; 0 where no graph launched it. From 13.4 on.
        source_graph_id: u32,
        /// The node that the node was instantiated from; 0 where no graph launched it. From 13.4 on.
        source_graph_node_id: u64,
    }
}

pub(super) const fn for_version(cupti_version: u32) -> &'static MemsetLayout {
    match cupti_version {
        ..130_000 => &MEMSET4,
        130_000..130_400 => &MEMSET4_CUDA13,
        130_400.. => &MEMSET5,
    }
}

const MEMSET4: MemsetLayout = MemsetLayout {
    structure: "CUpti_ActivityMemset4",
    size_bytes: 88,
    value: Field::at(4),
    filled_bytes: Field::at(8),
    start_ns: Field::at(16),
    end_ns: Field::at(24),
    device_id: Field::at(32),
    context_id: Field::at(36),
    stream_id: Field::at(40),
    correlation_id: Field::at(44),
    flags: Field::at(48),
    memory_kind: Field::at(50),
    graph_node_id: Field::at(64),
    graph_id: Field::at(72),
    channel_id: Field::at(76),
    channel_type: Field::at(80),
    device_launched: None,
    source_graph_id: None,
    source_graph_node_id: None,
};

/// The same struct by name; 13.0 put a field into its padding, whose bytes before are not promised to be 0.
const MEMSET4_CUDA13: MemsetLayout = MemsetLayout { device_launched: Some(Field::at(84)), ..MEMSET4 };

const MEMSET5: MemsetLayout = MemsetLayout {
    structure: "CUpti_ActivityMemset5",
    size_bytes: 104,
    source_graph_id: Some(Field::at(88)),
    source_graph_node_id: Some(Field::at(96)),
    ..MEMSET4_CUDA13
};

const _: () = assert!(MEMSET4.fits() && MEMSET4_CUDA13.fits() && MEMSET5.fits());
