//! Writing and draining records: what one costs, with and without a clock, alone and with a second writer.

use super::{
    batches::{BATCH, BATCHES, median, ns_per_call},
    table::Table,
    tap::Tap,
};
use gputap_ringbuf::{
    lane::{MAX_PAYLOAD_WORDS, reader::LaneReader, writer::LaneWriter},
    layout::{CHUNK_WORDS, LANE_HEADER_WORDS, Sizes},
    process::monotonic_ns,
    words::heap_words,
};
use std::{hint::black_box, sync::OnceLock, thread, time::Instant};

/// Handed over as the shim hands over its events: as an array, whose length the compiler knows. `write` is inlined, so
/// what one row writes does not decide how another row's code is compiled.
pub const RECORD: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
pub const NS: &str = "ns/record";

pub const WRITE: &str = "lane, 64-byte record";
pub const WRITE_TWICE: &str = "lane, 64-byte record, two writers at once";
pub const WRITE_CLOCK: &str = "lane, 64-byte record with clock_gettime";
pub const OVER_CLOCK: &str = "  more than clock_gettime alone";
pub const WRITE_LONGEST: &str = "lane, longest record (64 KiB less 40 bytes)";
pub const DRAIN: &str = "drain with validation, in cache";
const CLOCK: &str = "clock_gettime(CLOCK_MONOTONIC)";
const COPY: &str = "copy of 64 bytes, moving on through 8 MiB";

/// The segment of all rows about lanes: of the default size, four of its lanes reserved.
pub fn tap() -> &'static Tap {
    static TAP: OnceLock<Tap> = OnceLock::new();
    TAP.get_or_init(|| Tap::findable(Sizes::DEFAULT, 4))
}

/// The thread, as the directory of lanes knows it, whose lane most rows write to.
pub const THREAD: u64 = 100;

/// Records into the lane of `thread`, entered once.
pub fn write(thread: u64, batches: u64, mut first_word: impl FnMut() -> u64) -> f64 {
    let lane = tap().writer.enter_lane(thread, thread).expect("a lane");
    let mut record = RECORD;
    ns_per_call(batches, BATCH, |_| {
        record[0] = first_word();
        let _ = lane.write(1, black_box::<&[u64; 8]>(&record));
    })
}

/// Records of a length that is known only when they are written.
fn write_any_length() -> f64 {
    let lane = tap().writer.enter_lane(THREAD, THREAD).expect("a lane");
    ns_per_call(BATCHES, BATCH, |_| _ = lane.write(1, black_box(RECORD.as_slice())))
}

fn write_entering_each_time() -> f64 {
    ns_per_call(BATCHES, BATCH, |_| {
        let lane = tap().writer.enter_lane(black_box(THREAD), THREAD).expect("a lane");
        let _ = lane.write(1, black_box::<&[u64; 8]>(&RECORD));
    })
}

/// A lane that stays in the second-level cache: the instructions, without the memory.
fn write_in_cache() -> f64 {
    let (header, data) = (heap_words(LANE_HEADER_WORDS), heap_words(4 * CHUNK_WORDS));
    let writer = LaneWriter::new(header, data, 4 * CHUNK_WORDS);
    ns_per_call(BATCHES, BATCH, |_| _ = writer.write(1, black_box::<&[u64; 8]>(&RECORD)))
}

/// Two writers at once, each into its lane; the slower one's time.
fn write_twice() -> f64 {
    thread::scope(|scope| {
        let writers = [200, 300].map(|thread| scope.spawn(move || write(thread, BATCHES, || 1)));
        writers.map(|w| w.join().expect("a writer")).into_iter().fold(0.0, f64::max)
    })
}

fn write_longest() -> f64 {
    let lane = tap().writer.enter_lane(THREAD, THREAD).expect("a lane");
    let record = vec![7; MAX_PAYLOAD_WORDS];
    ns_per_call(50, 200, |_| lane.write(1, black_box(record.as_slice())).expect("not too long"))
}

/// Draining with validation, from a lane that fits into the second-level cache.
fn drain() -> f64 {
    let capacity = 4 * CHUNK_WORDS;
    let (header, data) = (heap_words(LANE_HEADER_WORDS), heap_words(capacity));
    let writer = LaneWriter::new(header.clone(), data.clone(), capacity);
    let records = (capacity / 10) as u64;
    let mut reader = LaneReader::new(header, data, capacity);
    let times = (0..201).map(|_| {
        (0..records).for_each(|_| _ = writer.write(1, black_box::<&[u64; 8]>(&RECORD)));
        let start = Instant::now();
        let done = reader.drain(u64::MAX, |record| _ = black_box(record.words));
        assert_eq!(done.delivered, records);
        start.elapsed().as_nanos() as f64 / records as f64
    });
    median(times.collect())
}

/// The floor: 64 bytes to a place that moves on through as much memory as a lane has.
fn copy() -> f64 {
    let mut to = vec![0u64; Sizes::DEFAULT.lane_words];
    to.fill(1);
    ns_per_call(BATCHES, BATCH, |n| {
        let at = n as usize * 8 % to.len();
        to[at..at + 8].copy_from_slice(black_box(&RECORD));
        black_box(&mut to);
    })
}

pub fn round(table: &mut Table) {
    table.add(COPY, NS, "", copy());
    table.add(WRITE, NS, COPY, write(THREAD, BATCHES, || 1));
    table.add("lane of 256 KiB, 64-byte record", NS, WRITE, write_in_cache());
    table.add("lane, 64-byte record, length known only when it is written", NS, WRITE, write_any_length());
    table.add("lane, 64-byte record, entering the lane each time", NS, WRITE, write_entering_each_time());
    table.add(WRITE_TWICE, NS, WRITE, write_twice());
    table.add(WRITE_LONGEST, NS, "", write_longest());
    let clock = ns_per_call(BATCHES, BATCH, |_| _ = black_box(monotonic_ns()));
    let with_clock = write(THREAD, BATCHES, monotonic_ns);
    table.add(CLOCK, "ns/call", "", clock);
    table.add(WRITE_CLOCK, NS, CLOCK, with_clock);
    table.add(OVER_CLOCK, "ns", "", with_clock - clock);
    table.add(DRAIN, NS, WRITE, drain());
}
