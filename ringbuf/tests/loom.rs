//! The protocols under loom, which tries every interleaving and every value that a load may give, and for each memory
//! order that the sources name a control: without that one order the check has to fail.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p gputap-ringbuf --test loom --release`
#![cfg(loom)]

#[path = "loom/control.rs"]
mod control;
#[path = "loom/controls.rs"]
mod controls;
#[path = "loom/directory.rs"]
mod directory;
#[path = "loom/lane.rs"]
mod lane;
#[path = "loom/status.rs"]
mod status;
#[path = "loom/store.rs"]
mod store;

use gputap_ringbuf::{
    sync::{AtomicU64, Ordering},
    words::{ReadWords, Words},
};
use loom::thread;
use std::sync::{Arc, atomic::AtomicUsize};

/// Words that loom watches.
#[derive(Clone)]
pub struct LoomWords(Arc<[AtomicU64]>);

impl LoomWords {
    pub fn new(len: usize) -> LoomWords {
        LoomWords((0..len).map(|_| AtomicU64::new(0)).collect())
    }
}

impl ReadWords for LoomWords {
    #[track_caller]
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.0[index].load(order)
    }
}

impl Words for LoomWords {
    #[track_caller]
    fn store(&self, index: usize, value: u64, order: Ordering) {
        self.0[index].store(value, order);
    }

    #[track_caller]
    fn fetch_add(&self, index: usize, value: u64, order: Ordering) -> u64 {
        self.0[index].fetch_add(value, order)
    }

    #[track_caller]
    fn compare_exchange(&self, index: usize, expected: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        self.0[index].compare_exchange(expected, new, order, Ordering::Relaxed)
    }
}

/// Checks the executions of `model` with up to `preemptions` preemptions, and says how many there were.
///
/// Of the accesses to a word, loom remembers the last: where thread A loads a word and then thread B loads and stores
/// it, loom does not see that the two race, and does not try them the other way round. It does where B comes first.
/// Models therefore start their writers first (a model's own thread runs before those that it spawns), or are checked
/// with their threads in every order.
pub fn check(name: &str, preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        model();
    });
    let executions = executions.load(std::sync::atomic::Ordering::Relaxed);
    println!("{name}: {executions} executions");
    if executions < 2 {
        panic!("{name}: loom saw nothing to try another way round");
    }
}

/// Runs both, each in a thread, the second one first if `swapped`: see [`check`].
pub fn race<A: 'static, B: 'static>(
    swapped: bool,
    a: impl FnOnce() -> A + 'static,
    b: impl FnOnce() -> B + 'static,
) -> (A, B) {
    if swapped {
        let (b, a) = (thread::spawn(b), thread::spawn(a));
        (a.join().unwrap(), b.join().unwrap())
    } else {
        let (a, b) = (thread::spawn(a), thread::spawn(b));
        (a.join().unwrap(), b.join().unwrap())
    }
}
