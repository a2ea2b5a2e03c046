//! Records that say themselves who made them and which of its records they are, for writers that share a lane.

use gputap_ringbuf::{
    lane::reader::{Drained, LaneReader},
    words::{MappedWords, xor},
};

/// `maker`, `number`, and up to `most_words` words that follow from them.
pub fn fill(payload: &mut [u64], maker: u64, number: u64, most_words: u64) -> &[u64] {
    let len = 2 + (number % (most_words + 1)) as usize;
    let payload = &mut payload[..len];
    (payload[0], payload[1]) = (maker, number);
    payload[2..].iter_mut().enumerate().for_each(|(i, w)| *w = word(maker, number, i));
    payload
}

fn word(maker: u64, number: u64, index: usize) -> u64 {
    (number ^ (index as u64) << 40 ^ maker << 60).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number
}

/// What a reader has had of one lane: each record whole, those of each maker in order, none twice.
#[derive(Debug, Default)]
pub struct LaneTally {
    pub sums: Drained,
    /// The next number that a maker can have.
    next: [u64; 4],
}

impl LaneTally {
    /// Gives whether there is more.
    pub fn drain(&mut self, reader: &mut LaneReader<MappedWords>) -> bool {
        let next = &mut self.next;
        self.sums += reader.drain(100_000, |record| {
            let (maker, number) = (record.words[0], record.words[1]);
            assert!(u64::from(record.kind) == maker && number >= next[maker as usize], "{maker} {number} {next:?}");
            next[maker as usize] = number + 1;
            let expected = (0..record.words.len() - 2).fold(0, |all, i| all ^ word(maker, number, i));
            assert_eq!(xor(&record.words[2..]), expected, "record {number} of {maker}");
        });
        self.sums.more
    }
}
