//! What readers cost the writer, and what waiting costs a reader. The readers are processes of their own.

use super::{
    batches::{BATCH, BATCHES, median},
    lanes::{self, NS, THREAD, WRITE, write},
    reader_process::ReaderProcess,
    table::Table,
};
use gputap_ringbuf::process::monotonic_ns;
use std::{thread, time::Duration};

pub const WRITE_DRAINED: &str = "lane, 64-byte record, a reader draining without rest";
pub const WRITE_FOLLOWED: &str = "lane, 64-byte record, a reader draining every 16 ms";
pub const FOLLOWED_RATIO: &str = "  times the same without a reader, just before";
pub const IDLE: &str = "an attached idle reader costs the writer";
pub const WAITING: &str = "a session waiting for data, no traffic";

/// Neighbouring pairs of stretches, one with and one without the idle reader; even.
const PAIRS: usize = 10;
/// More than the lane has room for: the first lap takes lines back from the reader that has just read them.
const STRETCH_BATCHES: u64 = 25;
const RESTING: &str = "  a loop that rests as it does, and nothing else";
const CORE: &str = "% of core";
const WAIT_MS: u64 = 1_000;

fn lane() -> usize {
    lanes::tap().writer.enter_lane(THREAD, THREAD).expect("a lane").index()
}

/// A writer beside a reader that does `what`; gives the share of records that this reader got, too.
fn write_beside(reader: &mut ReaderProcess, what: &str) -> (f64, f64) {
    reader.tell(&format!("attach {}", lane()));
    reader.tell(what);
    let ns = write(THREAD, BATCHES, || 1);
    let (delivered, lost) = reader.rest();
    assert_eq!(delivered + lost, BATCHES * BATCH, "every record is delivered or counted as lost");
    reader.tell("detach");
    (ns, delivered as f64 / (BATCHES * BATCH) as f64)
}

/// Nanoseconds a record: the median difference of neighbouring stretches, in turns with the reader first and last.
fn idle_reader(reader: &mut ReaderProcess) -> f64 {
    let attach = format!("attach {}", lane());
    let mut stretch = |command: &str| {
        reader.tell(command);
        write(THREAD, STRETCH_BATCHES, || 1)
    };
    let differences = (0..PAIRS).map(|pair| {
        if pair % 2 == 0 {
            let without = stretch("detach");
            stretch(&attach) - without
        } else {
            let with = stretch(&attach);
            with - stretch("detach")
        }
    });
    let difference = median(differences.collect());
    reader.tell("detach");
    difference
}

/// The share of a core, in percent, that a reader takes which does `what` on a tap of the default size.
fn waiting(reader: &mut ReaderProcess, what: &str) -> f64 {
    let used_ns: f64 = thread::scope(|scope| {
        let waiting = scope.spawn(|| reader.tell(&format!("{what} {WAIT_MS}")));
        while !waiting.is_finished() {
            // As the timer thread does: a tap without a heartbeat would be looked at more closely.
            lanes::tap().writer.status().beat(monotonic_ns());
            thread::sleep(Duration::from_millis(100));
        }
        waiting.join().expect("a living reader").parse().expect("a number")
    });
    100.0 * used_ns / (WAIT_MS * 1_000_000) as f64
}

pub fn round(table: &mut Table) {
    let mut reader = ReaderProcess::start();
    let alone = write(THREAD, BATCHES, || 1);
    let (followed, share) = write_beside(&mut reader, "follow");
    table.add(WRITE_FOLLOWED, NS, WRITE, followed);
    table.add(FOLLOWED_RATIO, "times", "", followed / alone);
    table.add("  share of the records that this reader got", "", "", share);
    let (drained, share) = write_beside(&mut reader, "drain");
    table.add(WRITE_DRAINED, NS, WRITE, drained);
    table.add("  share of the records that the restless reader got", "", "", share);
    table.add(IDLE, NS, "", idle_reader(&mut reader));
    table.add(WAITING, CORE, RESTING, waiting(&mut reader, "wait"));
    table.add(RESTING, CORE, "", waiting(&mut reader, "sleep"));
}
