//! A process with a tap, its threads and its readers, all on one thread of the test.

use crate::{
    books::{self, Begun, Books, Tally},
    interrupted::{Interrupt, Interrupted, Plan},
    schedule::{Op, POINTERS, Step},
};
use gputap_ringbuf::{
    backing::{create::Created, reserve::Reserver},
    control::{CONTROL_BYTES, server::ControlServer},
    header::{
        counters::Counter,
        identity::{Backing, Identity},
    },
    housekeeping::{Ahead, Housekeeper},
    lane::{MAX_PAYLOAD_WORDS, directory::Refused, header, reader::LaneReader},
    layout::{CHUNK_WORDS, Layout, Sizes},
    sync::Ordering,
    tap::{Lane, TapWriter},
    words::{MappedWords, ReadWords, heap_words},
};
use std::{
    cell::{Cell, RefCell},
    ptr::NonNull,
    rc::Rc,
    sync::Arc,
};

const LANE_BYTES: u64 = 4 * CHUNK_WORDS as u64 * 8;

/// A write that its thread has begun.
struct Writing {
    lane: usize,
    words: usize,
    tail: u64,
}

#[derive(Default)]
struct Reader(Vec<(LaneReader<MappedWords>, Tally)>);

/// What a whole schedule came to.
#[derive(Debug, Default)]
pub struct Summary {
    pub attempted: u64,
    /// Refused inside a write, and written in between: before the outer one had its lane, or after.
    pub nested: u64,
    pub nested_in_between: u64,
    pub no_lane: u64,
    /// By all readers.
    pub overwritten: u64,
    pub before_attach: u64,
    pub abandoned: u64,
    /// Called for by a thread that ended before it began, which nobody knows of.
    pub vanished: u64,
}

impl Summary {
    pub fn add(&mut self, other: Summary) {
        self.attempted += other.attempted;
        self.nested += other.nested;
        self.nested_in_between += other.nested_in_between;
        self.no_lane += other.no_lane;
        self.overwritten += other.overwritten;
        self.before_attach += other.before_attach;
        self.abandoned += other.abandoned;
        self.vanished += other.vanished;
    }
}

pub struct World {
    words: MappedWords,
    tap: TapWriter<Interrupted>,
    plan: Rc<Plan>,
    housekeeper: RefCell<Housekeeper>,
    books: RefCell<Books>,
    readers: RefCell<Vec<Reader>>,
    /// The id of the living thread with each pointer.
    threads: RefCell<[Option<u64>; POINTERS]>,
    next_tid: Cell<u64>,
    /// Whose write is under way.
    inside: Cell<Option<usize>>,
    writing: RefCell<Vec<Writing>>,
    nested: Cell<u64>,
    nested_in_between: Cell<u64>,
    no_lane: Cell<u64>,
    /// Writes that were called.
    attempted: Cell<u64>,
    /// Writes under way, nested ones included, and how many of those their thread's end cut short.
    depth: Cell<u64>,
    cut_short: Cell<u64>,
}

/// A tap that may reserve so many lanes.
fn tap(lanes: usize, room_lanes: u64, plan: &Rc<Plan>) -> (MappedWords, TapWriter<Interrupted>, Housekeeper) {
    let sizes = Sizes { lanes, lane_words: 4 * CHUNK_WORDS, ..Sizes::STATUS_ONLY };
    let layout = Layout::new(sizes.checked().unwrap());
    let words = heap_words(layout.total_words);
    let identity = Identity::current(std::process::id(), Backing::Shm, 1, 2);
    identity.write(&words, &sizes);
    let control = ControlServer::new(heap_words(CONTROL_BYTES / 8), 1, 2);
    let reserver = Reserver::new(words.clone(), None, false, 0);
    let created = Created { words: words.clone(), layout, identity, reserver, control };
    let tap = TapWriter::seen_through(&created, |words| Interrupted::new(words, plan));
    let reserver = Reserver::new(pages(layout), None, false, room_lanes * LANE_BYTES);
    let ahead = Ahead { lanes: 1, cubin_bytes: 0, definition_bytes: 0, step_bytes: LANE_BYTES };
    tap.publish();
    (words, tap, Housekeeper::new(reserver, ahead))
}

/// Memory that can be populated, of the size of the segment: heap words do not begin at a page.
fn pages(layout: Layout) -> MappedWords {
    let map = memmap2::MmapMut::map_anon(layout.total_words * 8).unwrap();
    let base = NonNull::new(map.as_ptr().cast_mut()).unwrap();
    // SAFETY: an anonymous map of that size, aligned to pages, kept by the Arc.
    unsafe { MappedWords::new(base, layout.total_words, Some(Arc::new(map))) }
}

impl World {
    pub fn new(lanes: usize, room_lanes: u64) -> World {
        let plan = Rc::new(Plan::default());
        let (words, tap, housekeeper) = tap(lanes, room_lanes, &plan);
        let world = World {
            words,
            tap,
            plan,
            housekeeper: housekeeper.into(),
            books: RefCell::new(vec![Vec::new(); lanes]),
            readers: RefCell::default(),
            threads: RefCell::default(),
            next_tid: Cell::new(1),
            writing: RefCell::default(),
            nested: Cell::default(),
            nested_in_between: Cell::default(),
            no_lane: Cell::default(),
            inside: Cell::default(),
            attempted: Cell::default(),
            depth: Cell::default(),
            cut_short: Cell::default(),
        };
        world.attach();
        world
    }

    pub fn perform(&self, op: &Op) {
        let writer = match op.step {
            Step::Write { pointer, .. } => Some(pointer),
            _ => None,
        };
        let interrupt = op.interrupt.as_ref().map(|(before, step)| {
            let nested = matches!(step, Step::Write { pointer, .. } if Some(*pointer) == writer);
            let what = move || if nested { self.step(step) } else { self.plan.aside(|| self.step(step)) };
            Interrupt { before: *before, what: Box::new(what) }
        });
        // Only threads that write end inside something.
        let end_before = op.end_before.filter(|_| writer.is_some());
        self.inside.set(writer);
        let done = self.plan.run(end_before, interrupt, || self.step(&op.step));
        self.inside.set(None);
        if let (None, Some(pointer)) = (done, writer) {
            self.ended_inside(pointer);
        }
    }

    fn step(&self, step: &Step) {
        match *step {
            Step::Write { pointer, count, words } => (0..count).for_each(|_| self.write(pointer, words)),
            Step::End { pointer } => self.end(pointer),
            Step::Reserve => self.reserve(),
            Step::Free => _ = self.free(),
            Step::Attach => self.attach(),
            Step::Drain { reader, limit } => self.drain(reader, limit),
        }
    }

    /// A thread inside a write does not end while others have their turn.
    fn end(&self, pointer: usize) {
        if self.inside.get() != Some(pointer) {
            self.threads.borrow_mut()[pointer] = None;
        }
    }

    fn tid(&self, pointer: usize) -> u64 {
        *self.threads.borrow_mut()[pointer].get_or_insert_with(|| self.next_tid.replace(self.next_tid.get() + 1))
    }

    fn is_gone(&self, tid: u64) -> bool {
        !self.threads.borrow().contains(&Some(tid))
    }

    fn write(&self, pointer: usize, words: usize) {
        let tid = self.tid(pointer);
        add(&self.attempted, 1);
        add(&self.depth, 1);
        match self.tap.enter_lane(1000 + pointer as u64, tid) {
            Ok(lane) => {
                self.write_into(lane, words);
                let in_between = self.inside.get() == Some(pointer) && self.depth.get() > 1;
                add(&self.nested_in_between, u64::from(in_between));
            }
            Err(Refused::Nested) => {
                self.tap.count(Counter::Nested, 1);
                add(&self.nested, 1);
            }
            Err(Refused::NoLane) => {
                self.tap.count(Counter::NoLane, 1);
                add(&self.no_lane, 1);
            }
        }
        self.depth.set(self.depth.get() - 1);
    }

    fn write_into(&self, lane: Lane<'_, Interrupted>, words: usize) {
        let index = lane.index();
        let seq = self.books.borrow()[index].len() as u64;
        assert_eq!(self.header(index, header::NEXT_SEQ), seq, "lane {index}");
        let mut payload = [0; MAX_PAYLOAD_WORDS];
        let payload = &mut payload[..words];
        payload.iter_mut().enumerate().for_each(|(i, w)| *w = books::word(index, seq, i));
        let tail = self.header(index, header::TAIL);
        self.writing.borrow_mut().push(Writing { lane: index, words, tail });
        lane.write(books::kind(index, seq), payload).unwrap();
        self.writing.borrow_mut().pop();
        self.books.borrow_mut()[index].push(Begun::Finished { words });
    }

    /// The thread is gone: what it had begun is finished if TAIL says so, abandoned if INTENT does.
    fn ended_inside(&self, pointer: usize) {
        add(&self.cut_short, self.depth.replace(0));
        self.threads.borrow_mut()[pointer] = None;
        for Writing { lane, words, tail } in self.writing.take() {
            let (intent_now, tail_now) = (self.header(lane, header::INTENT), self.header(lane, header::TAIL));
            if tail_now != tail {
                self.books.borrow_mut()[lane].push(Begun::Finished { words });
            } else if intent_now != tail {
                self.books.borrow_mut()[lane].push(Begun::Abandoned { tail });
            }
        }
    }

    fn header(&self, lane: usize, word: usize) -> u64 {
        self.words.load(self.tap.layout().lane_header(lane) + word, Ordering::Relaxed)
    }

    /// Housekeeping is one thread: not inside itself.
    fn reserve(&self) {
        if let Ok(mut housekeeper) = self.housekeeper.try_borrow_mut() {
            housekeeper.step(&self.tap);
        }
    }

    fn free(&self) -> usize {
        let Ok(mut housekeeper) = self.housekeeper.try_borrow_mut() else { return 0 };
        housekeeper.free_lanes(&self.tap, |tid| self.is_gone(tid))
    }

    fn attach(&self) {
        let attached = self.tap.as_reader().unwrap();
        let lanes = (0..attached.lane_count()).map(|lane| (attached.lane(lane), Tally::default()));
        self.readers.borrow_mut().push(Reader(lanes.collect()));
    }

    fn drain(&self, reader: usize, limit: u64) {
        let mut readers = self.readers.borrow_mut();
        let count = readers.len();
        readers[reader % count].0.iter_mut().enumerate().for_each(|(lane, (reader, tally))| {
            self.drain_lane(lane, reader, tally, limit);
        });
    }

    /// Gives whether there is more.
    fn drain_lane(&self, lane: usize, reader: &mut LaneReader<MappedWords>, tally: &mut Tally, limit: u64) -> bool {
        let books = &self.books.borrow()[lane];
        let done = reader.drain(limit, |record| tally.check(lane, books, record));
        tally.sums += done;
        assert!(
            tally.sums.unreadable == 0 && (done.more || tally.sums.accounted() == self.readable(lane)),
            "lane {lane}: {tally:?}"
        );
        done.more
    }

    /// Records that a reader can account for: all, but one that was abandoned and whose lane nobody has mended yet.
    fn readable(&self, lane: usize) -> u64 {
        let tail_now = self.header(lane, header::TAIL);
        let records = &self.books.borrow()[lane];
        let unmended = matches!(records.last(), Some(Begun::Abandoned { tail }) if *tail == tail_now);
        records.len() as u64 - u64::from(unmended)
    }

    /// All threads end, housekeeping comes by, every reader reads what is left.
    pub fn finish(self) -> Summary {
        self.threads.take();
        self.free();
        let mut readers = self.readers.take();
        self.attach();
        readers.append(&mut self.readers.borrow_mut());
        let (mut overwritten, mut before_attach) = (0, 0);
        for reader in &mut readers {
            for (lane, (reader, tally)) in reader.0.iter_mut().enumerate() {
                while self.drain_lane(lane, reader, tally, 1000) {}
                assert_eq!(tally.sums.accounted(), self.books.borrow()[lane].len() as u64, "lane {lane}: {tally:?}");
                overwritten += tally.sums.overwritten;
                before_attach += tally.sums.before_attach;
            }
        }
        let summary = Summary { overwritten, before_attach, ..self.check_counters() };
        self.check_every_lane_can_be_had();
        summary
    }

    /// Whoever ended wherever: what is reserved is there for those that come.
    fn check_every_lane_can_be_had(&self) {
        let reserved = self.housekeeper.borrow().reserved_bytes() / LANE_BYTES;
        let had = (0..reserved).filter(|n| self.tap.enter_lane(5000 + n, 5000 + n).is_ok()).count() as u64;
        assert_eq!(had, reserved, "lanes that were had of those reserved");
    }

    fn check_counters(&self) -> Summary {
        let counters = self.tap.as_reader().unwrap().counters();
        let (nested, no_lane) = (self.nested.get(), self.no_lane.get());
        assert_eq!((counters.get(Counter::Nested), counters.get(Counter::NoLane)), (nested, no_lane));
        let books = self.books.borrow();
        let in_lanes: u64 = books.iter().map(|records| records.len() as u64).sum();
        assert_eq!(counters.attempted, in_lanes + nested + no_lane);
        let is_abandoned = |begun: &&Begun| matches!(begun, Begun::Abandoned { .. });
        let abandoned = books.iter().flatten().filter(is_abandoned).count() as u64;
        let attempted = self.attempted.get();
        let vanished = attempted - counters.attempted;
        assert!(vanished + abandoned <= self.cut_short.get(), "{vanished} and {abandoned} of {}", self.cut_short.get());
        let nested_in_between = self.nested_in_between.get();
        Summary { attempted, nested, nested_in_between, no_lane, abandoned, vanished, ..Summary::default() }
    }
}

fn add(cell: &Cell<u64>, by: u64) {
    cell.set(cell.get() + by);
}
