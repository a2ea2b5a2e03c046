//! What may happen in a process with a tap, in which order.

use gputap_ringbuf::lane::MAX_PAYLOAD_WORDS;
use proptest::prelude::*;

/// Thread pointers that threads take turns to have.
pub const POINTERS: usize = 5;

/// Something that one thread, housekeeping or a reader does.
#[derive(Clone, Debug)]
pub enum Step {
    /// The thread with this pointer, started if there is none, writes so many records of so many words.
    Write {
        pointer: usize,
        count: usize,
        words: usize,
    },
    /// The thread ends, outside a write.
    End {
        pointer: usize,
    },
    /// Housekeeping reserves the next piece, if there is room.
    Reserve,
    /// Housekeeping frees the lanes of threads that have ended.
    Free,
    Attach,
    /// A reader (modulo how many there are) drains each lane with a limit.
    Drain {
        reader: usize,
        limit: u64,
    },
}

/// A step, what comes between two of its accesses, and before which its thread ends.
#[derive(Clone, Debug)]
pub struct Op {
    pub step: Step,
    /// A write by the same thread is one of a signal handler.
    pub interrupt: Option<(u64, Step)>,
    pub end_before: Option<u64>,
}

fn step() -> impl Strategy<Value = Step> {
    let words = || prop_oneof![6 => 0..20usize, 1 => 0..=MAX_PAYLOAD_WORDS, 1 => Just(MAX_PAYLOAD_WORDS)];
    prop_oneof![
        6 => (0..POINTERS, 1..4usize, words())
            .prop_map(|(pointer, count, words)| Step::Write { pointer, count, words }),
        2 => (0..POINTERS, 1..300usize, 0..300usize)
            .prop_map(|(pointer, count, words)| Step::Write { pointer, count, words }),
        2 => (0..POINTERS).prop_map(|pointer| Step::End { pointer }),
        5 => Just(Step::Reserve),
        2 => Just(Step::Free),
        1 => Just(Step::Attach),
        3 => (0..8usize, prop_oneof![1..50u64, Just(u64::MAX)])
            .prop_map(|(reader, limit)| Step::Drain { reader, limit }),
    ]
}

/// Most steps have few accesses; the long ones are writes, and walks of `recover`.
fn access() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1..40u64, 1 => 1..10_000u64]
}

pub fn op() -> impl Strategy<Value = Op> {
    let interrupt = prop::option::weighted(0.5, (access(), step()));
    (step(), interrupt, prop::option::weighted(0.3, access())).prop_flat_map(|(step, interrupt, end_before)| {
        let op = Op { step, interrupt, end_before };
        // Signal handlers among the interrupts deserve more than chance.
        let mut nested = op.clone();
        if let (Step::Write { pointer: outer, .. }, Some((_, Step::Write { pointer, .. }))) =
            (&nested.step, &mut nested.interrupt)
        {
            *pointer = *outer;
        }
        prop_oneof![Just(op), Just(nested)]
    })
}
