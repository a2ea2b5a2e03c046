//! Everything that a callback may do with a tap, as a list of calls that each say whether they did what they should.
//! None of them allocates, so that whoever runs them can forbid it.

use gputap_ringbuf::{
    backing::create::{BackingChoice, create},
    header::{counters::Counter, identity::Backing},
    housekeeping::{Ahead, Housekeeper, Step},
    lane::{MAX_PAYLOAD_WORDS, directory::Refused, header},
    layout::{CHUNK_WORDS, PAGE_BYTES, Sizes},
    store::EntryKind,
    sync::Ordering,
    tap::{ModuleLoad, TapWriter},
    words::{MappedWords, Words},
};

const SIZES: Sizes = Sizes {
    lanes: 3,
    lane_words: 4 * CHUNK_WORDS,
    cubin_slots: 64,
    cubin_bytes: 16 * PAGE_BYTES,
    definition_slots: 8,
    definition_bytes: PAGE_BYTES,
};
/// Half of the cubins' room; the rest is what housekeeping has not come to yet.
const AHEAD: Ahead = Ahead {
    lanes: 3,
    cubin_bytes: 8 * PAGE_BYTES as u64,
    definition_bytes: PAGE_BYTES as u64,
    step_bytes: PAGE_BYTES as u64,
};

/// Threads, as pointer and id.
const WRITER: (u64, u64) = (0x1000, 11);
const OTHER: (u64, u64) = (0x2000, 12);
const ONE_TOO_MANY: (u64, u64) = (0x3000, 13);
const ENDED_INSIDE: (u64, u64) = (0x4000, 14);
const ITS_HEIR: (u64, u64) = (0x4000, 15);

/// More than fit into a lane.
const SMALL_RECORDS: u64 = 20_000;
const SMALL_WORDS: usize = 5;

/// A tap and what its callbacks are handed.
pub struct Prepared {
    tap: TapWriter,
    words: MappedWords,
    payload: Vec<u64>,
    image: Vec<u8>,
    image_not_reserved: Vec<u8>,
    image_too_large: Vec<u8>,
}

pub type Call = (&'static str, fn(&Prepared) -> bool);

/// In the order in which they are made.
pub const CALLS: &[Call] = &[
    ("claiming a lane", |p| p.tap.enter_lane(WRITER.0, WRITER.1).is_ok()),
    ("entering it again, and a record of no words", |p| p.write(0)),
    ("a small record", |p| p.write(8)),
    ("a record of a whole chunk, which opens one", |p| p.write(MAX_PAYLOAD_WORDS)),
    ("a record that is too long, refused", |p| !p.write(MAX_PAYLOAD_WORDS + 1)),
    ("lapping the lane with small records", |p| (0..SMALL_RECORDS).all(|_| p.write(SMALL_WORDS))),
    ("lapping the lane with records of a chunk", |p| (0..6).all(|_| p.write(MAX_PAYLOAD_WORDS))),
    ("a write nested in a write, refused", Prepared::write_nested),
    ("the heir of a thread that ended inside a write", |p| p.write_as(ITS_HEIR, 3)),
    ("the last lane", |p| p.write_as(OTHER, 1)),
    ("no lane left, refused", Prepared::write_without_lane),
    ("a new cubin", |p| p.load(&p.image, Counter::CubinBytes, p.image.len() as u64)),
    ("the same cubin again", |p| p.load(&p.image, Counter::ModuleDuplicates, 1)),
    ("a cubin beyond what is reserved", |p| p.load(&p.image_not_reserved, Counter::ModulesNotReserved, 1)),
    ("a cubin beyond the cap", |p| p.load(&p.image_too_large, Counter::ModulesFull, 1)),
    ("the same once more, noted already", |p| p.load(&p.image_too_large, Counter::ModulesFull, 1)),
    ("names, looked at again", Prepared::names),
    ("names until there is no room", |p| (0..8).any(|_| p.tap.store_kernel_name(b"another", 7).is_none())),
    ("counters", Prepared::counters),
];

impl Prepared {
    pub fn new() -> Prepared {
        let created = create(SIZES, BackingChoice::Only(Backing::Memfd)).unwrap();
        let tap = TapWriter::new(&created);
        let words = created.words.clone();
        let mut housekeeper = Housekeeper::new(created.reserver, AHEAD);
        while let Step::Reserved = housekeeper.step(&tap) {}
        end_inside_a_write(&tap, &words, created.layout.lane_header(0));
        tap.publish();
        Prepared {
            tap,
            words,
            payload: (0..MAX_PAYLOAD_WORDS as u64 + 1).collect(),
            image: vec![7; 40_000],
            image_not_reserved: vec![8; 12 * PAGE_BYTES],
            image_too_large: vec![9; 17 * PAGE_BYTES],
        }
    }

    fn write(&self, words: usize) -> bool {
        self.write_as(WRITER, words)
    }

    fn write_as(&self, (thread, tid): (u64, u64), words: usize) -> bool {
        self.tap.enter_lane(thread, tid).is_ok_and(|lane| lane.write(1, &self.payload[..words]).is_ok())
    }

    fn write_nested(&self) -> bool {
        let Ok(outer) = self.tap.enter_lane(WRITER.0, WRITER.1) else { return false };
        let nested = self.tap.enter_lane(WRITER.0, WRITER.1).err();
        self.tap.count(Counter::Nested, 1);
        nested == Some(Refused::Nested) && outer.write(2, &self.payload[..2]).is_ok()
    }

    fn write_without_lane(&self) -> bool {
        let refused = self.tap.enter_lane(ONE_TOO_MANY.0, ONE_TOO_MANY.1).err();
        self.tap.count(Counter::NoLane, 1);
        refused == Some(Refused::NoLane)
    }

    /// Whether a load of `image` raises `counter` by so much.
    fn load(&self, image: &[u8], counter: Counter, by: u64) -> bool {
        let before = counter.read(&self.words);
        // SAFETY: `image` can be read and does not change.
        unsafe { self.tap.store_cubin(image.as_ptr(), image.len(), ModuleLoad { module_id: 5, context: 6 }) };
        counter.read(&self.words) == before + by
    }

    fn names(&self) -> bool {
        let Some(slot) = self.tap.store_kernel_name(b"kernel", 6) else { return false };
        self.tap.is_name(slot, b"kernel") && !self.tap.is_name(slot, b"kernal") && !self.tap.is_name(slot + 1, b"")
    }

    fn counters(&self) -> bool {
        self.tap.count(Counter::BuffersCompleted, 2);
        self.tap.raise_to(Counter::FlushMaxNs, 99);
        Counter::BuffersCompleted.read(&self.words) == 2 && Counter::FlushMaxNs.read(&self.words) == 99
    }

    /// Fails unless readers of the segment find what [`CALLS`] say they did.
    pub fn check_segment(&self) {
        let attached = self.tap.as_reader().unwrap();
        let (mut in_lanes, mut abandoned) = (0, 0);
        for lane in 0..attached.lane_count() {
            let done = attached.lane(lane).drain(u64::MAX, |_| ());
            assert_eq!(done.unreadable, 0, "lane {lane}");
            in_lanes += done.delivered + done.before_attach + done.abandoned;
            abandoned += done.abandoned;
        }
        // Besides the many: three and six and the outer one, the heir's and its predecessor's, the other thread's.
        assert_eq!((in_lanes, abandoned), (SMALL_RECORDS + 3 + 6 + 1 + 2 + 1, 1));
        let counters = attached.counters();
        assert_eq!((counters.get(Counter::NoLane), counters.get(Counter::Nested)), (1, 1));
        assert_eq!(counters.attempted, in_lanes + 2);
        assert_eq!(counters.get(Counter::ModuleLoads), 5);
        let mut cubins = attached.cubins();
        let entries: Vec<_> =
            std::iter::from_fn(|| cubins.next_entry()).map(|e| (e.kind, e.len_bytes, e.uses)).collect();
        let refused = EntryKind::RefusedCubin as u16;
        assert_eq!(entries, [(EntryKind::Cubin as u16, 40_000, 2), (refused, 0, 1), (refused, 0, 2)]);
        assert!(counters.get(Counter::NamesLost) == 1 && cubins.invalid == 0);
    }
}

/// As a thread leaves its lane that ends between its store of INTENT and that of TAIL.
fn end_inside_a_write(tap: &TapWriter, words: &MappedWords, lane_0: usize) {
    let lane = tap.enter_lane(ENDED_INSIDE.0, ENDED_INSIDE.1).unwrap();
    assert_eq!(lane.index(), 0);
    std::mem::forget(lane);
    words.store(lane_0 + header::INTENT, 100, Ordering::Relaxed);
}
