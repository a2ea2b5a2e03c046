//! A writer at full speed beside readers that drain as they please: nothing torn, nothing uncounted, nobody waits.
#![cfg(not(loom))]

mod pattern;
#[path = "pattern/tally.rs"]
mod tally;

use gputap_ringbuf::{
    lane::{reader::LaneReader, writer::LaneWriter},
    layout::{CHUNK_WORDS, LANE_HEADER_WORDS},
    words::heap_words,
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use tally::Tally;

const RECORDS: u64 = 3_000_000;
const CAPACITY: usize = 4 * CHUNK_WORDS;
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn two_readers_beside_a_writer_that_laps_them() {
    let (header, data) = (heap_words(LANE_HEADER_WORDS), heap_words(CAPACITY));
    let ended = AtomicBool::new(false);
    let read = |limit: u64| {
        let mut reader = LaneReader::new(header.clone(), data.clone(), CAPACITY);
        let mut tally = Tally::default();
        let start = Instant::now();
        loop {
            let last = ended.load(Ordering::Acquire);
            let more = tally.drain(&mut reader, limit);
            if last && !more {
                return tally;
            }
            assert!(start.elapsed() < DEADLINE, "{tally:?}");
        }
    };
    thread::scope(|scope| {
        let readers = [scope.spawn(|| read(u64::MAX)), scope.spawn(|| read(100))];
        let writer = LaneWriter::new(header.clone(), data.clone(), CAPACITY);
        let mut payload = [0; 40];
        for seq in 0..RECORDS {
            let payload = &mut payload[..(seq % 40) as usize];
            pattern::fill(payload, seq);
            writer.write(pattern::kind(seq), payload).unwrap();
        }
        ended.store(true, Ordering::Release);
        for reader in readers {
            let tally = reader.join().unwrap();
            assert_eq!((tally.accounted(), tally.unreadable), (RECORDS, 0), "{tally:?}");
            assert!(tally.delivered > 0);
        }
    });
}
