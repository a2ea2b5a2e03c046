//! The writing side of a store. Any thread; no call waits, allocates or makes a system call, every loop has a bound.

use super::{ENTRY_ALIGN_BYTES, EntryKind, MAX_ENTRY_BYTES, READY, RESERVED, content_check, control, kind_word, slot};
use crate::{layout::SLOT_WORDS, sync::Ordering, words::Words};

/// Why an entry was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEntry {
    /// The area's cap, or its last slot, is reached.
    Full,
    /// The cap is not reached, but housekeeping has not reserved that much yet.
    NotReserved,
    /// Too many threads allocated at the same instant.
    Contended,
}

/// Allocates entries in one store; the bytes are copied by the caller.
#[derive(Clone)]
pub struct StoreWriter<W: Words> {
    control: W,
    slots: W,
    slot_count: u64,
    capacity_bytes: u64,
}

/// An allocated entry that no reader sees yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Allocated {
    pub slot: u32,
    kind: EntryKind,
    pub offset_bytes: u64,
    pub len_bytes: u64,
}

/// What is known of an entry besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The exclusive or of the bytes as 64-bit words, the last one filled up with zeros.
    pub content_xor: u64,
    /// CLOCK_MONOTONIC.
    pub first_ns: u64,
    pub a: u64,
    pub b: u64,
}

/// A bound on the retries of an allocation: as many writers may win before us.
const MAX_TRIES: u32 = 64;

impl<W: Words> StoreWriter<W> {
    pub fn new(control: W, slots: W, slot_count: usize, capacity_bytes: usize) -> Self {
        StoreWriter { control, slots, slot_count: slot_count as u64, capacity_bytes: capacity_bytes as u64 }
    }

    /// Takes room for `len_bytes` and a slot.
    #[track_caller]
    pub fn allocate(&self, kind: EntryKind, len_bytes: u64) -> Result<Allocated, NoEntry> {
        if self.control.load(control::NEXT_SLOT, Ordering::Relaxed) >= self.slots_for_bytes() {
            return Err(NoEntry::Full);
        }
        let offset_bytes = self.allocate_bytes(len_bytes)?;
        self.take_slot(kind, offset_bytes, len_bytes)
    }

    /// Notes that an entry of `len_bytes` was refused: once for each size, then by its uses. The last eighth of the
    /// slots is kept for this; where those are taken too, nothing is noted.
    pub fn refuse(&self, len_bytes: u64, first_ns: u64, a: u64) {
        let refused = EntryKind::RefusedCubin;
        if let Some(slot) =
            self.find_where(|slot, kind| kind as u16 == refused as u16 && self.get(slot, slot::B) == len_bytes)
        {
            return self.used_again(slot);
        }
        if let Ok(entry) = self.take_slot(refused, 0, 0) {
            self.publish(entry, About { content_xor: 0, first_ns, a, b: len_bytes });
        }
    }

    /// Slots that entries with bytes may take.
    fn slots_for_bytes(&self) -> u64 {
        self.slot_count - self.slot_count / 8
    }

    fn take_slot(&self, kind: EntryKind, offset_bytes: u64, len_bytes: u64) -> Result<Allocated, NoEntry> {
        // The look spares the counter from wrapping where loads are refused for months.
        if self.control.load(control::NEXT_SLOT, Ordering::Relaxed) >= self.slot_count {
            return Err(NoEntry::Full);
        }
        let index = self.control.fetch_add(control::NEXT_SLOT, 1, Ordering::Relaxed);
        if index >= self.slot_count {
            return Err(NoEntry::Full);
        }
        let at = index as usize * SLOT_WORDS;
        self.slots.store(at + slot::OFFSET_BYTES, offset_bytes, Ordering::Relaxed);
        self.slots.store(at + slot::LEN_BYTES, len_bytes, Ordering::Relaxed);
        self.slots.store(at + slot::STATE, RESERVED, Ordering::Relaxed);
        Ok(Allocated { slot: index as u32, kind, offset_bytes, len_bytes })
    }

    fn allocate_bytes(&self, len_bytes: u64) -> Result<u64, NoEntry> {
        if len_bytes > MAX_ENTRY_BYTES {
            return Err(NoEntry::Full);
        }
        let size = len_bytes.next_multiple_of(ENTRY_ALIGN_BYTES);
        // SYNC: pairs with the Release store of RESERVED_BYTES by `set_reserved`: the pages are there.
        let reserved = self.control.load(control::RESERVED_BYTES, Ordering::Acquire);
        let mut cursor = self.control.load(control::CURSOR_BYTES, Ordering::Relaxed);
        for _ in 0..MAX_TRIES {
            if size > self.capacity_bytes.saturating_sub(cursor) {
                return Err(NoEntry::Full);
            }
            if size > reserved.saturating_sub(cursor) {
                return Err(NoEntry::NotReserved);
            }
            let next = cursor + size;
            match self.control.compare_exchange(control::CURSOR_BYTES, cursor, next, Ordering::Relaxed) {
                Ok(_) => return Ok(cursor),
                Err(found) => cursor = found,
            }
        }
        Err(NoEntry::Contended)
    }

    /// Shows the entry to readers. Its bytes are in place.
    pub fn publish(&self, entry: Allocated, about: About) -> u32 {
        let at = entry.slot as usize * SLOT_WORDS;
        let mut w = [0; SLOT_WORDS];
        (w[slot::OFFSET_BYTES], w[slot::LEN_BYTES]) = (entry.offset_bytes, entry.len_bytes);
        (w[slot::FIRST_NS], w[slot::A], w[slot::B]) = (about.first_ns, about.a, about.b);
        let kind = kind_word(entry.kind as u16, &w, about.content_xor);
        self.slots.store(at + slot::KIND, kind, Ordering::Relaxed);
        self.slots.store(at + slot::USES, 1, Ordering::Relaxed);
        self.slots.store(at + slot::FIRST_NS, about.first_ns, Ordering::Relaxed);
        self.slots.store(at + slot::A, about.a, Ordering::Relaxed);
        self.slots.store(at + slot::B, about.b, Ordering::Relaxed);
        // SYNC: pairs with the Acquire load of STATE by readers and by `is_ready`: bytes and words are whole.
        self.slots.store(at + slot::STATE, READY, Ordering::Release);
        entry.slot
    }

    /// The first ready entry of `len_bytes` for which `same(offset_bytes)` holds. Bytes can be alike almost to their
    /// end, and a store can have thousands of entries of one length: after the first, only those are looked at whose
    /// check is that of the bytes sought, whose `content_xor` (see [`About`]) is asked for once, and only then.
    pub fn find(&self, len_bytes: u64, content_xor: impl Fn() -> u64, same: impl Fn(u64) -> bool) -> Option<u32> {
        let mut first = true;
        let mut sought = None;
        self.find_where(|slot, kind| {
            if self.get(slot, slot::LEN_BYTES) != len_bytes || kind as u16 == EntryKind::RefusedCubin as u16 {
                return false;
            }
            let may_be = std::mem::take(&mut first)
                || (kind >> 32) as u32 == *sought.get_or_insert_with(|| content_check(content_xor()));
            may_be && same(self.get(slot, slot::OFFSET_BYTES))
        })
    }

    /// The first ready entry, with its slot and its KIND word, for which `is_it` holds.
    fn find_where(&self, mut is_it: impl FnMut(u32, u64) -> bool) -> Option<u32> {
        let used = self.control.load(control::NEXT_SLOT, Ordering::Relaxed).min(self.slot_count) as u32;
        (0..used).find(|slot| self.is_ready(*slot) && is_it(*slot, self.get(*slot, slot::KIND)))
    }

    fn is_ready(&self, slot: u32) -> bool {
        // SYNC: pairs with the Release store of READY by `publish`.
        self.slots.load(slot as usize * SLOT_WORDS + slot::STATE, Ordering::Acquire) == READY
    }

    fn get(&self, slot: u32, word: usize) -> u64 {
        self.slots.load(slot as usize * SLOT_WORDS + word, Ordering::Relaxed)
    }

    /// Offset and length in bytes of the entry in `slot`, if it is ready.
    pub fn ready(&self, slot: u32) -> Option<(u64, u64)> {
        let ready = u64::from(slot) < self.slot_count && self.is_ready(slot);
        ready.then(|| (self.get(slot, slot::OFFSET_BYTES), self.get(slot, slot::LEN_BYTES)))
    }

    /// Counts one more use of an entry.
    pub fn used_again(&self, entry: u32) {
        self.slots.fetch_add(entry as usize * SLOT_WORDS + slot::USES, 1, Ordering::Relaxed);
    }

    /// Housekeeping: bytes below `reserved_bytes` have pages.
    pub fn set_reserved(&self, reserved_bytes: u64) {
        // SYNC: pairs with the Acquire load in `allocate_bytes`.
        self.control.store(control::RESERVED_BYTES, reserved_bytes, Ordering::Release);
    }

    pub fn reserved_bytes(&self) -> u64 {
        self.control.load(control::RESERVED_BYTES, Ordering::Relaxed)
    }

    pub fn used_bytes(&self) -> u64 {
        self.control.load(control::CURSOR_BYTES, Ordering::Relaxed)
    }

    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Of its bytes or of its slots.
    pub fn is_half_full(&self) -> bool {
        let slots = self.control.load(control::NEXT_SLOT, Ordering::Relaxed);
        self.used_bytes() >= self.capacity_bytes / 2 || slots >= self.slot_count / 2
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{layout::STORE_CONTROL_WORDS, words::heap_words};
    use std::cell::Cell;

    fn store(slots: usize, capacity: usize, reserved: u64) -> StoreWriter<crate::words::MappedWords> {
        let s = StoreWriter::new(heap_words(STORE_CONTROL_WORDS), heap_words(slots * SLOT_WORDS), slots, capacity);
        s.set_reserved(reserved);
        s
    }

    #[test]
    fn nothing_is_allocated_beyond_what_is_reserved() {
        let s = store(8, 4096, 128);
        assert_eq!(s.allocate(EntryKind::Cubin, 100).unwrap().offset_bytes, 0);
        assert_eq!(s.allocate(EntryKind::Cubin, 1).unwrap_err(), NoEntry::NotReserved);
        s.set_reserved(192);
        assert_eq!(s.allocate(EntryKind::Cubin, 64).unwrap().offset_bytes, 128);
    }

    #[test]
    fn the_cap_and_the_last_slot_are_full() {
        let s = store(2, 256, 256);
        assert_eq!(s.allocate(EntryKind::Cubin, 257).unwrap_err(), NoEntry::Full);
        assert_eq!(s.allocate(EntryKind::Cubin, u64::MAX).unwrap_err(), NoEntry::Full);
        assert!(s.allocate(EntryKind::Cubin, 1).is_ok());
        assert!(s.allocate(EntryKind::Cubin, 1).is_ok());
        assert_eq!(s.allocate(EntryKind::Cubin, 1).unwrap_err(), NoEntry::Full);
    }

    #[test]
    fn only_published_entries_are_found_again() {
        let s = store(4, 4096, 4096);
        let entry = s.allocate(EntryKind::Cubin, 10).unwrap();
        assert_eq!(s.find(10, || 0, |_| true), None);
        let slot = s.publish(entry, About::default());
        assert_eq!(s.find(10, || 0, |offset| offset == 0), Some(slot));
        assert_eq!(s.find(10, || 0, |_| false), None);
        assert_eq!(s.find(11, || 0, |_| true), None);
    }

    /// What would be compared of entries of one length; gives how often, and how often the check was made.
    fn compared(s: &StoreWriter<crate::words::MappedWords>, content_xor: u64, offset: u64) -> (Option<u32>, u32, u32) {
        let (compared, checked) = (Cell::new(0), Cell::new(0));
        let count = |of: &Cell<u32>| of.set(of.get() + 1);
        let content_xor = || {
            count(&checked);
            content_xor
        };
        let found = s.find(10, content_xor, |at| {
            count(&compared);
            at == offset
        });
        (found, compared.get(), checked.get())
    }

    #[test]
    fn of_many_entries_of_one_length_few_are_compared() {
        let s = store(2_000, 1 << 20, 1 << 20);
        for n in 0..1_000 {
            let entry = s.allocate(EntryKind::Cubin, 10).unwrap();
            s.publish(entry, About { content_xor: n << 3, ..About::default() });
        }
        assert_eq!(compared(&s, 0, 0), (Some(0), 1, 0), "the first costs no check");
        assert_eq!(compared(&s, 999 << 3, 999 * 64), (Some(999), 2, 1));
        assert_eq!(compared(&s, 1 << 40, u64::MAX), (None, 2, 1), "its two halves together are those of slot 32");
        assert_eq!(compared(&s, 1, u64::MAX), (None, 1, 1));
    }

    #[test]
    fn refusals_are_noted_once_for_each_size_and_have_slots_of_their_own() {
        let s = store(16, 4096, 4096);
        (0..14).for_each(|_| assert!(s.allocate(EntryKind::Cubin, 1).is_ok()));
        assert_eq!(s.allocate(EntryKind::Cubin, 1).unwrap_err(), NoEntry::Full);
        for (len_bytes, a) in [(500, 1), (600, 2), (500, 3), (700, 4), (500, 5)] {
            s.refuse(len_bytes, 9, a);
        }
        let noted = |slot| (s.get(slot, slot::B), s.get(slot, slot::A), s.get(slot, slot::USES));
        assert_eq!((noted(14), noted(15)), ((500, 1, 3), (600, 2, 1)));
        assert_eq!(s.find(0, || 0, |_| true), None);
    }
}
