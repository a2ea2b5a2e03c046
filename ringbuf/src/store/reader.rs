//! The reading side of a store: every entry once, in the order in which they became ready.

use super::{MAX_ENTRY_BYTES, READY, RESERVED, control, slot};
use crate::{
    layout::SLOT_WORDS,
    sync::Ordering,
    words::{MappedWords, ReadWords},
};

/// An entry as the writer described it, checked to lie inside the store.
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
    /// Entries that lie outside the store: a broken writer's.
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

    /// A copy of the entry's bytes; empty if it does not lie inside the store, or there is no memory for it.
    pub fn read(&self, entry: &Entry) -> Vec<u8> {
        let Some(from) = self.bytes.bytes_at(entry.offset_bytes as usize, entry.len_bytes as usize) else {
            return Vec::new();
        };
        let len = entry.len_bytes as usize;
        let mut copy: Vec<u8> = Vec::new();
        if copy.try_reserve_exact(len).is_err() {
            return Vec::new();
        }
        // SAFETY: `from` has `len` mapped bytes (bytes_at), the copy has capacity for them, and they do not overlap.
        // The writer never writes a READY entry again; a hostile one that does can only make the copied bytes wrong.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), copy.as_mut_ptr(), len);
            copy.set_len(len);
        }
        copy
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
        let (uses, first_ns) = (w[slot::USES], w[slot::FIRST_NS]);
        let kind = w[slot::KIND] as u16;
        Some(Entry { slot, kind, offset_bytes, len_bytes, uses, first_ns, a: w[slot::A], b: w[slot::B] })
    }
}
