//! Memory pool records (`MEMORY_POOL`): pools that are made, destroyed and trimmed.

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of a memory pool record lie.
    layout MemoryPoolLayout;
    /// One operation on a memory pool.
    record MemoryPoolRecord;
    always {
        /// `ACTIVITY_MEMORY_POOL_OPERATION_TYPE_…`.
        operation_type: u32,
        /// `ACTIVITY_MEMORY_POOL_TYPE_…`.
        pool_type: u32,
        /// The call's.
        correlation_id: u32,
        process_id: u32,
        device_id: u32,
        /// What a trim leaves; valid for trims.
        min_bytes_to_keep: u64,
        address: u64,
        /// Of a local pool.
        pool_size_bytes: u64,
        /// Of a local pool.
        release_threshold_bytes: u64,
        /// When the operation began.
        timestamp_ns: u64,
        /// Of a local pool.
        utilized_bytes: u64,
    }
    later {
        /// 1 for managed memory, 0 for pinned. From 13.0 on.
        is_managed: u8,
    }
}

pub(super) const fn for_version(cupti_version: u32) -> &'static MemoryPoolLayout {
    match cupti_version {
        ..130_000 => &MEMORY_POOL2,
        130_000.. => &MEMORY_POOL3,
    }
}

const MEMORY_POOL2: MemoryPoolLayout = MemoryPoolLayout {
    structure: "CUpti_ActivityMemoryPool2",
    size_bytes: 72,
    operation_type: Field::at(4),
    pool_type: Field::at(8),
    correlation_id: Field::at(12),
    process_id: Field::at(16),
    device_id: Field::at(20),
    min_bytes_to_keep: Field::at(24),
    address: Field::at(32),
    pool_size_bytes: Field::at(40),
    release_threshold_bytes: Field::at(48),
    timestamp_ns: Field::at(56),
    utilized_bytes: Field::at(64),
    is_managed: None,
};

const MEMORY_POOL3: MemoryPoolLayout = MemoryPoolLayout {
    structure: "CUpti_ActivityMemoryPool3",
    size_bytes: 80,
    is_managed: Some(Field::at(72)),
    ..MEMORY_POOL2
};

const _: () = assert!(MEMORY_POOL2.fits() && MEMORY_POOL3.fits());
