//! A reader of everything, as a session reads: bounded, and with the promises of the reading side checked.

use gputap_ringbuf::{
    attach::Attached,
    event::{Event, NO_NAME},
    lane::reader::LaneReader,
    layout::{CHUNK_WORDS, status},
    store::reader::{BadEntry, Entry, StoreReader},
    words::MappedWords,
};

/// Drains after which a lane that nobody writes has to be at its end.
const MAX_DRAINS: usize = 1000;
/// Entries may overlap: read in full, a segment of lies would cost its size times its slots.
const MAX_READ_BYTES: u64 = 1 << 20;
/// Entries taken from a store in one turn.
const TURN_ENTRIES: usize = 3;

pub struct Readers {
    attached: Attached,
    lanes: Vec<Lane>,
    cubins: Store,
    definitions: Store,
    pub delivered: u64,
    pub entries: u64,
}

struct Lane {
    reader: LaneReader<MappedWords>,
    next_seq: u64,
    /// Delivered, overwritten, before the reader attached, unreadable.
    accounted: u64,
}

struct Store {
    reader: StoreReader,
    size_bytes: u64,
    seen: Vec<bool>,
    read_bytes: u64,
}

impl Readers {
    pub fn new(attached: Attached) -> Readers {
        let sizes = attached.layout().sizes;
        let lane = |lane| Lane { reader: attached.lane(lane), next_seq: 0, accounted: 0 };
        Readers {
            lanes: (0..sizes.lanes).map(lane).collect(),
            cubins: Store::new(attached.cubins(), sizes.cubin_slots, sizes.cubin_bytes),
            definitions: Store::new(attached.definitions(), sizes.definition_slots, sizes.definition_bytes),
            attached,
            delivered: 0,
            entries: 0,
        }
    }

    /// One bounded turn; true where there is more in the lanes.
    pub fn turn(&mut self, records: u64) -> bool {
        self.look();
        let mut more = false;
        for lane in &mut self.lanes {
            more |= lane.drain(records, &self.definitions.reader, &mut self.delivered);
        }
        for store in [&mut self.cubins, &mut self.definitions] {
            let taken = (0..TURN_ENTRIES).take_while(|_| store.next()).count();
            self.entries += taken as u64;
        }
        more
    }

    /// # Panics
    /// Where a segment that nobody writes is not read to an end.
    pub fn read_to_the_end(&mut self) {
        let mut turns = 0;
        while self.turn(1000) {
            turns += 1;
            assert!(turns < MAX_DRAINS, "a lane does not come to an end");
        }
        for store in [&mut self.cubins, &mut self.definitions] {
            while store.next() {
                self.entries += 1;
            }
            assert!(store.reader.unfinished() <= store.seen.len());
        }
    }

    fn look(&self) {
        let status = self.attached.status();
        for text in [&status.detail, &status.cupti_path] {
            // A byte that is no text becomes a character of three.
            assert!(text.len() <= 3 * 8 * status::TEXT_WORDS && !text.contains(char::is_control), "{text:?}");
        }
        assert!(self.attached.clock_points().len() <= status::CLOCK_POINTS);
        let _ = (self.attached.counters(), self.attached.clock(), self.attached.identity());
        let used = (0..self.attached.lane_count() + 1).filter(|lane| self.attached.lane_is_used(*lane)).count();
        assert!(used <= self.attached.lane_count());
    }
}

impl Lane {
    fn drain(&mut self, records: u64, names: &StoreReader, delivered: &mut u64) -> bool {
        let (mut calls, mut next_seq) = (0, self.next_seq);
        let done = self.reader.drain(records, |record| {
            assert!(record.seq >= next_seq, "record {} came after {next_seq}", record.seq);
            assert!(record.words.len() < CHUNK_WORDS);
            next_seq = record.seq + 1;
            calls += 1;
            if let Ok(Event::Kernel(kernel)) = Event::decode(record.kind, record.words)
                && kernel.name_id != NO_NAME
            {
                let _ = names.entry(kernel.name_id);
            }
        });
        self.next_seq = next_seq;
        self.accounted += done.accounted();
        assert_eq!(done.delivered, calls);
        assert!(calls <= records + CHUNK_WORDS as u64, "{calls} records, {records} were asked for");
        assert!(self.accounted >= next_seq, "{} of {next_seq} records accounted for: {done:?}", self.accounted);
        *delivered += calls;
        done.more
    }
}

impl Store {
    fn new(reader: StoreReader, slots: usize, size_bytes: usize) -> Store {
        Store { reader, size_bytes: size_bytes as u64, seen: vec![false; slots], read_bytes: 0 }
    }

    fn next(&mut self) -> bool {
        let Some(entry) = self.reader.next_entry() else { return false };
        let seen = &mut self.seen[entry.slot as usize];
        assert!(!*seen, "slot {} came twice", entry.slot);
        *seen = true;
        self.read(&entry);
        true
    }

    fn read(&mut self, entry: &Entry) {
        assert!(entry.len_bytes <= self.size_bytes && entry.offset_bytes <= self.size_bytes - entry.len_bytes);
        self.read_bytes += entry.len_bytes;
        if self.read_bytes <= MAX_READ_BYTES {
            match self.reader.read(entry) {
                Ok(bytes) => assert_eq!(bytes.len() as u64, entry.len_bytes),
                Err(BadEntry::Changed) => {}
                Err(error) => panic!("{entry:?}: {error}"),
            }
        }
    }
}
