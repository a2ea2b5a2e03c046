//! The paths whose instructions CI counts (.ci/instructions): `paths write|enter|drain LAPS`.
//!
//! Each lap is a fixed number of records, and the work before the first lap does not depend on how many there are: what
//! two runs differ by is the path's alone.
//! - `write`: 64-byte records into a lane that was entered once
//! - `enter`: the same, entering the lane for each
//! - `drain`: as `write`, and after each lap a reader takes them all

use gputap_ringbuf::{
    backing::create::{BackingChoice, create},
    header::identity::Backing,
    housekeeping::{Ahead, Housekeeper, Step},
    lane::{reader::LaneReader, writer::LaneWriter},
    layout::{CHUNK_WORDS, LANE_HEADER_WORDS, Sizes},
    tap::TapWriter,
    words::{MappedWords, heap_words},
};
use std::hint::black_box;

const RECORDS_PER_LAP: u64 = 1_000;
const LANE_WORDS: usize = 4 * CHUNK_WORDS;
/// Handed over as the shim hands over its events: as an array, whose length the compiler knows.
const RECORD: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let laps = arguments.get(1).and_then(|laps| laps.parse().ok());
    match (arguments.first().map(String::as_str), laps) {
        (Some("write"), Some(laps)) => write(laps),
        (Some("enter"), Some(laps)) => enter(laps),
        (Some("drain"), Some(laps)) => drain(laps),
        _ => {
            eprintln!("usage: paths write|enter|drain LAPS");
            std::process::exit(2);
        }
    }
    println!("{RECORDS_PER_LAP}");
}

fn write(laps: u64) {
    let writer = LaneWriter::new(heap_words(LANE_HEADER_WORDS), heap_words(LANE_WORDS), LANE_WORDS);
    (0..laps).for_each(|_| write_lap(&writer));
}

/// One function for both paths that need it, so that what is subtracted from `drain` is what `write` counted.
#[inline(never)]
fn write_lap(writer: &LaneWriter<MappedWords>) {
    (0..RECORDS_PER_LAP).for_each(|_| writer.write(1, black_box::<&[u64; 8]>(&RECORD)).expect("not too long"));
}

fn enter(laps: u64) {
    let sizes = Sizes { lanes: 1, lane_words: LANE_WORDS, ..Sizes::STATUS_ONLY };
    let created = create(sizes, BackingChoice::Only(Backing::Memfd)).expect("a memfd segment");
    let tap = TapWriter::new(&created);
    let mut housekeeper = Housekeeper::new(created.reserver, Ahead { lanes: 1, ..Ahead::DEFAULT });
    while let Step::Reserved = housekeeper.step(&tap) {}
    for _ in 0..laps * RECORDS_PER_LAP {
        let lane = tap.enter_lane(black_box(100), 100).expect("a lane");
        lane.write(1, black_box::<&[u64; 8]>(&RECORD)).expect("not too long");
    }
}

fn drain(laps: u64) {
    let (header, data) = (heap_words(LANE_HEADER_WORDS), heap_words(LANE_WORDS));
    let writer = LaneWriter::new(header.clone(), data.clone(), LANE_WORDS);
    let mut reader = LaneReader::new(header, data, LANE_WORDS);
    for _ in 0..laps {
        write_lap(&writer);
        let done = reader.drain(u64::MAX, |record| _ = black_box(record.words));
        assert_eq!(done.delivered, RECORDS_PER_LAP);
    }
}
