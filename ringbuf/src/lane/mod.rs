//! A lane: one thread's ring of records, which overwrites its oldest and never waits for anybody.
//!
//! ```text
//! header:  intent | tail | next_seq          (one line, written by the lane's owner only)
//! data:    [chunk 64 KiB][chunk][chunk]...   position p lies at p mod capacity
//! chunk:   number | seq of its first record | 2 spare words | records ... padding
//! record:  kind (16) | payload words (16) | low half of its seq (32), then the payload
//! ```
//! Positions count words since the beginning and never wrap (2^64 words). The writer moves `intent` past the bytes it
//! is about to overwrite, writes them, then moves `tail`. A reader copies first and then looks at `intent`: if that has
//! come within a capacity of what it copied, the copy is good. A lapped or late reader continues at the next chunk
//! that still stands, whose header says the number of its first record: what it missed is a subtraction.

pub mod directory;
pub mod reader;
pub mod writer;

use crate::layout::CHUNK_WORDS;

/// Header words of a lane.
pub mod header {
    pub const INTENT: usize = 0;
    pub const TAIL: usize = 1;
    pub const NEXT_SEQ: usize = 2;
    /// Thread id of the present or last owner; informative.
    pub const TID: usize = 3;
}

/// Words before the first record of a chunk.
pub const CHUNK_HEADER_WORDS: usize = 4;
/// The longest payload that a record can have.
pub const MAX_PAYLOAD_WORDS: usize = CHUNK_WORDS - CHUNK_HEADER_WORDS - 1;
/// Record kind of the filling at a chunk's end.
pub const PADDING: u16 = 0;

/// The first word of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHead {
    pub kind: u16,
    pub words: u16,
    /// Tells a record from what a broken header or an earlier lap makes look like one. Of padding: the next record's.
    pub seq_low: u32,
}

impl RecordHead {
    pub fn to_word(self) -> u64 {
        u64::from(self.kind) | u64::from(self.words) << 16 | u64::from(self.seq_low) << 32
    }

    pub fn from_word(word: u64) -> Self {
        RecordHead { kind: word as u16, words: (word >> 16) as u16, seq_low: (word >> 32) as u32 }
    }
}
