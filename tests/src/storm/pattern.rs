//! Records, images, names and texts whose every bit follows from who wrote them and their number.

use gputap_ringbuf::lane::MAX_PAYLOAD_WORDS;

use super::random::mixed;

/// The `number`th record of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordId {
    pub stream: u32,
    pub number: u32,
}

impl RecordId {
    pub fn kind(self) -> u16 {
        (mixed(self.to_word()) % 60_000) as u16 + 1
    }

    /// Words of the payload: mostly few, sometimes as many as there can be.
    pub fn len(self) -> usize {
        let random = mixed(self.to_word() ^ 1);
        let most = match random % 200 {
            0 => MAX_PAYLOAD_WORDS,
            1..4 => 2000,
            4..100 => 60,
            _ => 9,
        };
        1 + (random >> 8) as usize % most
    }

    /// Fills the beginning of `payload` and gives it.
    pub fn fill(self, payload: &mut [u64]) -> &[u64] {
        let payload = &mut payload[..self.len()];
        payload.iter_mut().enumerate().for_each(|(i, word)| *word = self.word(i));
        payload
    }

    /// The record that these words claim to be, and whether they are.
    pub fn of(kind: u16, words: &[u64]) -> Option<RecordId> {
        let first = *words.first()?;
        let id = RecordId { stream: (first >> 32) as u32, number: first as u32 };
        let whole = id.kind() == kind && id.len() == words.len();
        (whole && words.iter().enumerate().all(|(i, word)| *word == id.word(i))).then_some(id)
    }

    fn to_word(self) -> u64 {
        u64::from(self.stream) << 32 | u64::from(self.number)
    }

    fn word(self, index: usize) -> u64 {
        let id = self.to_word();
        if index == 0 { id } else { (id ^ (index as u64) << 17).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ id }
    }
}

/// How many different images there are.
pub const IMAGES: u32 = 64;

/// The image of module `id`: up to 32 KiB.
pub fn image(id: u32) -> Vec<u8> {
    let len = 1 + mixed(u64::from(id)) as usize % (32 << 10);
    let word = |i: usize| mixed(u64::from(id) << 32 | i as u64).to_le_bytes();
    (0..len).map(|i| word(i / 8)[i % 8]).collect()
}

pub const NAME_BYTES: usize = 100;

/// The name of kernel `id`: a prefix of what this gives, at least 8 bytes of it.
pub fn name(id: u64) -> ([u8; NAME_BYTES], usize) {
    let mut bytes = [0; NAME_BYTES];
    bytes[..8].copy_from_slice(&id.to_le_bytes());
    for (i, byte) in bytes.iter_mut().enumerate().skip(8) {
        *byte = b'a' + (mixed(id ^ (i as u64) << 40) % 26) as u8;
    }
    (bytes, 8 + mixed(id) as usize % (NAME_BYTES - 8))
}

pub fn is_a_name(bytes: &[u8]) -> bool {
    let Some(id) = bytes.first_chunk::<8>() else { return false };
    let (name, len) = name(u64::from_le_bytes(*id));
    bytes == &name[..len]
}

/// The status text number `n`: parts of two numbers do not make one.
pub fn text(n: u64) -> String {
    format!("{n:016x} ").repeat(1 + n as usize % 20)
}

pub fn is_a_text(text: &str) -> bool {
    let number = text.get(..16).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    text.is_empty() || number.is_some_and(|n| text == self::text(n))
}

pub fn realtime_of(monotonic_ns: u64) -> u64 {
    mixed(monotonic_ns)
}
