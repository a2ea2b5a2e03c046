//! Buffer completed: CUPTI's records become compact events in the lane of the thread that CUPTI calls on.

use crate::{
    events::{self, Writer},
    records::RawRecord,
    tapped::Tapped,
    thread,
    times::Times,
};
use gputap_cupti::abi::CuContext;
use gputap_ringbuf::{event::EventKind, header::counters::Counter, lane::directory::Refused, process::monotonic_ns};

/// Reads a completed buffer and gives it back to the pool.
///
/// # Safety
/// The arguments are what CUPTI passes to buffer-completed, and this is such a callback.
pub unsafe fn completed(tapped: &Tapped, context: CuContext, stream_id: u32, buffer: *mut u8, valid_bytes: usize) {
    let start_ns = monotonic_ns();
    if !tapped.pool.is_spare(buffer) {
        // SAFETY: the caller's promise; the buffer is given back only afterwards.
        let mut records = unsafe { tapped.records.records(buffer, valid_bytes) };
        let wanted = records.by_ref().filter_map(|raw| wanted(tapped, raw));
        match tapped.tap.enter_lane(thread::pointer(), thread::id()) {
            Ok(lane) => {
                let mut writer = Writer { tapped, times: Times::new(tapped, start_ns), lane };
                // An event that is too short for its layout is not there, and not nothing.
                let broken = wanted.filter(|(kind, raw)| writer.write(*kind, *raw).is_none()).count();
                tapped.tap.count(Counter::PoolEmpty, broken as u64);
            }
            Err(Refused::NoLane) => tapped.tap.count(Counter::NoLane, wanted.count() as u64),
            Err(Refused::Nested) => tapped.tap.count(Counter::Nested, wanted.count() as u64),
        }
        if records.is_broken() {
            tapped.tap.count(Counter::PoolEmpty, 1);
        }
        tapped.pool.give_back(buffer);
    }
    // SAFETY: the caller's promise.
    if let Some(dropped) = unsafe { tapped.records.dropped(context, stream_id) } {
        tapped.tap.count(Counter::CuptiDropped, dropped);
    }
    tapped.tap.count(Counter::BuffersCompleted, 1);
    tapped.tap.count(Counter::CompletedNs, monotonic_ns().saturating_sub(start_ns));
}

/// The record with its kind, if it is an event and asked for; else it is counted. Records of kinds that CUPTI keeps on
/// come in any case.
fn wanted(tapped: &Tapped, raw: RawRecord) -> Option<(EventKind, RawRecord)> {
    let Some(kind) = events::event_kind(&raw) else {
        tapped.tap.count(Counter::UnknownRecords, 1);
        return None;
    };
    if matches!(kind, EventKind::Kernel | EventKind::Graph) {
        tapped.see_work();
    }
    if !tapped.wants(kind) {
        tapped.tap.count(Counter::Unwanted, 1);
        events::let_go(tapped, kind, raw);
        return None;
    }
    Some((kind, raw))
}
