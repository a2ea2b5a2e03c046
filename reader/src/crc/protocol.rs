//! What parent and child say to each other over one socket.
//!
//! ```text
//! request: length u64 | cubin                    reply: tag u8 | value u64 | text (value bytes, FAILED only)
//! ```
//! Numbers are little-endian. The child opens with HELLO or FAILED, then answers every request in order.

/// Longest cubin asked about. The workloads' largest are tens of MB.
pub const MAX_CUBIN_BYTES: u64 = 1 << 30;
/// Longest text of a FAILED reply.
pub const MAX_TEXT_BYTES: u64 = 4096;
pub const REPLY_HEAD_BYTES: usize = 9;

const HELLO: u8 = 1;
const CRC: u8 = 2;
const CUPTI_RESULT: u8 = 3;
const FAILED: u8 = 4;

/// A reply without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyHead {
    /// Ready; CUPTI's version number as `cuptiGetVersion` gives it.
    Hello {
        version: u32,
    },
    Crc(u64),
    /// A `CUptiResult` other than success.
    CuptiResult(u32),
    /// The child cannot go on; a text of this many bytes follows.
    Failed {
        text_bytes: u64,
    },
}

impl ReplyHead {
    pub fn encode(self) -> [u8; REPLY_HEAD_BYTES] {
        let (tag, value) = match self {
            ReplyHead::Hello { version } => (HELLO, u64::from(version)),
            ReplyHead::Crc(crc) => (CRC, crc),
            ReplyHead::CuptiResult(code) => (CUPTI_RESULT, u64::from(code)),
            ReplyHead::Failed { text_bytes } => (FAILED, text_bytes),
        };
        let mut bytes = [tag; REPLY_HEAD_BYTES];
        bytes[1..].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    /// None for a tag, number or length that no child of ours sends.
    pub fn decode(untrusted: [u8; REPLY_HEAD_BYTES]) -> Option<ReplyHead> {
        let [tag, value @ ..] = untrusted;
        let value = u64::from_le_bytes(value);
        match tag {
            HELLO => Some(ReplyHead::Hello { version: value.try_into().ok()? }),
            CRC => Some(ReplyHead::Crc(value)),
            CUPTI_RESULT => Some(ReplyHead::CuptiResult(value.try_into().ok()?)),
            FAILED if value <= MAX_TEXT_BYTES => Some(ReplyHead::Failed { text_bytes: value }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_survive_the_wire_and_nonsense_does_not() {
        for head in [
            ReplyHead::Hello { version: 130001 },
            ReplyHead::Crc(u64::MAX),
            ReplyHead::CuptiResult(999),
            ReplyHead::Failed { text_bytes: 7 },
        ] {
            assert_eq!(ReplyHead::decode(head.encode()), Some(head));
        }
        assert_eq!(ReplyHead::decode([0; REPLY_HEAD_BYTES]), None);
        assert_eq!(ReplyHead::decode([0xff; REPLY_HEAD_BYTES]), None);
        assert_eq!(ReplyHead::decode(ReplyHead::Failed { text_bytes: MAX_TEXT_BYTES + 1 }.encode()), None);
    }
}
