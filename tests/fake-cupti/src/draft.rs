//! One record before it is laid down: its bytes, and what is done to them.

use crate::sizes::{ALIEN_BYTES, KIND_ALIEN, completed_offset, name_offset, time_offsets};

/// The longest record has 248 bytes.
const ROOM: usize = 256;

#[derive(Clone)]
pub struct Draft {
    kind: u32,
    size: usize,
    bytes: [u8; ROOM],
    /// When what it tells of is over, on the device's clock.
    pub finished_ns: u64,
}

impl Draft {
    /// The first `size` bytes of `record`, which is one of the layouts' structures and of this kind.
    pub fn new<T: Copy>(kind: u32, record: &T, size: usize, finished_ns: u64) -> Self {
        const { assert!(size_of::<T>() <= ROOM) };
        let size = size.min(size_of::<T>());
        let mut bytes = [0; ROOM];
        // SAFETY: `size` is at most the structure's length and the array's; the two are apart. Bytes of padding, of
        // which the layouts' structures have none, could not be read so.
        unsafe { (&raw const *record).cast::<u8>().copy_to_nonoverlapping(bytes.as_mut_ptr(), size) };
        Self { kind, size, bytes, finished_ns }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size]
    }

    /// Moves all times that are not 0.
    pub fn shift_times(&mut self, offset_ns: i64) {
        for at in self.times() {
            let time = self.word(at);
            if time != 0 {
                self.set_word(at, time.saturating_add_signed(offset_ns));
            }
        }
    }

    pub fn clear_times(&mut self) {
        for at in self.times() {
            self.set_word(at, 0);
        }
    }

    /// The end before the start.
    pub fn reverse_times(&mut self) {
        if let Some((start, end)) = time_offsets(self.kind) {
            let (first, last) = (self.word(start), self.word(end));
            self.set_word(start, last);
            self.set_word(end, first);
        }
    }

    /// Points the name elsewhere, in kinds that have one.
    pub fn rename(&mut self, name: *const std::ffi::c_char) {
        if let Some(at) = name_offset(self.kind) {
            self.set_word(at, name.expose_provenance() as u64);
        }
    }

    /// Becomes a record of a kind that nobody knows.
    pub fn become_alien(&mut self) {
        (self.kind, self.size, self.bytes) = (KIND_ALIEN, ALIEN_BYTES, [0xee; ROOM]);
        self.bytes[..4].copy_from_slice(&KIND_ALIEN.to_le_bytes());
    }

    /// Every different place of a time.
    fn times(&self) -> impl Iterator<Item = usize> + use<> {
        let (start, end) = time_offsets(self.kind).unzip();
        let end = end.filter(|_| start != end);
        start.into_iter().chain(end).chain(completed_offset(self.kind))
    }

    fn word(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_le_bytes(word)
    }

    fn set_word(&mut self, at: usize, word: u64) {
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
}

/// The end of the record at `at`, and 0 for one without times.
///
/// # Safety
/// A record of `kind` lies there.
pub unsafe fn end_of(kind: u32, at: *const u8) -> u64 {
    // SAFETY: by contract the kind's end lies at its offset; records are aligned to 8.
    time_offsets(kind).map_or(0, |(_, end)| unsafe { at.add(end).cast::<u64>().read() })
}

/// Makes the record's times zero.
///
/// # Safety
/// As [`end_of`], and nobody else has the record.
pub unsafe fn clear_times(kind: u32, at: *mut u8) {
    let (start, end) = time_offsets(kind).unzip();
    for offset in [start, end, completed_offset(kind)].into_iter().flatten() {
        // SAFETY: the offsets lie in a record of this kind, and are aligned to 8 like the record.
        unsafe { at.add(offset).cast::<u64>().write(0) };
    }
}
