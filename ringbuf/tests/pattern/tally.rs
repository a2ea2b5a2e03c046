//! One reader's accounts.

use super::pattern::check;
use gputap_ringbuf::{
    lane::reader::{Drained, LaneReader},
    words::ReadWords,
};

/// What a reader has had so far, each record checked.
#[derive(Debug, Default)]
pub struct Tally {
    pub delivered: u64,
    pub overwritten: u64,
    pub before_attach: u64,
    pub abandoned: u64,
    pub unreadable: u64,
    next_seq: u64,
}

impl Tally {
    /// Drains once and checks every record; gives whether there is more.
    pub fn drain<R: ReadWords>(&mut self, reader: &mut LaneReader<R>, limit: u64) -> bool {
        let mut next_seq = self.next_seq;
        let done = reader.drain(limit, |record| {
            assert!(record.seq >= next_seq, "record {} came after {next_seq}", record.seq);
            next_seq = record.seq + 1;
            check(record);
        });
        self.next_seq = next_seq;
        self.add(done);
        done.more
    }

    pub fn total(&self) -> u64 {
        self.delivered + self.overwritten + self.before_attach + self.abandoned + self.unreadable
    }

    fn add(&mut self, done: Drained) {
        self.delivered += done.delivered;
        self.overwritten += done.overwritten;
        self.before_attach += done.before_attach;
        self.abandoned += done.abandoned;
        self.unreadable += done.unreadable;
    }
}
