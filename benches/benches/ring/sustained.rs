//! Ten million records a second for ten seconds, into a lane of 64 MiB that another process reads: is any lost?

use super::{
    lanes::{RECORD, THREAD},
    reader_process::ReaderProcess,
    tap::Tap,
};
use gputap_ringbuf::{layout::Sizes, tap::Lane};
use std::{
    hint::{black_box, spin_loop},
    time::{Duration, Instant},
};

const LANE_BYTES: usize = 64 << 20;
const RECORDS_PER_SECOND: u64 = 10_000_000;
/// Records between two looks at the clock: 10 microseconds' worth.
const BURST: u64 = 100;

pub fn run(runs: usize, seconds: usize) {
    let tap = Tap::findable(Sizes { lanes: 1, lane_words: LANE_BYTES / 8, ..Sizes::STATUS_ONLY }, 1);
    let lane = tap.writer.enter_lane(THREAD, THREAD).expect("a lane");
    let mut reader = ReaderProcess::start();
    println!("{:>3} {:>12} {:>12} {:>12} {:>9}  longest pause of the writer", "run", "written", "read", "lost", "M/s");
    let mut whole = 0;
    for run in 1..=runs {
        reader.tell(&format!("attach {}", lane.index()));
        reader.tell("follow");
        let start = Instant::now();
        let (written, longest) = write(&lane, seconds as u64 * RECORDS_PER_SECOND);
        let rate = written as f64 / start.elapsed().as_secs_f64() / 1e6;
        let (read, lost) = reader.rest();
        reader.tell("detach");
        assert_eq!(read + lost, written, "every record is delivered or counted as lost");
        println!("{run:>3} {written:>12} {read:>12} {lost:>12} {rate:>9.2}  {:.1} ms", longest.as_secs_f64() * 1e3);
        whole += usize::from(lost == 0);
    }
    let met = if whole * 10 >= runs * 9 { "met" } else { "not met" };
    println!("\ntarget: 0 lost in 9 of 10 runs of {seconds} s: {whole} of {runs}: {met}");
    Tap::remove_findable();
}

/// Keeps to the rate: what it is late, because something else had the core, it makes up for at full speed. Gives the
/// longest time for which it was away, too.
fn write(lane: &Lane<'_>, records: u64) -> (u64, Duration) {
    let start = Instant::now();
    let (mut written, mut before, mut longest) = (0, start, Duration::ZERO);
    while written < records {
        let now = Instant::now();
        longest = longest.max(now - before);
        before = now;
        let due = ((now - start).as_nanos() as u64 * (RECORDS_PER_SECOND / 1_000_000) / 1_000).min(records);
        if due < written + BURST && due < records {
            spin_loop();
            continue;
        }
        let burst = BURST.min(records - written);
        (0..burst).for_each(|_| _ = lane.write(1, black_box(RECORD.as_slice())));
        written += burst;
    }
    (written, longest)
}
