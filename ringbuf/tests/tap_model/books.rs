//! What the threads of the model know of their records, and what a reader makes of them.

use gputap_ringbuf::lane::reader::{Drained, Record};

/// One record that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    Finished {
        words: usize,
    },
    /// Its thread ended inside; TAIL stayed there until somebody mended the lane.
    Abandoned {
        tail: u64,
    },
}

/// The records of each lane, by number.
pub type Books = Vec<Vec<Begun>>;

pub fn kind(lane: usize, seq: u64) -> u16 {
    ((seq ^ (lane as u64) << 13) % 60_000) as u16 + 1
}

pub fn word(lane: usize, seq: u64, index: usize) -> u64 {
    (seq ^ (index as u64) << 40 ^ (lane as u64) << 60).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seq
}

/// What one reader has had of one lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub sums: Drained,
    next_seq: u64,
}

impl Tally {
    /// Fails unless this is the record that the books have under its number, and the next.
    pub fn check(&mut self, lane: usize, books: &[Begun], record: Record<'_>) {
        assert!(record.seq >= self.next_seq, "record {} of lane {lane} came after {}", record.seq, self.next_seq);
        self.next_seq = record.seq + 1;
        assert_eq!(books.get(record.seq as usize), Some(&Begun::Finished { words: record.words.len() }));
        assert_eq!(record.kind, kind(lane, record.seq));
        for (i, found) in record.words.iter().enumerate() {
            assert_eq!(*found, word(lane, record.seq, i), "word {i} of record {} of lane {lane}", record.seq);
        }
    }
}
