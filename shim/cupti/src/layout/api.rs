//! Call records (`RUNTIME` and `DRIVER`, which share a struct): calls of CUDA's functions.

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of a call record lie.
    layout ApiLayout;
    /// One call of a function of the runtime or the driver.
    record ApiRecord;
    always {
        /// The function, as the callbacks of its domain number them.
        callback_id: u32,
        /// 0 where CUPTI has no time.
        start_ns: u64,
        /// 0 where CUPTI has no time.
        end_ns: u64,
        process_id: u32,
        thread_id: u32,
        /// What the records of the work that the call started carry.
        correlation_id: u32,
        /// A `CUresult` from the driver, a `cudaError_t` from the runtime.
        return_value: u32,
    }
    later {}
}

/// One struct for all.
pub(super) const fn for_version(_cupti_version: u32) -> &'static ApiLayout {
    &API
}

const API: ApiLayout = ApiLayout {
    structure: "CUpti_ActivityAPI",
    size_bytes: 40,
    callback_id: Field::at(4),
    start_ns: Field::at(8),
    end_ns: Field::at(16),
    process_id: Field::at(24),
    thread_id: Field::at(28),
    correlation_id: Field::at(32),
    return_value: Field::at(36),
};

const _: () = assert!(API.fits());
