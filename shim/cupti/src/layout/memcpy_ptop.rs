//! Records of copies between devices (`MEMCPY2`).

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of a record of a copy between devices lie.
    layout MemcpyPtopLayout;
    /// One copy from a device to another.
    record MemcpyPtopRecord;
    always {
        /// `CUpti_ActivityMemcpyKind`: 10 between devices.
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
        /// The device that copies.
        device_id: u32,
        /// Of the device that copies.
        context_id: u32,
        stream_id: u32,
        src_device_id: u32,
        src_context_id: u32,
        dst_device_id: u32,
        dst_context_id: u32,
        correlation_id: u32,
        /// 0 where no graph launched it.
        graph_node_id: u64,
        /// 0 where no graph launched it.
        graph_id: u32,
        channel_id: u32,
        /// `CUpti_ChannelType`: 1 compute, 2 asynchronous copies.
        channel_type: u32,
    }
    later {}
}

/// One struct for all: unlike those of copies and sets, it has not grown.
pub(super) const fn for_version(_cupti_version: u32) -> &'static MemcpyPtopLayout {
    &MEMCPY_PTOP4
}

const MEMCPY_PTOP4: MemcpyPtopLayout = MemcpyPtopLayout {
    structure: "CUpti_ActivityMemcpyPtoP4",
    size_bytes: 96,
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
    src_device_id: Field::at(44),
    src_context_id: Field::at(48),
    dst_device_id: Field::at(52),
    dst_context_id: Field::at(56),
    correlation_id: Field::at(60),
    graph_node_id: Field::at(72),
    graph_id: Field::at(80),
    channel_id: Field::at(84),
    channel_type: Field::at(88),
};

const _: () = assert!(MEMCPY_PTOP4.fits());
