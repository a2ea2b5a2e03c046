//! One reader's accounts.

use super::pattern::check;
use gputap_ringbuf::{
    lane::reader::{Drained, LaneReader},
    words::ReadWords,
};
use std::ops::Deref;

/// What a reader has had so far, each record checked.
#[derive(Debug, Default)]
pub struct Tally {
    sums: Drained,
    next_seq: u64,
}

impl Deref for Tally {
    type Target = Drained;

    fn deref(&self) -> &Drained {
        &self.sums
    }
}

impl Tally {
    /// Drains once and checks every record; gives whether there is more.
    pub fn drain<R: ReadWords>(&mut self, reader: &mut LaneReader<R>, limit: u64) -> bool {
        let mut next_seq = self.next_seq;
        self.sums += reader.drain(limit, |record| {
            assert!(record.seq >= next_seq, "record {} came after {next_seq}", record.seq);
            next_seq = record.seq + 1;
            check(record);
        });
        self.next_seq = next_seq;
        self.sums.more
    }
}
