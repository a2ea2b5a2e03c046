//! Writers and a reader of a store. The bytes of an entry are words that loom watches too.

use super::{LoomWords, check};
use gputap_ringbuf::{
    layout::{SLOT_WORDS, STORE_CONTROL_WORDS},
    store::{
        ENTRY_ALIGN_BYTES, EntryKind,
        reader::StoreReader,
        writer::{About, StoreWriter},
    },
    sync::Ordering,
    words::{ReadWords, Words, heap_words},
};
use loom::thread;

const SLOTS: usize = 2;
const CAPACITY_BYTES: usize = SLOTS * ENTRY_ALIGN_BYTES as usize;
const LEN_BYTES: u64 = 8;

#[derive(Clone)]
struct Store {
    control: LoomWords,
    slots: LoomWords,
    /// The first word of each entry's bytes.
    bytes: LoomWords,
    writer: StoreWriter<LoomWords>,
}

impl Store {
    fn new() -> Store {
        let (control, slots) = (LoomWords::new(STORE_CONTROL_WORDS), LoomWords::new(SLOTS * SLOT_WORDS));
        let writer = StoreWriter::new(control.clone(), slots.clone(), SLOTS, CAPACITY_BYTES);
        Store { control, slots, bytes: LoomWords::new(SLOTS), writer }
    }

    fn byte_word(offset_bytes: u64) -> usize {
        (offset_bytes / ENTRY_ALIGN_BYTES) as usize
    }

    fn put(&self, value: u64) -> Option<u32> {
        let entry = self.writer.allocate(EntryKind::Cubin, LEN_BYTES).ok()?;
        let at = Self::byte_word(entry.offset_bytes);
        assert_eq!(self.bytes.fetch_add(at, value, Ordering::Relaxed), 0, "two writers got the same room");
        Some(self.writer.publish(entry, About { content_xor: 0, first_ns: 7, a: value, b: 0 }))
    }

    fn reader(&self) -> StoreReader<LoomWords> {
        StoreReader::new(self.control.clone(), self.slots.clone(), SLOTS, heap_words(CAPACITY_BYTES / 8))
    }

    /// Every entry that is ready, checked; gives how many.
    fn read(&self, reader: &mut StoreReader<LoomWords>) -> usize {
        let mut count = 0;
        while let Some(entry) = reader.next_entry() {
            assert_eq!((entry.len_bytes, entry.uses, entry.first_ns), (LEN_BYTES, 1, 7));
            let value = self.bytes.load(Self::byte_word(entry.offset_bytes), Ordering::Relaxed);
            assert!(value != 0 && value == entry.a, "the bytes are those of the entry");
            count += 1;
        }
        assert_eq!(reader.invalid, 0);
        count
    }
}

/// Two writers publish while a reader reads.
pub fn publishing() {
    check("store, publishing", 2, || {
        let store = Store::new();
        store.writer.set_reserved(CAPACITY_BYTES as u64);
        let (other, read) = (store.clone(), store.clone());
        let other = thread::spawn(move || other.put(20).unwrap());
        let reading = thread::spawn(move || {
            let mut reader = read.reader();
            let seen = read.read(&mut reader);
            (reader, seen)
        });
        store.put(10).unwrap();
        other.join().unwrap();
        let (mut reader, mut seen) = reading.join().unwrap();
        seen += store.read(&mut reader);
        assert_eq!((seen, reader.unfinished()), (2, 0));
    });
}

/// Another writer of the same process finds an entry: what it compares are that entry's bytes.
pub fn finding() {
    check("store, finding", 3, || {
        let store = Store::new();
        store.writer.set_reserved(CAPACITY_BYTES as u64);
        let other = store.clone();
        let finding = thread::spawn(move || {
            let value = |offset_bytes| other.bytes.load(Store::byte_word(offset_bytes), Ordering::Relaxed);
            other.writer.find(
                LEN_BYTES,
                || 0,
                |offset_bytes| {
                    assert_eq!(value(offset_bytes), 10);
                    true
                },
            )
        });
        store.put(10).unwrap();
        finding.join().unwrap();
    });
}

/// Another writer looks at a slot whose number it has.
pub fn looking_up() {
    check("store, looking up", 3, || {
        let store = Store::new();
        store.writer.set_reserved(CAPACITY_BYTES as u64);
        let other = store.clone();
        let looking = thread::spawn(move || {
            let Some((offset_bytes, len_bytes)) = other.writer.ready(0) else { return };
            let value = other.bytes.load(Store::byte_word(offset_bytes), Ordering::Relaxed);
            assert_eq!((len_bytes, value), (LEN_BYTES, 10));
        });
        store.put(10).unwrap();
        looking.join().unwrap();
    });
}

/// Room is allocated only where housekeeping has put pages before.
pub fn reserving() {
    check("store, reserving", 3, || {
        let (store, pages) = (Store::new(), LoomWords::new(1));
        let (other, its_pages) = (store.clone(), pages.clone());
        let writing = thread::spawn(move || {
            if other.writer.allocate(EntryKind::Cubin, LEN_BYTES).is_ok() {
                assert_eq!(its_pages.load(0, Ordering::Relaxed), 1, "allocated without a page");
            }
        });
        pages.store(0, 1, Ordering::Relaxed);
        store.writer.set_reserved(CAPACITY_BYTES as u64);
        writing.join().unwrap();
    });
}

#[test]
fn entries_are_whole_when_they_are_seen_and_nobody_shares_room() {
    publishing();
}

#[test]
fn an_entry_found_again_has_its_bytes() {
    finding();
    looking_up();
}

#[test]
fn room_is_allocated_only_where_there_are_pages() {
    reserving();
}
