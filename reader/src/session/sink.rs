//! Where a session puts what it reads, beside the model.

use crate::recording::RecordError;
use crate::symbols::{Cubin, CubinError};
use gputap_ringbuf::event::Event;

/// A cubin that was read for the first time.
#[derive(Debug)]
pub struct StoredCubin<'a> {
    /// Its slot in the store: what later calls name it by.
    pub slot: u32,
    pub bytes: &'a [u8],
    /// CRC-32 of all bytes.
    pub crc32: u32,
    pub parsed: Result<&'a Cubin, &'a CubinError>,
    /// Loads so far.
    pub loads: u64,
    /// CLOCK_MONOTONIC of the first load, nanoseconds.
    pub first_ns: u64,
}

/// Takes events, names and cubins as they are read. An error ends nothing: the session has counted the event, and
/// hands the first error of a step to its caller.
pub trait EventSink {
    /// The mangled name of a slot, once, before the first event that refers to it.
    fn name(&mut self, slot: u32, mangled: &[u8]) -> Result<(), RecordError>;

    /// Any other text of a slot, of an NVTX range, say; once, before the first event that refers to it.
    fn text(&mut self, slot: u32, text: &[u8]) -> Result<(), RecordError>;

    fn event(&mut self, event: &Event) -> Result<(), RecordError>;

    fn cubin(&mut self, cubin: &StoredCubin<'_>) -> Result<(), RecordError>;

    /// CUPTI's checksum of a cubin, or why there is none; once a slot.
    fn cupti_crc(&mut self, slot: u32, crc: Result<u64, &str>) -> Result<(), RecordError>;

    /// The step is over: whole lines may go to their files.
    fn step_ends(&mut self) -> Result<(), RecordError>;
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl EventSink for NoSink {
    fn name(&mut self, _slot: u32, _mangled: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }

    fn text(&mut self, _slot: u32, _text: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }

    fn event(&mut self, _event: &Event) -> Result<(), RecordError> {
        Ok(())
    }

    fn cubin(&mut self, _cubin: &StoredCubin<'_>) -> Result<(), RecordError> {
        Ok(())
    }

    fn cupti_crc(&mut self, _slot: u32, _crc: Result<u64, &str>) -> Result<(), RecordError> {
        Ok(())
    }

    fn step_ends(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}

/// A sink and the first error that it gave in a step; after an error it gets nothing more in that step.
pub(super) struct Guarded<'a> {
    sink: &'a mut dyn EventSink,
    error: Option<RecordError>,
}

impl<'a> Guarded<'a> {
    pub fn new(sink: &'a mut dyn EventSink) -> Guarded<'a> {
        Guarded { sink, error: None }
    }

    pub fn put(&mut self, put: impl FnOnce(&mut dyn EventSink) -> Result<(), RecordError>) {
        if self.error.is_none() {
            self.error = put(self.sink).err();
        }
    }

    pub fn finish(self) -> Result<(), RecordError> {
        self.error.map_or(Ok(()), Err)
    }
}
