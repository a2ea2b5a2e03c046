//! The segment that inputs are laid over: made once by the real writer, copied into memory of exactly its size, so that
//! the address sanitizer sees one byte too many; put right again after each input.

use crate::reading::Readers;
use gputap_ringbuf::{
    attach::Attached,
    backing::create::{BackingChoice, create},
    event::{KernelEvent, MemcpyEvent, MemsetEvent},
    header::{
        identity::Backing,
        status::{ClockPoint, Reason, State},
    },
    housekeeping::{Ahead, Housekeeper, Step},
    layout::{CHUNK_WORDS, Layout, PAGE_BYTES, Sizes},
    sync::Ordering,
    tap::{ModuleLoad, TapWriter},
    words::{MappedWords, ReadWords, Words, heap_words},
};

pub const SIZES: Sizes = Sizes {
    lanes: 2,
    lane_words: 4 * CHUNK_WORDS,
    cubin_slots: 8,
    cubin_bytes: PAGE_BYTES,
    definition_slots: 8,
    definition_bytes: PAGE_BYTES,
};
/// One lane is lapped, in records of all lengths; the other holds a few events.
const LAPPED_RECORDS: u64 = 1200;
const FEW_RECORDS: u64 = 50;
const ENTRIES: u8 = 4;

/// A segment, and what it was before an input changed it.
pub struct Segment {
    pub words: MappedWords,
    pub layout: Layout,
    right: Box<[u64]>,
}

impl Segment {
    /// # Panics
    /// Where no segment can be made, or what was written is not read back: there would be nothing to fuzz.
    pub fn new() -> Segment {
        let made = written();
        let mut right = vec![0; made.len()].into_boxed_slice();
        made.load_all(0, &mut right);
        let segment = Segment { words: copy_of(&right), layout: Layout::new(SIZES), right };
        let mut readers = Readers::new(segment.attach().expect("a valid segment"));
        readers.read_to_the_end();
        assert!(readers.delivered > FEW_RECORDS + 300, "{} records", readers.delivered);
        assert_eq!(readers.entries, 2 * u64::from(ENTRIES));
        segment
    }

    pub fn attach(&self) -> Option<Attached> {
        attach(&self.words)
    }

    /// A reader of the first `len` words only, in memory of their own.
    pub fn attach_cut(&self, len: usize) -> Option<Attached> {
        let mut copy = vec![0; len.min(self.right.len())];
        self.words.load_all(0, &mut copy);
        attach(&copy_of(&copy))
    }

    pub fn right(&self, at: usize) -> u64 {
        self.right.get(at).copied().unwrap_or(0)
    }

    pub fn put_right(&self, at: usize) {
        self.words.store(at, self.right(at), Ordering::Relaxed);
    }
}

impl Default for Segment {
    fn default() -> Self {
        Segment::new()
    }
}

fn attach(words: &MappedWords) -> Option<Attached> {
    Attached::new(words.clone(), words.len() as u64 * 8).ok()
}

fn copy_of(from: &[u64]) -> MappedWords {
    let words = heap_words(from.len());
    from.iter().enumerate().for_each(|(i, word)| words.store(i, *word, Ordering::Relaxed));
    words
}

fn written() -> MappedWords {
    let created = create(SIZES, BackingChoice::Only(Backing::Memfd)).expect("a segment");
    let tap = TapWriter::new(&created);
    let words = created.words.clone();
    let mut housekeeper = Housekeeper::new(created.reserver, Ahead::DEFAULT);
    while let Step::Reserved = housekeeper.step(&tap) {}
    tap.status().set_state(State::Off, Reason::NoRoom, "a detail");
    tap.status().set_cupti(130_001, "/usr/lib/libcupti.so.13");
    (0..70).for_each(|n| tap.status().add_clock_point(ClockPoint { monotonic_ns: n, realtime_ns: n, error_ns: n }));
    for n in 1..=ENTRIES {
        let image = vec![n; 100 * usize::from(n)];
        // SAFETY: `image` can be read and does not change.
        unsafe { tap.store_cubin(image.as_ptr(), image.len(), ModuleLoad::default()) };
        tap.store_kernel_name(&image, 0).expect("room for a name");
    }
    write_records(&tap, 100, LAPPED_RECORDS);
    write_records(&tap, 200, FEW_RECORDS);
    tap.publish();
    words
}

fn write_records(tap: &TapWriter, thread: u64, count: u64) {
    let lane = tap.enter_lane(thread, thread).expect("a lane");
    for n in 0..count {
        let times = (n, n + 1);
        let payload = match n % 4 {
            0 => KernelEvent { start_ns: times.0, end_ns: times.1, name_id: n as u32 % 8, ..Default::default() }
                .encode()
                .to_vec(),
            1 => MemcpyEvent { start_ns: times.0, end_ns: times.1, bytes: n, ..Default::default() }.encode().to_vec(),
            2 => MemsetEvent { start_ns: times.0, end_ns: times.1, bytes: n, ..Default::default() }.encode().to_vec(),
            _ => vec![n; (n * 7 % 331) as usize],
        };
        lane.write(n as u16 % 4 + 1, &payload).expect("a record that fits");
    }
}
