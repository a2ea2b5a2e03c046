//! Records of 64 bytes: our lanes, with and without a clock and a reader, beside a queue under a lock.

use super::table::Table;
use gputap_ringbuf::{
    backing::create::{BackingChoice, create},
    header::identity::Backing,
    housekeeping::{Ahead, Housekeeper, Step},
    lane::{reader::LaneReader, writer::LaneWriter},
    layout::{CHUNK_WORDS, LANE_HEADER_WORDS, Sizes},
    process::monotonic_ns,
    tap::TapWriter,
    words::heap_words,
};
use std::{
    collections::VecDeque,
    hint::black_box,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

const RECORDS: u64 = 2_000_000;
const RECORD: [u64; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
const NS: &str = "ns/record";

const WRITE: &str = "lane, 64-byte record";
const CLOCK: &str = "clock_gettime(CLOCK_MONOTONIC)";
const WRITE_CLOCK: &str = "lane, 64-byte record with clock_gettime";

/// A real segment with lanes of the default size.
fn tap() -> &'static TapWriter {
    static TAP: OnceLock<TapWriter> = OnceLock::new();
    TAP.get_or_init(|| {
        let sizes = Sizes { lanes: 4, ..Sizes { lane_words: Sizes::DEFAULT.lane_words, ..Sizes::STATUS_ONLY } };
        let created = create(sizes, BackingChoice::Only(Backing::Memfd)).expect("a memfd segment");
        let tap = TapWriter::new(&created);
        let mut housekeeper = Housekeeper::new(created.reserver, Ahead { lanes: 4, ..Ahead::DEFAULT });
        while let Step::Reserved = housekeeper.step(&tap) {}
        tap.publish();
        tap
    })
}

/// Nanoseconds a record of `RECORDS` calls: the median of many short batches, so that a neighbour who takes the core
/// away now and then does not count.
fn ns_per_record(mut one: impl FnMut(u64)) -> f64 {
    const BATCH: u64 = 20_000;
    let mut batches: Vec<f64> = (0..RECORDS / BATCH)
        .map(|batch| {
            let start = Instant::now();
            (batch * BATCH..(batch + 1) * BATCH).for_each(&mut one);
            start.elapsed().as_nanos() as f64 / BATCH as f64
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    batches[batches.len() / 2]
}

/// `RECORDS` records into the lane of `thread`, entered once.
fn write(thread: u64, mut first_word: impl FnMut() -> u64) -> f64 {
    let lane = tap().enter_lane(thread, thread).expect("a lane");
    let mut record = RECORD;
    ns_per_record(|_| {
        record[0] = first_word();
        let _ = lane.write(1, black_box(&record).as_slice());
    })
}

fn write_entering_each_time() -> f64 {
    ns_per_record(|_| {
        let lane = tap().enter_lane(black_box(100), 100).expect("a lane");
        let _ = lane.write(1, black_box(&RECORD).as_slice());
    })
}

/// A lane that stays in the second-level cache: the instructions, without the memory.
fn write_in_cache() -> f64 {
    let (header, data) = (heap_words(LANE_HEADER_WORDS), heap_words(4 * CHUNK_WORDS));
    let writer = LaneWriter::new(header, data, 4 * CHUNK_WORDS);
    ns_per_record(|_| _ = writer.write(1, black_box(&RECORD).as_slice()))
}

/// Two writers at once, each into its lane; the slower one's time.
fn write_twice() -> f64 {
    thread::scope(|scope| {
        let writers = [200, 300].map(|thread| scope.spawn(move || write(thread, || 1)));
        writers.map(|w| w.join().expect("a writer")).into_iter().fold(0.0, f64::max)
    })
}

/// A writer with a reader that drains all the time; gives the share of records that the reader got, too.
fn write_with_reader() -> (f64, f64) {
    let attached = tap().as_reader().expect("our own segment");
    let lane = tap().enter_lane(100, 100).map(|lane| lane.index()).expect("a lane");
    let (ready, ended, delivered) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let ns = thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = attached.lane(lane);
            reader.drain(u64::MAX, |_| ());
            ready.store(true, Ordering::Release);
            loop {
                let last = ended.load(Ordering::Acquire);
                let done = reader.drain(u64::MAX, |record| _ = black_box(record.words));
                delivered.fetch_add(done.delivered, Ordering::Relaxed);
                if last && !done.more {
                    break;
                }
            }
        });
        while !ready.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let ns = write(100, || 1);
        ended.store(true, Ordering::Release);
        ns
    });
    (ns, delivered.load(Ordering::Relaxed) as f64 / RECORDS as f64)
}

/// Draining with validation, from a lane that fits into the second-level cache.
fn drain() -> f64 {
    let capacity = 16 * CHUNK_WORDS;
    let (header, data) = (heap_words(LANE_HEADER_WORDS), heap_words(capacity));
    let writer = LaneWriter::new(header.clone(), data.clone(), capacity);
    let records = (capacity / 10) as u64;
    let mut reader = LaneReader::new(header, data, capacity);
    let mut times: Vec<f64> = (0..101)
        .map(|_| {
            (0..records).for_each(|_| _ = writer.write(1, &RECORD));
            let start = Instant::now();
            let done = reader.drain(u64::MAX, |record| _ = black_box(record.words));
            assert_eq!(done.delivered, records);
            start.elapsed().as_nanos() as f64 / records as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// What many tools do instead: push under a lock, dropping the oldest when full.
fn mutex_queue() -> f64 {
    let queue = Mutex::new(VecDeque::with_capacity(QUEUE_LEN));
    ns_per_record(|_| push(&queue))
}

const QUEUE_LEN: usize = 100_000;

fn push(queue: &Mutex<VecDeque<[u64; 8]>>) {
    let mut queue = queue.lock().expect("a healthy lock");
    if queue.len() == QUEUE_LEN {
        queue.pop_front();
    }
    queue.push_back(black_box(RECORD));
}

/// The same with somebody who takes what is there, under the same lock.
fn mutex_queue_with_reader() -> f64 {
    let queue = Mutex::new(VecDeque::with_capacity(QUEUE_LEN));
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                let mut queue = queue.lock().expect("a healthy lock");
                queue.drain(..).for_each(|record: [u64; 8]| _ = black_box(record));
            }
        });
        let ns = ns_per_record(|_| push(&queue));
        ended.store(true, Ordering::Release);
        ns
    })
}

/// The floor: 64 bytes to a place that moves on through as much memory as a lane has.
fn copy() -> f64 {
    let mut to = vec![0u64; Sizes::DEFAULT.lane_words];
    to.fill(1);
    ns_per_record(|n| {
        let at = n as usize * 8 % to.len();
        to[at..at + 8].copy_from_slice(black_box(&RECORD));
        black_box(&mut to);
    })
}

pub fn round(table: &mut Table) {
    table.add("copy of 64 bytes, moving on", NS, "", copy());
    table.add(WRITE, NS, "copy of 64 bytes, moving on", write(100, || 1));
    table.add("lane of 256 KiB, 64-byte record", NS, WRITE, write_in_cache());
    table.add("lane, 64-byte record, entering the lane each time", NS, WRITE, write_entering_each_time());
    table.add("lane, 64-byte record, two writers at once", NS, WRITE, write_twice());
    let (ns, share) = write_with_reader();
    table.add("lane, 64-byte record, a reader draining", NS, WRITE, ns);
    table.add("  share of the records that this reader got", "", "", share);
    table.add(CLOCK, "ns/call", "", ns_per_record(|_| _ = black_box(monotonic_ns())));
    table.add(WRITE_CLOCK, NS, CLOCK, write(100, monotonic_ns));
    table.add("drain with validation, in cache", NS, WRITE, drain());
    table.add("Mutex<VecDeque>, 64 bytes", NS, WRITE, mutex_queue());
    table.add("Mutex<VecDeque>, 64 bytes, a reader draining", NS, WRITE, mutex_queue_with_reader());
}
