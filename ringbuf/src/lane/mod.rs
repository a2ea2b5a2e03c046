//! A lane: one thread's ring of records, which overwrites its oldest and never waits for anybody.
//!
//! ```text
//! header:  intent | tail | next_seq          (one line, written by the lane's owner only)
//! data:    [chunk 64 KiB][chunk][chunk]...   position p lies at p mod capacity
//! chunk:   number | seq of its first record | check | spare word | records ... padding
//! record:  kind (16) | payload words (16) | check (32), then the payload
//! ```
//! Positions count words since the beginning and never wrap (2^64 words). The writer moves `intent` past the bytes it
//! is about to overwrite, writes them, then moves `tail`. A reader copies first and then looks at `intent`: if that has
//! come within a capacity of what it copied, the copy is good. A lapped or late reader continues at the next chunk
//! that still stands, whose header says the number of its first record: what it missed is a subtraction.
//!
//! A record's check is the exclusive or of its payload, its number, kind and length: a wrong byte anywhere in it, or a
//! record of another lap in its place, shows. A thread that ends inside a write leaves `intent` ahead of `tail`; whoever
//! gets the lane next closes it with a record of kind [`ABANDONED`] and goes on in a fresh chunk.

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
/// Record kind of what a thread began and never finished; it has a number, and its payload means nothing.
pub const ABANDONED: u16 = u16::MAX;
/// No honest writer comes this far; beyond it, arithmetic on positions could wrap.
const MAX_POSITION: u64 = 1 << 62;

/// The first word of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHead {
    pub kind: u16,
    pub words: u16,
}

impl RecordHead {
    /// `seq` is the record's number, of padding the next record's; `payload_xor` the exclusive or of its payload's
    /// words, 0 for fillings, whose payload is whatever was there.
    #[inline]
    pub fn to_word(self, seq: u64, payload_xor: u64) -> u64 {
        let low = u64::from(self.kind) | u64::from(self.words) << 16;
        low | u64::from(check(low, seq, payload_xor)) << 32
    }

    #[inline]
    pub fn from_word(word: u64) -> Self {
        RecordHead { kind: word as u16, words: (word >> 16) as u16 }
    }

    /// Filling has no payload to be checked.
    #[inline]
    pub fn is_filling(self) -> bool {
        self.kind == PADDING || self.kind == ABANDONED
    }
}

/// Whether a record with this number is as it was written, if the exclusive or of its words, the head's included, is
/// `xor`; of filling, which has no payload, the head alone. The two halves of a head differ by the rest of the record's
/// halves: with all of them in it nothing is left.
#[inline]
pub(crate) fn is_whole(xor: u64, seq: u64) -> bool {
    let all = xor ^ seq;
    all as u32 == (all >> 32) as u32
}

#[inline]
fn check(low: u64, seq: u64, payload_xor: u64) -> u32 {
    let all = payload_xor ^ seq ^ low << 32;
    (all ^ all >> 32) as u32
}

/// The third word of a chunk's header; without it, a wrong `seq` would pass for records missed.
#[inline]
pub fn chunk_check(number: u64, seq: u64) -> u64 {
    number ^ seq.rotate_left(32) ^ 0x6775_7461_7052_4243
}
