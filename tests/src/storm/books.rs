//! One reader's accounts of one tap: every record, entry and text checked, every loss by its reason.

use std::collections::HashMap;

use gputap_ringbuf::{
    attach::Attached,
    lane::reader::{LaneReader, Record},
    store::{EntryKind, reader::StoreReader},
    words::MappedWords,
};

use super::pattern::{self, RecordId};

/// Sums over lanes and stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub delivered: u64,
    pub overwritten: u64,
    pub before_attach: u64,
    pub abandoned: u64,
    /// Anything that is not what was written: must stay 0.
    pub corrupt: u64,
    pub cubins: u64,
    pub names: u64,
}

impl Sums {
    /// Records of the lanes that are accounted for.
    pub fn records(&self) -> u64 {
        self.delivered + self.overwritten + self.before_attach + self.abandoned
    }
}

/// What a reader holds of one tap.
pub struct Books {
    attached: Attached,
    lanes: Vec<LaneBook>,
    cubins: StoreReader,
    names: StoreReader,
    seen: Seen,
    gaps: Vec<Gap>,
    pub sums: Sums,
    /// The first few faults, for people.
    pub faults: Vec<String>,
}

struct LaneBook {
    reader: LaneReader<MappedWords>,
    next_seq: u64,
    last: Option<RecordId>,
    /// The next number that each stream may have in this lane.
    next_of: HashMap<u32, u32>,
}

/// Which records have come, whatever their lane: a bit each.
#[derive(Default)]
struct Seen(HashMap<u32, Vec<u64>>);

impl Seen {
    /// False where it had come before.
    fn add(&mut self, id: RecordId) -> bool {
        let words = self.0.entry(id.stream).or_default();
        let (word, bit) = (id.number as usize / 64, 1 << (id.number % 64));
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        let new = words[word] & bit == 0;
        words[word] |= bit;
        new
    }

    fn missing(&self, gap: &Gap) -> u64 {
        let words = self.0.get(&gap.stream).map_or(&[][..], Vec::as_slice);
        let has = |n: &u32| words.get(*n as usize / 64).is_some_and(|word| word >> (n % 64) & 1 == 1);
        (gap.from..gap.to).filter(|n| !has(n)).count() as u64
    }
}

/// Numbers of a stream that are missing between two records that follow each other in a lane. Its thread wrote them into
/// another lane, which it claimed because housekeeping was just looking after this one.
struct Gap {
    stream: u32,
    from: u32,
    to: u32,
}

const MOST_FAULTS: usize = 5;

impl Books {
    pub fn open(attached: Attached) -> Books {
        let lanes = (0..attached.lane_count()).map(|i| LaneBook {
            reader: attached.lane(i),
            next_seq: 0,
            last: None,
            next_of: HashMap::new(),
        });
        let (lanes, cubins, names) = (lanes.collect(), attached.cubins(), attached.definitions());
        let (seen, gaps, sums, faults) = (Seen::default(), Vec::new(), Sums::default(), Vec::new());
        Books { attached, lanes, cubins, names, seen, gaps, sums, faults }
    }

    /// Takes what is there, about `limit` records a lane; gives whether there is more.
    pub fn drain(&mut self, limit: u64) -> bool {
        let (mut more, mut faults) = (false, Vec::new());
        for lane in &mut self.lanes {
            let (seen, gaps) = (&mut self.seen, &mut self.gaps);
            let LaneBook { reader, next_seq, last, next_of } = lane;
            let done = reader.drain(limit, |record| match check(record, next_seq, last, next_of, seen) {
                Ok(gap) => gaps.extend(gap),
                Err(fault) => faults.push(fault),
            });
            if done.unreadable > 0 {
                faults.push(format!("{} records were unreadable", done.unreadable));
            }
            more |= done.more;
            self.sums.delivered += done.delivered;
            self.sums.overwritten += done.overwritten;
            self.sums.before_attach += done.before_attach;
            self.sums.abandoned += done.abandoned;
        }
        self.note(faults);
        more
    }

    /// Takes all that there is: the writer writes no more.
    pub fn close(&mut self) {
        while self.drain(u64::MAX) {}
        self.look();
        let missing: u64 = self.gaps.iter().map(|gap| self.seen.missing(gap)).sum();
        if missing > self.sums.overwritten + self.sums.before_attach {
            self.note(vec![format!("{missing} records are missing between others, and came in no other lane")]);
        }
    }

    /// Checks the entries that are new, and the status.
    pub fn look(&mut self) {
        let mut faults = Vec::new();
        while let Some(entry) = self.cubins.next_entry() {
            if entry.kind == EntryKind::RefusedCubin as u16 {
                continue;
            }
            self.sums.cubins += 1;
            let expected = (entry.a < pattern::IMAGES.into()).then(|| pattern::image(entry.a as u32));
            if entry.kind != EntryKind::Cubin as u16 || self.cubins.read(&entry).ok() != expected || entry.b != 7 {
                faults.push(format!("{entry:?} is not the image that was loaded"));
            }
        }
        while let Some(entry) = self.names.next_entry() {
            self.sums.names += 1;
            let is_name = |bytes: Vec<u8>| pattern::is_a_name(&bytes) && entry.a == bytes.len() as u64;
            if !self.names.read(&entry).is_ok_and(is_name) {
                faults.push(format!("{entry:?} is not a name that was stored"));
            }
        }
        for store in [&mut self.cubins, &mut self.names] {
            if std::mem::take(&mut store.invalid) > 0 {
                faults.push(String::from("an entry's description is not what was written"));
            }
        }
        faults.extend(self.status_faults());
        self.note(faults);
    }

    fn status_faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let detail = self.attached.status().detail;
        // A writer may have been killed, or be stopped, in the middle of the text: that is said.
        if !pattern::is_a_text(&detail) && detail != "(a text that never settled)" {
            faults.push(format!("a status text is {detail:?}"));
        }
        for point in self.attached.clock_points() {
            let (realtime_ns, error_ns) = (pattern::realtime_of(point.monotonic_ns), point.monotonic_ns % 1000);
            if (point.realtime_ns, point.error_ns) != (realtime_ns, error_ns) {
                faults.push(format!("{point:?} was never written"));
            }
        }
        faults
    }

    fn note(&mut self, faults: Vec<String>) {
        self.sums.corrupt += faults.len() as u64;
        let room = MOST_FAULTS.saturating_sub(self.faults.len());
        self.faults.extend(faults.into_iter().take(room));
    }

    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// What the entries of the cubin store say of how often they were met, and how often cubins were refused.
    pub fn cubin_uses(&self) -> (u64, u64) {
        let mut again = self.attached.cubins();
        let (mut uses, mut refused) = (0, 0);
        while let Some(entry) = again.next_entry() {
            *(if entry.kind == EntryKind::Cubin as u16 { &mut uses } else { &mut refused }) += entry.uses;
        }
        (uses, refused)
    }
}

/// Whether a record is one that was written, came once, and came in its place; and what is missing before it.
fn check(
    record: Record<'_>,
    next_seq: &mut u64,
    last: &mut Option<RecordId>,
    next_of: &mut HashMap<u32, u32>,
    seen: &mut Seen,
) -> Result<Option<Gap>, String> {
    let seq = record.seq;
    let Some(id) = RecordId::of(record.kind, record.words) else {
        return Err(format!("record {seq} of kind {} was never written", record.kind));
    };
    let follows = seq == *next_seq;
    if seq < *next_seq {
        return Err(format!("record {seq} came after {}", *next_seq - 1));
    }
    *next_seq = seq + 1;
    let next = next_of.entry(id.stream).or_default();
    if id.number < *next {
        return Err(format!("{id:?} came after number {}", *next - 1));
    }
    // Two records of one thread that follow each other in a lane; handlers leave out numbers.
    let jumps = follows && last.is_some_and(|l| l.stream == id.stream && l.number + 1 != id.number);
    let gap = (jumps && id.stream.is_multiple_of(2)).then_some(Gap { stream: id.stream, from: *next, to: id.number });
    *next = id.number + 1;
    *last = Some(id);
    if seen.add(id) { Ok(gap) } else { Err(format!("{id:?} came twice")) }
}
