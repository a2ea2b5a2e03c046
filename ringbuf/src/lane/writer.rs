//! The writing side of a lane. One writer at a time (the directory sees to that); no call here waits, allocates or
//! makes a system call, and every loop is bounded by the record's length.

use super::{CHUNK_HEADER_WORDS, MAX_PAYLOAD_WORDS, PADDING, RecordHead, header};
use crate::{
    layout::CHUNK_WORDS,
    sync::{Ordering, fence},
    words::Words,
};

/// Writes records into one lane.
pub struct LaneWriter<W: Words> {
    header: W,
    data: W,
    capacity: u64,
    /// `capacity - 1` where that is a power of two, which spares each record a division; else 0.
    mask: u64,
}

const CHUNK: u64 = CHUNK_WORDS as u64;

/// The record is longer than a chunk; it belongs in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl<W: Words> LaneWriter<W> {
    /// `data` has `capacity` words, a multiple of [`CHUNK_WORDS`].
    pub fn new(header: W, data: W, capacity: usize) -> Self {
        let capacity = capacity as u64;
        let mask = if capacity.is_power_of_two() { capacity - 1 } else { 0 };
        LaneWriter { header, data, capacity, mask }
    }

    /// Appends a record; `kind` is not [`PADDING`].
    #[inline]
    pub fn write(&self, kind: u16, payload: &[u64]) -> Result<(), TooLong> {
        if payload.len() > MAX_PAYLOAD_WORDS || kind == PADDING {
            return Err(TooLong);
        }
        // Only this writer moves these two words: its own values need no order.
        let tail = self.header.load(header::TAIL, Ordering::Relaxed);
        let seq = self.header.load(header::NEXT_SEQ, Ordering::Relaxed);
        let used = tail % CHUNK;
        // Chunks are opened by their first record; what does not fit into one opens the next.
        let fits = used != 0 && (payload.len() as u64) < CHUNK - used;
        if fits && self.mask != 0 {
            self.append::<false>(tail, tail, (tail & self.mask) as usize, seq, kind, payload);
        } else if fits {
            self.append_by_division(tail, seq, kind, payload);
        } else {
            self.append_to_next_chunk(tail, seq, kind, payload);
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn append_by_division(&self, tail: u64, seq: u64, kind: u16, payload: &[u64]) {
        self.append::<false>(tail, tail, self.index(tail), seq, kind, payload);
    }

    #[cold]
    #[inline(never)]
    fn append_to_next_chunk(&self, tail: u64, seq: u64, kind: u16, payload: &[u64]) {
        let record = tail.next_multiple_of(CHUNK) + CHUNK_HEADER_WORDS as u64;
        self.append::<true>(tail, record, self.index(record), seq, kind, payload);
    }

    /// Writes a record at position `record`, which is word `at`, behind `tail` if that `OPENS` a chunk.
    #[inline(always)]
    fn append<const OPENS: bool>(&self, tail: u64, record: u64, at: usize, seq: u64, kind: u16, payload: &[u64]) {
        let end = record + 1 + payload.len() as u64;
        self.header.store(header::INTENT, end, Ordering::Relaxed);
        // SYNC: pairs with the reader's Acquire fence between its copy and its look at INTENT: a reader that copied
        // any word written below sees this INTENT.
        fence(Ordering::Release);
        if OPENS {
            self.open_chunk(tail, seq);
        }
        let head = RecordHead { kind, words: payload.len() as u16, seq_low: seq as u32 };
        // A record never crosses a chunk, and a chunk never crosses the capacity.
        self.data.store_headed(at, head.to_word(), payload);
        self.header.store(header::NEXT_SEQ, seq + 1, Ordering::Relaxed);
        // SYNC: pairs with the reader's Acquire load of TAIL: it sees every word before it.
        self.header.store(header::TAIL, end, Ordering::Release);
    }

    /// Fills the chunk that `tail` is in, if it is in one, and writes the header of the next.
    fn open_chunk(&self, tail: u64, seq: u64) {
        let start = tail.next_multiple_of(CHUNK);
        if start != tail {
            let head = RecordHead { kind: PADDING, words: (start - tail - 1) as u16, seq_low: seq as u32 };
            self.put(tail, head.to_word());
        }
        self.put(start, start / CHUNK);
        self.put(start + 1, seq);
    }

    fn put(&self, position: u64, word: u64) {
        self.data.store(self.index(position), word, Ordering::Relaxed);
    }

    fn index(&self, position: u64) -> usize {
        (position % self.capacity) as usize
    }
}
