//! Synchronization records (`SYNCHRONIZATION`): calls that wait for an event, a stream or a context.

use super::field::{Field, record_layout};

record_layout! {
    /// Where the fields of a synchronization record lie.
    layout SynchronizationLayout;
    /// One call that waited, or made a stream wait.
    record SynchronizationRecord;
    always {
        /// `ACTIVITY_SYNCHRONIZATION_TYPE_…`.
        synchronization_type: u32,
        /// 0 where CUPTI has no time.
        start_ns: u64,
        /// 0 where CUPTI has no time.
        end_ns: u64,
        /// The call's.
        correlation_id: u32,
        /// Of a stream or an event, the context that it was made in.
        context_id: u32,
        /// `SYNCHRONIZATION_INVALID_VALUE` where the call named no stream.
        stream_id: u32,
        /// `SYNCHRONIZATION_INVALID_VALUE` where the call named no event.
        cuda_event_id: u32,
    }
    later {
        /// Tells apart the records of one event that is used again: `CUpti_ActivityCudaEvent2` and later have it too.
        /// `SYNCHRONIZATION_INVALID_VALUE`, the header says, where the call named no event. From 12.8 on.
        cuda_event_sync_id: u64,
        /// The call's `CUresult`: a query of what is not finished yet returns one that is not 0. From 12.8 on.
        return_value: u32,
    }
}

pub(super) const fn for_version(cupti_version: u32) -> &'static SynchronizationLayout {
    match cupti_version {
        ..26 => &SYNCHRONIZATION,
        26.. => &SYNCHRONIZATION2,
    }
}

const SYNCHRONIZATION: SynchronizationLayout = SynchronizationLayout {
    structure: "CUpti_ActivitySynchronization",
    size_bytes: 40,
    synchronization_type: Field::at(4),
    start_ns: Field::at(8),
    end_ns: Field::at(16),
    correlation_id: Field::at(24),
    context_id: Field::at(28),
    stream_id: Field::at(32),
    cuda_event_id: Field::at(36),
    cuda_event_sync_id: None,
    return_value: None,
};

const SYNCHRONIZATION2: SynchronizationLayout = SynchronizationLayout {
    structure: "CUpti_ActivitySynchronization2",
    size_bytes: 56,
    cuda_event_sync_id: Some(Field::at(40)),
    return_value: Some(Field::at(48)),
    ..SYNCHRONIZATION
};

const _: () = assert!(SYNCHRONIZATION.fits() && SYNCHRONIZATION2.fits());
