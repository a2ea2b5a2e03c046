//! Time per call, as the median of many short batches, so that a neighbour who takes the core away now and then does
//! not count.

use std::time::Instant;

/// Calls per batch: half a tick of the scheduler at most.
pub const BATCH: u64 = 20_000;
/// Batches where nothing else is said.
pub const BATCHES: u64 = 100;

/// Nanoseconds per call of `one`, which gets the number of the call.
pub fn ns_per_call(batches: u64, batch: u64, mut one: impl FnMut(u64)) -> f64 {
    median(
        (0..batches)
            .map(|n| {
                let start = Instant::now();
                (n * batch..(n + 1) * batch).for_each(&mut one);
                start.elapsed().as_nanos() as f64 / batch as f64
            })
            .collect(),
    )
}

/// Of an odd number of values the middle one; else the upper of the two. Not of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
