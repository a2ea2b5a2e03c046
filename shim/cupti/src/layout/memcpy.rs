//! Copy records (`MEMCPY`). Copies between devices (`MEMCPY2`) have another struct: `memcpy_ptop.rs`.

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of a copy record lie.
    layout MemcpyLayout;
    /// One copy, or, from 12.8 on, a batch of them.
    record MemcpyRecord;
    always {
        /// `CUpti_ActivityMemcpyKind`: 1 to the device, 2 to the host, 8 within the device, and others.
        copy_kind: u8,
        /// `CUpti_ActivityMemoryKind` read from.
        src_kind: u8,
        /// `CUpti_ActivityMemoryKind` written to.
        dst_kind: u8,
        /// `ACTIVITY_FLAG_MEMCPY_ASYNC` or 0.
        flags: u8,
        copied_bytes: u64,
        /// 0 where CUPTI has no time.
        start_ns: u64,
        /// 0 where CUPTI has no time.
        end_ns: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        /// The driver call's.
        correlation_id: u32,
        /// The runtime call's.
        runtime_correlation_id: u32,
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
        /// The copies that a batched call made, 1 for any other. From 12.8 on.
        copy_count: u64,
        /// 1 as part of a graph that was launched from the device. From 13.0 on.
        device_launched: u8,
        /// The graph that the node was instantiated from; 0 where no graph launched it. From 13.4 on.
        source_graph_id: u32,
        /// The node that the node was instantiated from; 0 where no graph launched it. From 13.4 on.
        source_graph_node_id: u64,
    }
}

pub(super) const fn for_version(cupti_version: u32) -> &'static MemcpyLayout {
    match cupti_version {
        ..26 => &MEMCPY5,
        26..130_000 => &MEMCPY6,
        130_000..130_400 => &MEMCPY6_CUDA13,
        130_400.. => &MEMCPY7,
    }
}

const MEMCPY5: MemcpyLayout = MemcpyLayout {
    structure: "CUpti_ActivityMemcpy5",
    size_bytes: 88,
    copy_kind: Field::at(4),
    src_kind: Field::at(5),
    dst_kind: Field::at(6),
    flags: Field::at(7),
    copied_bytes: Field::at(8),
    start_ns: Field::at(16),
    end_ns: Field::at(24),
    device_id: Field::at(32),
    context_id: Field::at(36),
    stream_id: Field::at(40),
    correlation_id: Field::at(44),
    runtime_correlation_id: Field::at(48),
    graph_node_id: Field::at(64),
    graph_id: Field::at(72),
    channel_id: Field::at(76),
    channel_type: Field::at(80),
    copy_count: None,
    device_launched: None,
    source_graph_id: None,
    source_graph_node_id: None,
};

const MEMCPY6: MemcpyLayout =
    MemcpyLayout { structure: "CUpti_ActivityMemcpy6", size_bytes: 96, copy_count: Some(Field::at(88)), ..MEMCPY5 };

/// The same struct by name; 13.0 put a field into its padding, whose bytes before are not promised to be 0.
const MEMCPY6_CUDA13: MemcpyLayout = MemcpyLayout { device_launched: Some(Field::at(84)), ..MEMCPY6 };

const MEMCPY7: MemcpyLayout = MemcpyLayout {
    structure: "CUpti_ActivityMemcpy7",
    size_bytes: 112,
    source_graph_id: Some(Field::at(96)),
    source_graph_node_id: Some(Field::at(104)),
    ..MEMCPY6_CUDA13
};

const _: () = assert!(MEMCPY5.fits() && MEMCPY6.fits() && MEMCPY6_CUDA13.fits() && MEMCPY7.fits());
