//! One writer and one reader of a lane of four chunks of eight words, which is full when they start.

use super::{LoomWords, check};
use gputap_ringbuf::{
    lane::{
        MAX_PAYLOAD_WORDS,
        reader::{Drained, LaneReader},
        writer::LaneWriter,
    },
    layout::{CHUNK_WORDS, LANE_HEADER_WORDS},
};
use loom::thread;

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
    let Drained { delivered, overwritten, before_attach, unreadable, .. } = reader.drain(u64::MAX, |record| {
        assert_eq!(u64::from(record.kind), record.seq + 1);
        assert_eq!(record.words, &payload(record.seq)[..record.words.len()]);
    });
    assert_eq!(unreadable, 0);
    *total += delivered + overwritten + before_attach;
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
fn a_following_reader_sees_whole_records() {
    following();
}
