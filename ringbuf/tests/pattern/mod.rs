//! Records whose every word follows from their number, so that a wrong, torn or misnumbered one shows.

use gputap_ringbuf::lane::reader::Record;

pub fn kind(seq: u64) -> u16 {
    (seq % 60_000) as u16 + 1
}

pub fn word(seq: u64, index: usize) -> u64 {
    (seq ^ (index as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seq
}

/// Fills `payload` as the record number `seq` has it.
pub fn fill(payload: &mut [u64], seq: u64) {
    payload.iter_mut().enumerate().for_each(|(i, w)| *w = word(seq, i));
}

/// Fails on a record that is not the one of its number.
pub fn check(record: Record<'_>) {
    assert_eq!(record.kind, kind(record.seq), "kind of record {}", record.seq);
    for (i, found) in record.words.iter().enumerate() {
        assert_eq!(*found, word(record.seq, i), "word {i} of record {}", record.seq);
    }
}
