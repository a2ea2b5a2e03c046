//! A block: 44 bytes of head, then the payload, compressed if that makes it smaller. Each has a checksum, so that a block
//! can be passed over unread.

/// Of a block's head.
pub const HEAD_BYTES: usize = 44;
/// No payload is longer, compressed or not: what a reader has to make room for.
pub const BLOCK_MAX_BYTES: usize = 16 << 20;
/// Events in one block, at most.
pub const BLOCK_MAX_EVENTS: usize = 1 << 16;
const BLOCK_MAGIC: [u8; 4] = *b"gtb3";
const PLAIN: u8 = 0;
const LZ4: u8 = 1;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// JSON of a [`crate::Process`]; a segment's first block.
    Process = 1,
    /// Names by their ids.
    Names = 2,
    /// Columns of events of one kind.
    Events = 3,
    /// JSON of a [`crate::Module`].
    Module = 4,
    /// JSON of a [`crate::Status`].
    Status = 5,
}

impl Kind {
    fn of(number: u8) -> Option<Kind> {
        [Kind::Process, Kind::Names, Kind::Events, Kind::Module, Kind::Status]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// A block's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// None: of a kind that this version does not know, to be skipped.
    pub kind: Option<Kind>,
    /// Of [`gputap_ringbuf::event::EventKind`]; 0 in other blocks.
    pub event_kind: u16,
    /// Events or names in it.
    pub count: u32,
    /// The payload's bytes before compression, and as stored.
    pub raw_bytes: u32,
    pub stored_bytes: u32,
    /// Least and greatest time of its events.
    pub first_ns: u64,
    pub last_ns: u64,
    compression: u8,
    /// Of the payload as stored.
    crc32: u32,
}

/// Why bytes are no block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("no block begins here")]
    Magic,
    #[error("a block of {bytes} bytes, more than {BLOCK_MAX_BYTES}")]
    TooLong { bytes: u32 },
    #[error("the checksum of a block is wrong")]
    Checksum,
    #[error("compression {number} is not known")]
    Compression { number: u8 },
    #[error("a block cannot be decompressed: {0}")]
    Lz4(String),
    #[error("a block's content is broken: {0}")]
    Content(String),
}

/// Appends a block with `payload` to `out`.
pub fn seal(out: &mut Vec<u8>, kind: Kind, event_kind: u16, count: u32, times: [u64; 2], payload: &[u8]) {
    debug_assert!(payload.len() <= BLOCK_MAX_BYTES);
    let compressed = lz4_flex::block::compress(payload);
    let (compression, stored) =
        if compressed.len() < payload.len() { (LZ4, compressed.as_slice()) } else { (PLAIN, payload) };
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&BLOCK_MAGIC);
    head[4] = kind as u8;
    head[5] = compression;
    head[6..8].copy_from_slice(&event_kind.to_le_bytes());
    head[8..12].copy_from_slice(&count.to_le_bytes());
    head[12..16].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    head[16..20].copy_from_slice(&(stored.len() as u32).to_le_bytes());
    head[20..28].copy_from_slice(&times[0].to_le_bytes());
    head[28..36].copy_from_slice(&times[1].to_le_bytes());
    head[36..40].copy_from_slice(&crc32fast::hash(stored).to_le_bytes());
    let of_head = crc32fast::hash(&head[..40]);
    head[40..].copy_from_slice(&of_head.to_le_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(stored);
}

impl Frame {
    /// Reads a block's head and checks it; the payload's checksum is looked at by [`unseal`].
    pub fn parse(head: &[u8; HEAD_BYTES]) -> Result<Frame, Malformed> {
        if head[..4] != BLOCK_MAGIC {
            return Err(Malformed::Magic);
        }
        let frame = Frame {
            kind: Kind::of(head[4]),
            compression: head[5],
            event_kind: u16::from_le_bytes([head[6], head[7]]),
            count: u32_at(head, 8),
            raw_bytes: u32_at(head, 12),
            stored_bytes: u32_at(head, 16),
            first_ns: u64_at(head, 20),
            last_ns: u64_at(head, 28),
            crc32: u32_at(head, 36),
        };
        if u32_at(head, 40) != crc32fast::hash(&head[..40]) {
            return Err(Malformed::Checksum);
        }
        match frame.raw_bytes.max(frame.stored_bytes) {
            bytes if bytes as usize > BLOCK_MAX_BYTES => Err(Malformed::TooLong { bytes }),
            _ => Ok(frame),
        }
    }
}

/// The payload of a block, into `payload`.
pub fn unseal(frame: &Frame, stored: &[u8], payload: &mut Vec<u8>) -> Result<(), Malformed> {
    if crc32fast::hash(stored) != frame.crc32 {
        return Err(Malformed::Checksum);
    }
    payload.clear();
    match frame.compression {
        PLAIN => payload.extend_from_slice(stored),
        LZ4 => {
            payload.resize(frame.raw_bytes as usize, 0);
            let bytes = lz4_flex::block::decompress_into(stored, payload).map_err(|e| Malformed::Lz4(e.to_string()))?;
            payload.truncate(bytes);
        }
        number => return Err(Malformed::Compression { number }),
    }
    Ok(())
}

fn u32_at(head: &[u8; HEAD_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(head[at..at + 4].try_into().unwrap_or_default())
}

fn u64_at(head: &[u8; HEAD_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default())
}
