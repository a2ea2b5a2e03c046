//! Exact accounting, against a model, for any schedule of writes, drains, laps and late attaches.
#![cfg(not(loom))]

mod pattern;
#[path = "pattern/tally.rs"]
mod tally;

use gputap_ringbuf::{
    lane::{CHUNK_HEADER_WORDS, MAX_PAYLOAD_WORDS, header, reader::LaneReader, writer::LaneWriter},
    layout::{CHUNK_WORDS, LANE_HEADER_WORDS},
    sync::Ordering,
    words::{MappedWords, ReadWords, Words, heap_words},
};
use proptest::prelude::*;
use std::{cell::Cell, rc::Rc};
use tally::Tally;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// One record of so many payload words.
    Write(usize),
    /// One record after which so many words of the chunk are left, if it fits.
    LeaveInChunk(usize),
    /// As many records of so many words.
    Burst(usize, usize),
    /// The thread ends inside the write of a record of so many words, after so many stores; its heir goes on.
    EndInside(usize, usize),
    /// A reader (modulo how many there are) drains with a limit.
    Drain(usize, u64),
    Attach,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => prop_oneof![0..20usize, 0..=MAX_PAYLOAD_WORDS, Just(MAX_PAYLOAD_WORDS)].prop_map(Op::Write),
        4 => (0..4usize).prop_map(Op::LeaveInChunk),
        2 => (1..600usize, 0..300usize).prop_map(|(count, words)| Op::Burst(count, words)),
        1 => (prop_oneof![0..20usize, 0..=MAX_PAYLOAD_WORDS], prop_oneof![0..12usize, 0..9000usize])
            .prop_map(|(words, stores)| Op::EndInside(words, stores)),
        4 => (0..8usize, prop_oneof![1..50u64, Just(u64::MAX)]).prop_map(|(reader, limit)| Op::Drain(reader, limit)),
        1 => Just(Op::Attach),
    ]
}

/// Words of a thread that ends after so many stores.
#[derive(Clone)]
struct Ending {
    words: MappedWords,
    left: Rc<Cell<usize>>,
}

impl ReadWords for Ending {
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.words.load(index, order)
    }
}

impl Words for Ending {
    fn store(&self, index: usize, value: u64, order: Ordering) {
        if let Some(left) = self.left.get().checked_sub(1) {
            self.left.set(left);
            self.words.store(index, value, order);
        }
    }

    fn fetch_add(&self, _: usize, _: u64, _: Ordering) -> u64 {
        unreachable!("a lane has one writer")
    }

    fn compare_exchange(&self, _: usize, _: u64, _: u64, _: Ordering) -> Result<u64, u64> {
        unreachable!("a lane has one writer")
    }
}

/// A lane, and the position at which each of its records begins, with whether it was finished.
struct Lane {
    header: MappedWords,
    data: MappedWords,
    capacity: usize,
    writer: LaneWriter<MappedWords>,
    starts: Vec<(u64, bool)>,
}

impl Lane {
    fn new(chunks: usize) -> Lane {
        let capacity = chunks * CHUNK_WORDS;
        let (header, data) = (heap_words(LANE_HEADER_WORDS), heap_words(capacity));
        let writer = LaneWriter::new(header.clone(), data.clone(), capacity);
        Lane { header, data, capacity, writer, starts: Vec::new() }
    }

    fn reader(&self) -> LaneReader<MappedWords> {
        LaneReader::new(self.header.clone(), self.data.clone(), self.capacity)
    }

    fn tail(&self) -> u64 {
        self.header.load(header::TAIL, Ordering::Relaxed)
    }

    fn written(&self) -> u64 {
        self.starts.len() as u64
    }

    fn write(&mut self, words: usize) {
        let mut payload = vec![0; words];
        let seq = self.written();
        pattern::fill(&mut payload, seq);
        self.writer.write(pattern::kind(seq), &payload).unwrap();
        self.starts.push((self.tail() - words as u64 - 1, true));
    }

    fn end_inside(&mut self, words: usize, stores: usize) {
        let before = self.header.load(header::TAIL, Ordering::Relaxed);
        let seq = self.written();
        let left = Rc::new(Cell::new(stores));
        let ending = |words: &MappedWords| Ending { words: words.clone(), left: left.clone() };
        let writer = LaneWriter::new(ending(&self.header), ending(&self.data), self.capacity);
        let mut payload = vec![0; words];
        pattern::fill(&mut payload, seq);
        writer.write(pattern::kind(seq), &payload).unwrap();
        let finished = self.tail() != before;
        self.writer.recover();
        if finished {
            self.starts.push((self.tail() - words as u64 - 1, true));
        } else if stores > 0 {
            self.starts.push((before, false));
        }
    }

    fn leave_in_chunk(&mut self, left: usize) {
        let used = (self.tail() % CHUNK_WORDS as u64) as usize;
        let used = if used == 0 { CHUNK_HEADER_WORDS } else { used };
        if let Some(words) = (CHUNK_WORDS - used).checked_sub(left + 1) {
            self.write(words);
            assert_eq!(self.tail() % CHUNK_WORDS as u64, ((CHUNK_WORDS - left) % CHUNK_WORDS) as u64);
        }
    }

    /// How many records still stand in whole chunks: what a reader that comes now must get.
    fn standing(&self) -> u64 {
        let oldest = self.tail().saturating_sub(self.capacity as u64).next_multiple_of(CHUNK_WORDS as u64);
        self.starts.iter().rev().take_while(|(start, _)| *start >= oldest).filter(|(_, finished)| *finished).count()
            as u64
    }
}

fn check_schedule(chunks: usize, ops: &[Op]) {
    let mut lane = Lane::new(chunks);
    let mut readers = vec![(lane.reader(), Tally::default())];
    for op in ops {
        match *op {
            Op::Write(words) => lane.write(words),
            Op::LeaveInChunk(left) => lane.leave_in_chunk(left),
            Op::Burst(count, words) => (0..count).for_each(|_| lane.write(words)),
            Op::EndInside(words, stores) => lane.end_inside(words, stores),
            Op::Attach => readers.push((lane.reader(), Tally::default())),
            Op::Drain(which, limit) => {
                let count = readers.len();
                let (reader, tally) = &mut readers[which % count];
                let more = tally.drain(reader, limit);
                assert!(more || tally.accounted() == lane.written(), "{tally:?} of {}", lane.written());
            }
        }
    }
    for (reader, tally) in &mut readers {
        while tally.drain(reader, 1000) {}
        assert_eq!((tally.accounted(), tally.unreadable), (lane.written(), 0), "{tally:?}");
    }
    let (mut late, mut tally) = (lane.reader(), Tally::default());
    while tally.drain(&mut late, u64::MAX) {}
    assert_eq!((tally.delivered, tally.overwritten), (lane.standing(), 0));
    assert_eq!(tally.accounted(), lane.written());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_every_record_is_accounted_for(
        chunks in 4..8usize, ops in prop::collection::vec(op(), 1..120),
    ) {
        check_schedule(chunks, &ops);
    }
}

#[test]
fn a_lane_filled_exactly_is_read_whole() {
    let mut lane = Lane::new(4);
    (0..4).for_each(|_| lane.write(MAX_PAYLOAD_WORDS));
    assert_eq!(lane.tail(), lane.capacity as u64);
    let (mut reader, mut tally) = (lane.reader(), Tally::default());
    assert!(!tally.drain(&mut reader, u64::MAX));
    assert_eq!(tally.delivered, 4);
    // One more word laps the first chunk, and only that.
    lane.write(0);
    let (mut reader, mut tally) = (lane.reader(), Tally::default());
    while tally.drain(&mut reader, u64::MAX) {}
    assert_eq!((tally.delivered, tally.before_attach), (4, 1));
}

#[test]
fn one_word_left_is_padding_or_an_empty_record() {
    let mut lane = Lane::new(4);
    lane.leave_in_chunk(1);
    lane.write(1);
    lane.leave_in_chunk(1);
    lane.write(0);
    lane.write(3);
    let (mut reader, mut tally) = (lane.reader(), Tally::default());
    assert!(!tally.drain(&mut reader, u64::MAX));
    assert_eq!(tally.delivered, 5);
}

#[test]
fn a_record_that_a_thread_did_not_finish_is_counted_and_the_lane_goes_on() {
    let mut lane = Lane::new(4);
    (0..3).for_each(|_| lane.write(5));
    lane.end_inside(5, 3);
    lane.write(5);
    let (mut reader, mut tally) = (lane.reader(), Tally::default());
    assert!(!tally.drain(&mut reader, u64::MAX));
    assert_eq!((tally.delivered, tally.abandoned, tally.accounted()), (4, 1, 5));
}

#[test]
fn a_record_longer_than_a_chunk_or_of_the_padding_kind_is_refused() {
    let lane = Lane::new(4);
    assert!(lane.writer.write(1, &vec![0; MAX_PAYLOAD_WORDS + 1]).is_err());
    assert!(lane.writer.write(gputap_ringbuf::lane::PADDING, &[]).is_err());
    assert!(lane.writer.write(gputap_ringbuf::lane::ABANDONED, &[]).is_err());
    assert_eq!(lane.tail(), 0);
}
