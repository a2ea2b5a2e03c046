//! The bytes of a segment: a head, then blocks. All numbers are little-endian.

mod block;
mod columns;

pub use block::{BLOCK_MAX_BYTES, BLOCK_MAX_EVENTS, Frame, HEAD_BYTES, Kind, Malformed, seal, unseal};
pub use columns::{decode_columns, encode_columns};
pub(crate) use columns::{has_end, width};

/// Of the format. Readers refuse another.
pub const VERSION: u32 = 3;
/// A segment's first eight bytes.
pub const MAGIC: [u8; 8] = *b"GPUTAPRC";
/// The segment's head: magic, version, number of the segment from 1 on.
pub const SEGMENT_HEAD_BYTES: usize = 16;
/// Segments end so.
pub const EXTENSION: &str = "gtap";

/// The head of segment `number`.
pub fn segment_head(number: u32) -> [u8; SEGMENT_HEAD_BYTES] {
    let mut head = [0; SEGMENT_HEAD_BYTES];
    head[..8].copy_from_slice(&MAGIC);
    head[8..12].copy_from_slice(&VERSION.to_le_bytes());
    head[12..].copy_from_slice(&number.to_le_bytes());
    head
}

/// Version and number of a segment; None if it is none.
pub fn parse_segment_head(head: &[u8; SEGMENT_HEAD_BYTES]) -> Option<(u32, u32)> {
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    (head[..8] == MAGIC).then(|| (number(8), number(12)))
}
