//! Memory records (`MEMORY2`): allocations and frees, one record each. The older kind `MEMORY` is not read.

use std::ffi::c_char;

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of a memory record lie.
    layout MemoryLayout;
    /// One allocation or one free.
    record MemoryRecord;
    always {
        /// `ACTIVITY_MEMORY_OPERATION_TYPE_…`.
        operation_type: u32,
        /// `ACTIVITY_MEMORY_KIND_…`.
        memory_kind: u32,
        /// The call's.
        correlation_id: u32,
        address: u64,
        allocated_bytes: u64,
        /// When the operation began.
        timestamp_ns: u64,
        process_id: u32,
        device_id: u32,
        /// `invalid_id` of the version without a context.
        context_id: u32,
        /// `invalid_id` of the version where the operation is not in a stream's order.
        stream_id: u32,
        /// A variable's name, owned by CUPTI, or null.
        name: *const c_char,
        /// Not 0 where the operation is in a stream's order.
        is_async: u32,
        /// `ACTIVITY_MEMORY_POOL_TYPE_…`; the other fields of the pool mean nothing without a pool.
        pool_type: u32,
        pool_address: u64,
        /// Of a local pool.
        pool_release_threshold_bytes: u64,
        /// The size of a local pool in bytes; of an imported pool the id of the process.
        pool_size_bytes_or_process_id: u64,
        /// Of a local pool.
        pool_utilized_bytes: u64,
    }
    later {
        /// The path of the shared object that asked for the memory, where `cuptiActivityEnableAllocationSource` is on.
        /// From 12.6 on.
        source: *const c_char,
    }
}

pub(super) const fn for_version(cupti_version: u32) -> &'static MemoryLayout {
    match cupti_version {
        ..24 => &MEMORY3,
        24.. => &MEMORY4,
    }
}

const MEMORY3: MemoryLayout = MemoryLayout {
    structure: "CUpti_ActivityMemory3",
    size_bytes: 120,
    operation_type: Field::at(4),
    memory_kind: Field::at(8),
    correlation_id: Field::at(12),
    address: Field::at(16),
    allocated_bytes: Field::at(24),
    timestamp_ns: Field::at(32),
    process_id: Field::at(48),
    device_id: Field::at(52),
    context_id: Field::at(56),
    stream_id: Field::at(60),
    name: Field::at(64),
    is_async: Field::at(72),
    pool_type: Field::at(80),
    pool_address: Field::at(88),
    pool_release_threshold_bytes: Field::at(96),
    pool_size_bytes_or_process_id: Field::at(104),
    pool_utilized_bytes: Field::at(112),
    source: None,
};

const MEMORY4: MemoryLayout =
    MemoryLayout { structure: "CUpti_ActivityMemory4", size_bytes: 128, source: Some(Field::at(120)), ..MEMORY3 };

const _: () = assert!(MEMORY3.fits() && MEMORY4.fits());
