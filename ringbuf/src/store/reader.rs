//! The reading side of a store: every entry once, in the order in which they became ready.

use super::{MAX_ENTRY_BYTES, READY, RESERVED, content_check, content_xor, control, slot, slot_check};
use crate::{
    layout::SLOT_WORDS,
    sync::Ordering,
    words::{MappedWords, ReadWords},
};

/// An entry as the writer described it, its description checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub slot: u32,
    /// An [`super::EntryKind`] or something newer.
    pub kind: u16,
    pub offset_bytes: u64,
    pub len_bytes: u64,
    /// How often it was stored or met again.
    pub uses: u64,
    /// CLOCK_MONOTONIC of the first time.
    pub first_ns: u64,
    pub a: u64,
    pub b: u64,
    content_check: u32,
}

/// Why an entry's bytes were not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEntry {
    #[error("it lies outside the store")]
    Outside,
    #[error("there is no memory for its {len_bytes} bytes")]
    NoMemory { len_bytes: u64 },
    #[error("its bytes are not those that were stored")]
    Changed,
}

/// Reads one store.
pub struct StoreReader<R: ReadWords = MappedWords> {
    control: R,
    slots: R,
    slot_count: usize,
    capacity_bytes: u64,
    bytes: MappedWords,
    next: usize,
    /// Slots that were being written when we passed them.
    waiting: Vec<u32>,
    /// Where the present look at `waiting` goes on; 0 between two looks.
    waiting_next: usize,
    /// Entries that lie outside the store, or whose description is not what was written: a broken writer's.
    pub invalid: u64,
}

impl<R: ReadWords> StoreReader<R> {
    pub fn new(control: R, slots: R, slot_count: usize, bytes: MappedWords) -> Self {
        let capacity_bytes = bytes.len() as u64 * 8;
        let (waiting, waiting_next) = (Vec::new(), 0);
        StoreReader { control, slots, slot_count, capacity_bytes, bytes, next: 0, waiting, waiting_next, invalid: 0 }
    }

    /// The next entry that this reader has not seen, or `None` for now. Until then each slot is looked at once, so that
    /// a store full of unfinished slots costs a pass over them, not a pass an entry.
    pub fn next_entry(&mut self) -> Option<Entry> {
        self.next_waiting().or_else(|| self.next_new())
    }

    fn next_waiting(&mut self) -> Option<Entry> {
        while let Some(&slot) = self.waiting.get(self.waiting_next) {
            if self.state(slot) != READY {
                self.waiting_next += 1;
                continue;
            }
            self.waiting.swap_remove(self.waiting_next);
            if let Some(entry) = self.checked(slot) {
                return Some(entry);
            }
        }
        None
    }

    fn next_new(&mut self) -> Option<Entry> {
        let used = self.control.load(control::NEXT_SLOT, Ordering::Relaxed).min(self.slot_count as u64) as usize;
        while self.next < used {
            let slot = self.next as u32;
            self.next += 1;
            match self.state(slot) {
                READY => match self.checked(slot) {
                    Some(entry) => return Some(entry),
                    None => continue,
                },
                _ => self.waiting.push(slot),
            }
        }
        self.waiting_next = 0;
        None
    }

    /// The entry of `slot` as it is now, if it is ready.
    pub fn entry(&self, slot: u32) -> Option<Entry> {
        (self.state(slot) == READY).then(|| self.parsed(slot)).flatten()
    }

    /// Slots that are reserved and not ready: being written now, or left by a writer that died.
    pub fn unfinished(&self) -> usize {
        self.waiting.iter().filter(|&&s| self.state(s) <= RESERVED).count()
    }

    /// A copy of the entry's bytes, checked.
    pub fn read(&self, entry: &Entry) -> Result<Vec<u8>, BadEntry> {
        let (offset, len) = (entry.offset_bytes as usize, entry.len_bytes as usize);
        let from = self.bytes.bytes_at(offset, len).ok_or(BadEntry::Outside)?;
        let mut copy: Vec<u8> = Vec::new();
        copy.try_reserve_exact(len).map_err(|_| BadEntry::NoMemory { len_bytes: entry.len_bytes })?;
        // SAFETY: `from` has `len` mapped bytes (bytes_at), the copy has capacity for them, and they do not overlap.
        // The writer never writes a READY entry again; a hostile one that does can only make the copied bytes wrong.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), copy.as_mut_ptr(), len);
            copy.set_len(len);
        }
        let whole = content_check(content_xor(&copy)) == entry.content_check;
        if whole { Ok(copy) } else { Err(BadEntry::Changed) }
    }

    fn state(&self, slot: u32) -> u64 {
        if slot as usize >= self.slot_count {
            return 0;
        }
        // SYNC: pairs with the Release store of READY by `publish`.
        self.slots.load(slot as usize * SLOT_WORDS + slot::STATE, Ordering::Acquire)
    }

    fn checked(&mut self, slot: u32) -> Option<Entry> {
        let entry = self.parsed(slot);
        self.invalid += u64::from(entry.is_none());
        entry
    }

    fn parsed(&self, slot: u32) -> Option<Entry> {
        let mut w = [0; SLOT_WORDS];
        self.slots.load_all(slot as usize * SLOT_WORDS, &mut w);
        let (offset_bytes, len_bytes) = (w[slot::OFFSET_BYTES], w[slot::LEN_BYTES]);
        if len_bytes > MAX_ENTRY_BYTES
            || offset_bytes > self.capacity_bytes
            || len_bytes > self.capacity_bytes - offset_bytes
        {
            return None;
        }
        let (kind, check, content_check) =
            (w[slot::KIND] as u16, (w[slot::KIND] >> 16) as u16, (w[slot::KIND] >> 32) as u32);
        if check != slot_check(kind, &w, content_check) {
            return None;
        }
        let (uses, first_ns, a, b) = (w[slot::USES], w[slot::FIRST_NS], w[slot::A], w[slot::B]);
        Some(Entry { slot, kind, offset_bytes, len_bytes, uses, first_ns, a, b, content_check })
    }
}
