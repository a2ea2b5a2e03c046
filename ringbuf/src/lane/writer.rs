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
    /// `capacity - 1` where that is a power of two, which spares each record a division.
    mask: Option<u64>,
}

/// The record is longer than a chunk; it belongs in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl<W: Words> LaneWriter<W> {
    /// `data` has `capacity` words, a multiple of [`CHUNK_WORDS`].
    pub fn new(header: W, data: W, capacity: usize) -> Self {
        let capacity = capacity as u64;
        let mask = capacity.is_power_of_two().then(|| capacity - 1);
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
        let words = payload.len() as u64 + 1;
        let used = tail % CHUNK_WORDS as u64;
        let left = CHUNK_WORDS as u64 - used;
        let padding = if used != 0 && words > left { left } else { 0 };
        let start = tail + padding;
        let opens_chunk = start.is_multiple_of(CHUNK_WORDS as u64);
        let record = if opens_chunk { start + CHUNK_HEADER_WORDS as u64 } else { start };
        let end = record + words;

        self.header.store(header::INTENT, end, Ordering::Relaxed);
        // SYNC: pairs with the reader's Acquire fence between its copy and its look at INTENT: a reader that copied
        // any word written below sees this INTENT.
        fence(Ordering::Release);
        if padding > 0 {
            let head = RecordHead { kind: PADDING, words: (padding - 1) as u16 };
            self.put(tail, head.to_word());
        }
        if opens_chunk {
            self.put(start, start / CHUNK_WORDS as u64);
            self.put(start + 1, seq);
        }
        self.put(record, RecordHead { kind, words: payload.len() as u16 }.to_word());
        // A record never crosses a chunk, and a chunk never crosses the capacity.
        self.data.store_all(self.index(record + 1), payload);
        self.header.store(header::NEXT_SEQ, seq + 1, Ordering::Relaxed);
        // SYNC: pairs with the reader's Acquire load of TAIL: it sees every word before it.
        self.header.store(header::TAIL, end, Ordering::Release);
        Ok(())
    }

    fn put(&self, position: u64, word: u64) {
        self.data.store(self.index(position), word, Ordering::Relaxed);
    }

    #[inline]
    fn index(&self, position: u64) -> usize {
        match self.mask {
            Some(mask) => (position & mask) as usize,
            None => (position % self.capacity) as usize,
        }
    }
}
