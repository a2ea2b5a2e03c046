//! What many tools do instead of a lane: a queue under a lock, which drops its oldest when full.

use super::{
    batches::{BATCH, BATCHES, ns_per_call},
    lanes::{NS, RECORD, WRITE},
    readers::WRITE_DRAINED,
    table::Table,
};
use std::{
    collections::VecDeque,
    hint::black_box,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

/// As many records as a lane holds.
const QUEUE_LEN: usize = 116_000;

fn alone() -> f64 {
    let queue = Mutex::new(VecDeque::with_capacity(QUEUE_LEN));
    ns_per_call(BATCHES, BATCH, |_| push(&queue))
}

fn push(queue: &Mutex<VecDeque<[u64; 8]>>) {
    let mut queue = queue.lock().expect("a healthy lock");
    if queue.len() == QUEUE_LEN {
        queue.pop_front();
    }
    queue.push_back(black_box(RECORD));
}

/// The same with somebody who takes what is there, under the same lock.
fn with_reader() -> f64 {
    let queue = Mutex::new(VecDeque::with_capacity(QUEUE_LEN));
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                let mut queue = queue.lock().expect("a healthy lock");
                queue.drain(..).for_each(|record: [u64; 8]| _ = black_box(record));
            }
        });
        let ns = ns_per_call(BATCHES, BATCH, |_| push(&queue));
        ended.store(true, Ordering::Release);
        ns
    })
}

pub fn round(table: &mut Table) {
    table.add("Mutex<VecDeque>, 64 bytes", NS, WRITE, alone());
    table.add("Mutex<VecDeque>, 64 bytes, a thread draining", NS, WRITE_DRAINED, with_reader());
}
