//! Ranges of NVTX, whole: both ends brought together.

use crate::times::Span;
use gputap_ringbuf::event::MarkerEvent;
use std::collections::HashMap;

/// Open at a time; one that begins then is left out, and counted.
const OPEN_MAX: usize = 1 << 18;
const MARK: u32 = 1;
const START: u32 = 2;

#[derive(Debug, Default)]
pub struct Ranges {
    open: HashMap<u32, MarkerEvent>,
    left_out: u64,
}

impl Ranges {
    /// A range that is whole now: where it lies, and its beginning.
    pub fn marker(&mut self, marker: &MarkerEvent) -> Option<(Span, MarkerEvent)> {
        match marker.flags {
            MARK => Some((Span { start_ns: marker.time_ns, end_ns: marker.time_ns }, *marker)),
            START if self.open.len() >= OPEN_MAX => {
                self.left_out += 1;
                None
            }
            START => {
                self.left_out += u64::from(self.open.insert(marker.marker_id, *marker).is_some());
                None
            }
            _ => {
                let begin = self.open.remove(&marker.marker_id)?;
                Some((Span { start_ns: begin.time_ns, end_ns: marker.time_ns.max(begin.time_ns) }, begin))
            }
        }
    }

    /// How many never ended, or had no room.
    pub fn left_out(&self) -> u64 {
        self.left_out + self.open.len() as u64
    }
}
