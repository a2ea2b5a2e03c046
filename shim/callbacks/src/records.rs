//! The two CUPTI calls that a callback may make, and only in buffer-completed, which CUPTI's own threads run: walking
//! the records of a buffer and asking how many were dropped.

use gputap_cupti::{
    abi::{ActivityGetNextRecord, ActivityGetNumDroppedRecords, CuContext},
    constants::CuptiResult,
};

/// The exempted calls. Whoever has this can make no other CUPTI call.
#[derive(Clone, Copy)]
pub struct RecordApi {
    pub next_record: ActivityGetNextRecord,
    /// Where CUPTI has it.
    pub dropped_records: Option<ActivityGetNumDroppedRecords>,
}

/// The records of one completed buffer, in order.
pub struct Records<'a> {
    api: &'a RecordApi,
    buffer: *mut u8,
    valid_bytes: usize,
    record: *mut u8,
    /// No record is shorter than 8 bytes: a bound on the walk, whatever CUPTI says.
    left: usize,
    /// The walk ended before its end: what followed is unknown.
    broken: bool,
}

/// One record and the bytes from its start to the buffer's valid end.
#[derive(Clone, Copy)]
pub struct RawRecord {
    pub start: *const u8,
    pub available_bytes: usize,
}

impl RecordApi {
    /// Without them, no buffer is ever completed.
    pub fn of(calls: Option<(ActivityGetNextRecord, Option<ActivityGetNumDroppedRecords>)>) -> RecordApi {
        unsafe extern "C" fn no_record(_: *mut u8, _: usize, _: *mut *mut u8) -> CuptiResult {
            CuptiResult::MAX_LIMIT_REACHED
        }
        let (next_record, dropped_records) = calls.unwrap_or((no_record, None));
        RecordApi { next_record, dropped_records }
    }

    /// # Safety
    /// `buffer` was just handed to buffer-completed with `valid_bytes` of records, and stays for `'_`.
    pub unsafe fn records(&self, buffer: *mut u8, valid_bytes: usize) -> Records<'_> {
        Records { api: self, buffer, valid_bytes, record: std::ptr::null_mut(), left: valid_bytes / 8, broken: false }
    }

    /// Records that CUPTI dropped since it was last asked; `None` where it does not say.
    ///
    /// # Safety
    /// `context` and `stream_id` are what CUPTI passed to the buffer-completed callback that this is.
    pub unsafe fn dropped(&self, context: CuContext, stream_id: u32) -> Option<u64> {
        let mut dropped = 0;
        // SAFETY: `dropped` may be written; context and stream are the caller's promise.
        let result = unsafe { (self.dropped_records?)(context, stream_id, &mut dropped) };
        (result == CuptiResult::SUCCESS).then_some(dropped as u64)
    }
}

impl Records<'_> {
    /// Whether CUPTI could not show all of the records, once the walk is over.
    pub fn is_broken(&self) -> bool {
        self.broken
    }
}

impl Iterator for Records<'_> {
    type Item = RawRecord;

    fn next(&mut self) -> Option<RawRecord> {
        self.left = self.left.checked_sub(1)?;
        // SAFETY: the promise of `records`; `record` is null or what the call gave last.
        let result = unsafe { (self.api.next_record)(self.buffer, self.valid_bytes, &mut self.record) };
        let offset = (self.record as usize).wrapping_sub(self.buffer as usize);
        // MAX_LIMIT_REACHED is the end; anything else is too, since nothing can be told of what follows. Four bytes
        // are the record's kind.
        if result != CuptiResult::SUCCESS || offset > self.valid_bytes.saturating_sub(4) {
            self.broken = result != CuptiResult::MAX_LIMIT_REACHED;
            return None;
        }
        Some(RawRecord { start: self.record, available_bytes: self.valid_bytes - offset })
    }
}
