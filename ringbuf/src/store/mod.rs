//! A store: append-only entries of any size, never evicted, allocated without waiting.
//!
//! ```text
//! control:  cursor_bytes | next_slot | reserved_bytes     (a line each)
//! slot:     state | kind | offset_bytes | len_bytes | uses | first_ns | a | b
//!           state:  EMPTY 0 ─► RESERVED 1 ─► READY 2
//! bytes:    entries, each from a multiple of 64
//! ```
//! The housekeeping thread raises `reserved_bytes`; writers allocate below it and nowhere else, so a copy never
//! touches a page that may be missing. A slot that stays RESERVED belongs to a writer that died; readers pass over it.

pub mod reader;
pub mod writer;

use crate::layout::LINE;

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
}
