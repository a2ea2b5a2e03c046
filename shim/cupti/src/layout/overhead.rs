//! Overhead records (`OVERHEAD`): time that CUPTI and the driver took for themselves.

use std::ffi::c_void;

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of an overhead record lie.
    layout OverheadLayout;
    /// One span of overhead.
    record OverheadRecord;
    always {
        /// `ACTIVITY_OVERHEAD_…`.
        overhead_kind: u32,
        /// `ACTIVITY_OBJECT_…`: which of the ids below mean something.
        object_kind: u32,
        /// Of a process or a thread. (Of a device, a context or a stream: the device's id.)
        process_id: u32,
        /// Of a thread. (Of a context or a stream: the context's id.)
        thread_id: u32,
        /// 0 where CUPTI has no time.
        start_ns: u64,
        /// 0 where CUPTI has no time.
        end_ns: u64,
    }
    later {
        /// The call that it happened in; 0 where there is none, as for the flush of a buffer. From 12.3 on.
        correlation_id: u32,
        /// Details, for some kinds of overhead. Whoever reads the record owns the memory, and has to `free` it.
        /// From 12.4 on.
        details: *mut c_void,
    }
}

pub(super) const fn for_version(cupti_version: u32) -> &'static OverheadLayout {
    match cupti_version {
        ..21 => &OVERHEAD,
        21 => &OVERHEAD2,
        22.. => &OVERHEAD3,
    }
}

const OVERHEAD: OverheadLayout = OverheadLayout {
    structure: "CUpti_ActivityOverhead",
    size_bytes: 40,
    overhead_kind: Field::at(4),
    object_kind: Field::at(8),
    process_id: Field::at(12),
    thread_id: Field::at(16),
    start_ns: Field::at(24),
    end_ns: Field::at(32),
    correlation_id: None,
    details: None,
};

const OVERHEAD2: OverheadLayout = OverheadLayout {
    structure: "CUpti_ActivityOverhead2",
    size_bytes: 48,
    correlation_id: Some(Field::at(40)),
    ..OVERHEAD
};

const OVERHEAD3: OverheadLayout =
    OverheadLayout { structure: "CUpti_ActivityOverhead3", size_bytes: 56, details: Some(Field::at(48)), ..OVERHEAD2 };

const _: () = assert!(OVERHEAD.fits() && OVERHEAD2.fits() && OVERHEAD3.fits());
