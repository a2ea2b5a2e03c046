//! A segment that another thread changes all the while that the reader reads. The reader takes a bounded number of
//! turns; when the lies have stopped it must come to an end.
#![no_main]

use gputap_fuzz::{
    lies::{Lie, lies, take_back, tell},
    reading::Readers,
    segment::Segment,
};
use libfuzzer_sys::fuzz_target;
use std::{
    sync::{
        LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

static SEGMENT: LazyLock<Segment> = LazyLock::new(Segment::new);

/// How often the liar goes through its lies, at most.
const MAX_ROUNDS: usize = 10_000;
/// The reader's turns while the lies change.
const TURNS: u64 = 12;

fuzz_target!(|input: &[u8]| {
    let segment = &*SEGMENT;
    let lies = lies(input, segment);
    let (before, during) = lies.split_at(lies.iter().position(|l| matches!(l, Lie::Read { .. })).unwrap_or(0));
    before.iter().for_each(|lie| tell(*lie, segment));
    let done = AtomicBool::new(false);
    let readers = thread::scope(|scope| {
        let liar = scope.spawn(|| lie_and_take_back(during, segment, &done));
        let readers = segment.attach().map(Readers::new).map(|mut readers| {
            (0..TURNS).for_each(|turn| _ = readers.turn(turn * 64));
            readers
        });
        // SYNC: pairs with the load in `lie_and_take_back`; says when, carries nothing.
        done.store(true, Ordering::Relaxed);
        // The scope waits for what the thread does, a join for its end: what it frees last is no leak.
        liar.join().expect("lying does not panic");
        readers
    });
    lies.iter().for_each(|lie| take_back(*lie, segment));
    if let Some(mut readers) = readers {
        readers.read_to_the_end();
    }
});

fn lie_and_take_back(lies: &[Lie], segment: &Segment, done: &AtomicBool) {
    for round in 0..MAX_ROUNDS {
        for (i, lie) in lies.iter().enumerate() {
            // In changing company.
            if (round + i) % 3 == 0 {
                take_back(*lie, segment);
            } else {
                tell(*lie, segment);
            }
        }
        // SYNC: pairs with the store in the target; says when, carries nothing.
        if done.load(Ordering::Relaxed) {
            break;
        }
    }
}
