//! A store: append-only entries of any size, never evicted, allocated without waiting.
//!
//! ```text
//! control:  cursor_bytes | next_slot | reserved_bytes     (a line each)
//! slot:     state | kind (16), check (16), check of the bytes (32) | offset_bytes | len_bytes | uses | first_ns | a | b
//!           state:  EMPTY 0 ─► RESERVED 1 ─► READY 2
//! bytes:    entries, each from a multiple of 64
//! ```
//! The housekeeping thread raises `reserved_bytes`; writers allocate below it and nowhere else, so a copy never
//! touches a page that may be missing. A slot that stays RESERVED belongs to a writer that died; readers pass over it.
//! The checks cover the slot and the entry's bytes: no wrong byte passes for an entry.

pub mod reader;
pub mod writer;

use crate::layout::{LINE, SLOT_WORDS};

/// Control words of a store, each on a line of its own.
pub mod control {
    use super::LINE;
    pub const CURSOR_BYTES: usize = 0;
    pub const NEXT_SLOT: usize = LINE;
    pub const RESERVED_BYTES: usize = 2 * LINE;
}

/// Words of a slot.
pub mod slot {
    pub const STATE: usize = 0;
    /// An [`super::EntryKind`] in the low 16 bits, then the two checks.
    pub const KIND: usize = 1;
    pub const OFFSET_BYTES: usize = 2;
    pub const LEN_BYTES: usize = 3;
    pub const USES: usize = 4;
    pub const FIRST_NS: usize = 5;
    pub const A: usize = 6;
    pub const B: usize = 7;
}

pub const EMPTY: u64 = 0;
pub const RESERVED: u64 = 1;
pub const READY: u64 = 2;

/// Entries begin at multiples of this.
pub const ENTRY_ALIGN_BYTES: u64 = 64;

/// The longest entry; a longer one is refused by writers, and by readers as a lie.
pub const MAX_ENTRY_BYTES: u64 = 1 << 30;

/// What an entry of a store is. The number is part of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum EntryKind {
    /// A module's image, raw; `a` = CUPTI's module id of the first load, `b` = its context's address.
    Cubin = 1,
    /// A kernel's mangled name, without the final NUL; `a` = its full length where it was cut.
    KernelName = 2,
    /// No bytes: cubins of a size that the store had no room for. `a` = as for the first such [`EntryKind::Cubin`],
    /// `b` = the size in bytes; `uses` = how often that happened.
    RefusedCubin = 3,
    /// Any other text, of an NVTX range, say; `a` = its full length where it was cut. Texts take at most half of the store.
    Text = 4,
}

/// The KIND word of a slot whose other words are `w`, and whose entry has bytes with this exclusive or.
pub(crate) fn kind_word(kind: u16, w: &[u64; SLOT_WORDS], content_xor: u64) -> u64 {
    let content = content_check(content_xor);
    u64::from(kind) | u64::from(slot_check(kind, w, content)) << 16 | u64::from(content) << 32
}

/// Covers what does not change: all but the state and the uses.
pub(crate) fn slot_check(kind: u16, w: &[u64; SLOT_WORDS], content_check: u32) -> u16 {
    let fields = [slot::OFFSET_BYTES, slot::LEN_BYTES, slot::FIRST_NS, slot::A, slot::B];
    let start = u64::from(kind) ^ u64::from(content_check) << 16;
    // Rotated, so that two fields with the same wrong byte do not make up for each other.
    let all = fields.into_iter().fold(start, |xor, index| xor ^ w[index].rotate_left(index as u32 * 5));
    let half = all ^ all >> 32;
    (half ^ half >> 16) as u16
}

pub(crate) fn content_check(content_xor: u64) -> u32 {
    (content_xor ^ content_xor >> 32) as u32
}

/// The exclusive or of the bytes as 64-bit words, the last one filled up with zeros.
pub(crate) fn content_xor(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().fold(u64::from_le_bytes(last), |xor, word| xor ^ u64::from_le_bytes(*word))
}
