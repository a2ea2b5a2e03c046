//! Where everything lies in a segment: numbers both sides compute alike, from sizes in the header.
//!
//! ```text
//! word 0            identity and sizes (written once, magic last)
//! STATUS            state, reason, detail text, heartbeat, clock points   (timer thread)
//! COUNTERS          one cache line a counter                              (any thread)
//! LANE_HEADERS      LANE_HEADER_WORDS a lane
//! cubin store       control line, slots
//! definitions store control line, slots
//! ------------------ page boundary: everything above is reserved when the segment is made
//! lane 0 .. n-1     chunks of 64 KiB, reserved lane by lane
//! cubin bytes       reserved ahead in steps
//! definition bytes  reserved ahead in steps
//! ```
//! All positions are in 64-bit words, native (little) endian; x86_64 and aarch64 share the layout. Page boundaries are
//! those of the largest pages in use, 64 KiB on some aarch64 kernels: only whole pages can be reserved.

use crossbeam_utils::CachePadded;
use std::sync::atomic::AtomicU64;

/// "gputapRB" as bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"gputapRB");
/// Readers refuse another major.
pub const ABI_MAJOR: u32 = 3;
/// Grows with additions that old readers can skip.
pub const ABI_MINOR: u32 = 0;

/// Words that no two threads' counters share: a pair of cache lines, as crossbeam pads.
pub const LINE: usize = 16;
const _: () = assert!(size_of::<CachePadded<AtomicU64>>() == LINE * 8, "the ABI fixes 128-byte lines");

pub const PAGE_BYTES: usize = 64 * 1024;
#[cfg(not(loom))]
pub const CHUNK_WORDS: usize = 64 * 1024 / 8;
/// Small enough for loom to see a lane lapped within a few records.
#[cfg(loom)]
pub const CHUNK_WORDS: usize = 8;

/// Words of the identity block; each constant is the index of a word.
pub mod ident {
    pub const MAGIC: usize = 0;
    pub const ABI: usize = 1;
    pub const TOTAL_BYTES: usize = 2;
    pub const PID: usize = 3;
    pub const PID_NAMESPACE: usize = 4;
    pub const START_TICKS: usize = 5;
    pub const BOOT_ID: usize = 6; // and 7
    pub const NONCE: usize = 8;
    pub const FEATURES: usize = 9;
    pub const STARTED_NS: usize = 10;
    pub const LANES: usize = 11;
    pub const LANE_WORDS: usize = 12;
    pub const CUBIN_SLOTS: usize = 13;
    pub const CUBIN_BYTES: usize = 14;
    pub const DEFINITION_SLOTS: usize = 15;
    pub const DEFINITION_BYTES: usize = 16;
    pub const BACKING: usize = 17;
    /// Of all words between the ABI and the end of the block, but this one.
    pub const CHECK: usize = 18;
    pub const WORDS: usize = 64;
}

/// Words of the status block, from [`STATUS`].
pub mod status {
    pub const STATE: usize = 0;
    pub const HEARTBEAT_NS: usize = 1;
    pub const KINDS: usize = 2;
    pub const CUPTI_VERSION: usize = 3;
    /// Kinds that this process can never record.
    pub const UNAVAILABLE: usize = 4;
    /// Which clock CUPTI reads for its records.
    pub const CLOCK_SOURCE: usize = 5;
    /// As cuDriverGetVersion gives it; 0 while unknown.
    pub const DRIVER_VERSION: usize = 6;
    /// Even while the texts are whole, odd while they change.
    pub const TEXT_SEQ: usize = 16;
    pub const DETAIL: usize = 17;
    #[cfg(not(loom))]
    pub const TEXT_WORDS: usize = 48;
    /// For loom: enough to be torn.
    #[cfg(loom)]
    pub const TEXT_WORDS: usize = 2;
    pub const CUPTI_PATH: usize = DETAIL + TEXT_WORDS;
    /// Number of clock points ever written.
    pub const CLOCK_NEXT: usize = 128;
    pub const CLOCK: usize = 136;
    #[cfg(not(loom))]
    pub const CLOCK_POINTS: usize = 64;
    /// For loom: enough to be lapped within a few.
    #[cfg(loom)]
    pub const CLOCK_POINTS: usize = 2;
    pub const CLOCK_POINT_WORDS: usize = 4;
    /// What is worth knowing and keeps nothing from working, a line each.
    pub const NOTES: usize = CLOCK + CLOCK_POINTS * CLOCK_POINT_WORDS;
    /// Longer than the other texts: several lines.
    pub const NOTES_WORDS: usize = 2 * TEXT_WORDS;
    pub const WORDS: usize = 512;
}
const _: () = assert!(status::CUPTI_PATH + status::TEXT_WORDS <= status::CLOCK_NEXT);
const _: () = assert!(status::NOTES + status::NOTES_WORDS <= status::WORDS);

pub const STATUS: usize = ident::WORDS;
pub const COUNTERS: usize = STATUS + status::WORDS;
pub const COUNTER_LINES: usize = 32;
pub const LANE_HEADERS: usize = COUNTERS + COUNTER_LINES * LINE;
pub const LANE_HEADER_WORDS: usize = 2 * LINE;
pub const STORE_CONTROL_WORDS: usize = 4 * LINE;
pub const SLOT_WORDS: usize = 8;

/// How large the parts of a segment are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub lanes: usize,
    pub lane_words: usize,
    pub cubin_slots: usize,
    pub cubin_bytes: usize,
    pub definition_slots: usize,
    pub definition_bytes: usize,
}

/// Why sizes are not those of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {value}, which no segment of this version has")]
pub struct BadSize {
    pub what: &'static str,
    pub value: usize,
}

const MAX_LANES: usize = 1024;
const MAX_SLOTS: usize = 1 << 20;
const MAX_AREA_BYTES: usize = 1 << 40;

impl Sizes {
    /// What a tap makes by default: 64 lanes of 8 MiB, 1 GiB of cubins, 64 MiB of definitions, all sparse.
    pub const DEFAULT: Sizes = Sizes {
        lanes: 64,
        lane_words: 8 * 1024 * 1024 / 8,
        cubin_slots: 8192,
        cubin_bytes: 1 << 30,
        definition_slots: 32768,
        definition_bytes: 64 << 20,
    };

    /// Just enough to say why a tap is off.
    pub const STATUS_ONLY: Sizes = Sizes {
        lanes: 0,
        lane_words: 4 * CHUNK_WORDS,
        cubin_slots: 0,
        cubin_bytes: 0,
        definition_slots: 0,
        definition_bytes: 0,
    };

    /// Accepts only sizes whose sums cannot overflow and whose parts are aligned.
    pub fn checked(self) -> Result<Sizes, BadSize> {
        let bad = |what, value| Err(BadSize { what, value });
        if self.lanes > MAX_LANES {
            return bad("the number of lanes", self.lanes);
        }
        let chunks = self.lane_words / CHUNK_WORDS;
        if !self.lane_words.is_multiple_of(CHUNK_WORDS) || chunks < 4 || self.lane_words > MAX_AREA_BYTES / 8 {
            return bad("the words of a lane", self.lane_words);
        }
        for (what, slots) in
            [("the number of cubin slots", self.cubin_slots), ("the number of definition slots", self.definition_slots)]
        {
            if slots > MAX_SLOTS {
                return bad(what, slots);
            }
        }
        for (what, bytes) in
            [("the cubin area's size", self.cubin_bytes), ("the definition area's size", self.definition_bytes)]
        {
            if bytes > MAX_AREA_BYTES || !bytes.is_multiple_of(PAGE_BYTES) {
                return bad(what, bytes);
            }
        }
        Ok(self)
    }
}

/// Word positions of the parts of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub sizes: Sizes,
    pub cubin_control: usize,
    pub definition_control: usize,
    /// Everything before this word is reserved when the segment is made.
    pub fixed_words: usize,
    pub lanes: usize,
    pub cubins: usize,
    pub definitions: usize,
    pub total_words: usize,
}

impl Layout {
    /// `sizes` must have passed [`Sizes::checked`].
    pub fn new(sizes: Sizes) -> Layout {
        let cubin_control = LANE_HEADERS + sizes.lanes * LANE_HEADER_WORDS;
        let definition_control = cubin_control + STORE_CONTROL_WORDS + sizes.cubin_slots * SLOT_WORDS;
        let end = definition_control + STORE_CONTROL_WORDS + sizes.definition_slots * SLOT_WORDS;
        let fixed_words = end.next_multiple_of(PAGE_BYTES / 8);
        let cubins = fixed_words + sizes.lanes * sizes.lane_words;
        let definitions = cubins + sizes.cubin_bytes / 8;
        let total_words = definitions + sizes.definition_bytes / 8;
        let lanes = fixed_words;
        Layout { sizes, cubin_control, definition_control, fixed_words, lanes, cubins, definitions, total_words }
    }

    pub fn lane_header(&self, lane: usize) -> usize {
        LANE_HEADERS + lane * LANE_HEADER_WORDS
    }

    pub fn lane_data(&self, lane: usize) -> usize {
        self.lanes + lane * self.sizes.lane_words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_and_smallest_sizes_are_accepted_and_do_not_overlap() {
        for sizes in [Sizes::DEFAULT, Sizes::STATUS_ONLY] {
            let l = Layout::new(sizes.checked().unwrap());
            assert!(l.lane_header(sizes.lanes) <= l.cubin_control);
            assert!(l.definition_control + STORE_CONTROL_WORDS <= l.fixed_words);
            assert_eq!(l.lane_data(sizes.lanes), l.cubins);
            assert!((l.fixed_words * 8).is_multiple_of(PAGE_BYTES));
        }
    }

    #[test]
    fn sizes_from_a_broken_header_are_refused() {
        let ok = Sizes::DEFAULT;
        for bad in [
            Sizes { lanes: MAX_LANES + 1, ..ok },
            Sizes { lane_words: CHUNK_WORDS, ..ok },
            Sizes { lane_words: 4 * CHUNK_WORDS + 1, ..ok },
            Sizes { lane_words: usize::MAX & !(CHUNK_WORDS - 1), ..ok },
            Sizes { cubin_slots: MAX_SLOTS + 1, ..ok },
            Sizes { definition_bytes: PAGE_BYTES - 8, ..ok },
            Sizes { cubin_bytes: usize::MAX & !(PAGE_BYTES - 1), ..ok },
        ] {
            assert!(bad.checked().is_err(), "{bad:?}");
        }
    }
}
