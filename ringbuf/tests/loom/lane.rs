//! One writer and one reader of a lane of four chunks of eight words, which is full when they start.

use super::{LoomWords, check};
use gputap_ringbuf::{
    lane::{MAX_PAYLOAD_WORDS, reader::LaneReader, writer::LaneWriter},
    layout::{CHUNK_WORDS, LANE_HEADER_WORDS},
    sync::Ordering,
    words::{ReadWords, Words},
};
use loom::thread;
use std::{cell::Cell, rc::Rc};

const CHUNKS: usize = 4;
const CAPACITY: usize = CHUNKS * CHUNK_WORDS;

fn payload(seq: u64) -> [u64; MAX_PAYLOAD_WORDS] {
    std::array::from_fn(|i| 100 + seq * 10 + i as u64)
}

fn write(writer: &LaneWriter<LoomWords>, seq: u64, words: usize) {
    writer.write(seq as u16 + 1, &payload(seq)[..words]).unwrap();
}

/// Drains, and checks that each record is whole and has its own number.
fn drain(reader: &mut LaneReader<LoomWords>, total: &mut u64) {
    let done = reader.drain(u64::MAX, |record| {
        assert_eq!(u64::from(record.kind), record.seq + 1);
        assert_eq!(record.words, &payload(record.seq)[..record.words.len()]);
    });
    assert_eq!(done.unreadable, 0);
    *total += done.accounted();
}

fn writer_against_reader(filled: u64, concurrent: u64) {
    let (header, data) = (LoomWords::new(LANE_HEADER_WORDS), LoomWords::new(CAPACITY));
    let writer = LaneWriter::new(header.clone(), data.clone(), CAPACITY);
    (0..filled).for_each(|seq| write(&writer, seq, MAX_PAYLOAD_WORDS));
    let mut reader = LaneReader::new(header, data, CAPACITY);
    let reading = thread::spawn(move || {
        let mut total = 0;
        drain(&mut reader, &mut total);
        (reader, total)
    });
    (filled..filled + concurrent).for_each(|seq| write(&writer, seq, 1));
    let (mut reader, mut total) = reading.join().unwrap();
    drain(&mut reader, &mut total);
    assert_eq!(total, filled + concurrent);
}

/// The writer overwrites the chunk that the reader copies.
pub fn lapping() {
    check("lane, lapping", 3, || writer_against_reader(CHUNKS as u64, 1));
}

/// The reader comes late, to a lane that the writer laps further.
pub fn attaching_late() {
    check("lane, attaching late", 2, || writer_against_reader(CHUNKS as u64 + 1, 1));
}

/// The words of a thread that ends after so many stores.
#[derive(Clone)]
struct Ending {
    words: LoomWords,
    left: Rc<Cell<usize>>,
}

impl ReadWords for Ending {
    #[track_caller]
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.words.load(index, order)
    }
}

impl Words for Ending {
    #[track_caller]
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

/// The lane is full, and its thread has ended inside a write after so many stores, the first of which is INTENT's; its
/// heir mends the lane and goes on while a reader reads.
fn heir_against_reader(stores: usize) {
    let (header, data) = (LoomWords::new(LANE_HEADER_WORDS), LoomWords::new(CAPACITY));
    let writer = LaneWriter::new(header.clone(), data.clone(), CAPACITY);
    (0..CHUNKS as u64).for_each(|seq| write(&writer, seq, MAX_PAYLOAD_WORDS));
    let left = Rc::new(Cell::new(stores));
    let ending = |words: &LoomWords| Ending { words: words.clone(), left: left.clone() };
    let dead = LaneWriter::new(ending(&header), ending(&data), CAPACITY);
    dead.write(99, &payload(99)[..1]).unwrap();
    let mut reader = LaneReader::new(header, data, CAPACITY);
    let reading = thread::spawn(move || {
        let mut total = 0;
        drain(&mut reader, &mut total);
        (reader, total)
    });
    writer.recover();
    let next = CHUNKS as u64 + 1;
    write(&writer, next, 1);
    let (mut reader, mut total) = reading.join().unwrap();
    drain(&mut reader, &mut total);
    assert_eq!(total, next + 1);
}

/// After how many stores its thread ended matters to the heir, not to the reader: tests/lane_model.rs has them all.
pub fn mending() {
    check("lane, mending", 1, || heir_against_reader(4));
}

/// The reader comes to records as they are written, the second one after padding.
pub fn following() {
    check("lane, following", 4, || writer_against_reader(0, 3));
}

#[test]
fn a_lapped_reader_never_takes_a_torn_record_and_counts_what_it_missed() {
    lapping();
    attaching_late();
}

#[test]
fn a_lane_that_a_thread_left_inside_a_write_is_read_whole() {
    mending();
}

#[test]
fn a_following_reader_sees_whole_records() {
    following();
}
