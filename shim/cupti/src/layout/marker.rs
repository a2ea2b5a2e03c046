//! Marker records (`MARKER`): what an application marks with NVTX.

use std::ffi::c_char;

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of a marker record lie.
    layout MarkerLayout;
    /// One moment: a mark, or the start or the end of a range, which share an id.
    record MarkerRecord;
    always {
        /// `ACTIVITY_FLAG_MARKER_…`.
        flags: u32,
        /// 0 where CUPTI has no time.
        timestamp_ns: u64,
        id: u32,
        /// `ACTIVITY_OBJECT_…`: which of the ids below mean something.
        object_kind: u32,
        /// Of a process or a thread. (Of a device, a context or a stream: the device's id.)
        process_id: u32,
        /// Of a thread. (Of a context or a stream: the context's id.)
        thread_id: u32,
        /// NUL-terminated, owned by CUPTI; null at the end of a range.
        name: *const c_char,
        /// NUL-terminated, owned by CUPTI; null for the default domain.
        domain: *const c_char,
    }
    later {}
}

/// One struct for all.
pub(super) const fn for_version(_cupti_version: u32) -> &'static MarkerLayout {
    &MARKER2
}

const MARKER2: MarkerLayout = MarkerLayout {
    structure: "CUpti_ActivityMarker2",
    size_bytes: 56,
    flags: Field::at(4),
    timestamp_ns: Field::at(8),
    id: Field::at(16),
    object_kind: Field::at(20),
    process_id: Field::at(24),
    thread_id: Field::at(28),
    name: Field::at(40),
    domain: Field::at(48),
};

const _: () = assert!(MARKER2.fits());
