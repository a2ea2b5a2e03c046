//! The writing side of a lane. One writer at a time (the directory sees to that); no call here waits, allocates or
//! makes a system call, and every loop is bounded by the record's length.

use super::{ABANDONED, CHUNK_HEADER_WORDS, MAX_PAYLOAD_WORDS, MAX_POSITION, PADDING, RecordHead, chunk_check, header};
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
/// INTENT is ahead of TAIL by the rest of a chunk and a record in the next at most.
const MAX_LEAD: u64 = 2 * CHUNK;

/// Where the next chunk begins, or this one at its first word. Positions are in memory that anything in the process may
/// have overwritten: arithmetic on them wraps, and nobody panics inside a callback.
fn next_chunk(position: u64) -> u64 {
    position.wrapping_add(CHUNK - 1) / CHUNK * CHUNK
}

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

    /// Appends a record; `kind` is neither [`PADDING`] nor [`ABANDONED`].
    ///
    /// Always inlined: most callers write records of one length, and copying that many words takes 40 % fewer
    /// instructions than copying any number.
    #[inline(always)]
    pub fn write(&self, kind: u16, payload: &[u64]) -> Result<(), TooLong> {
        if payload.len() > MAX_PAYLOAD_WORDS || kind == PADDING || kind == ABANDONED {
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
        let record = next_chunk(tail) + CHUNK_HEADER_WORDS as u64;
        self.append::<true>(tail, record, self.index(record), seq, kind, payload);
    }

    /// Writes a record at position `record`, which is word `at`, behind `tail` if that `OPENS` a chunk.
    #[inline(always)]
    fn append<const OPENS: bool>(&self, tail: u64, record: u64, at: usize, seq: u64, kind: u16, payload: &[u64]) {
        let end = record.wrapping_add(1 + payload.len() as u64);
        self.begin(end);
        if OPENS {
            self.open_chunk(tail, seq);
        }
        let head = RecordHead { kind, words: payload.len() as u16 };
        // A record never crosses a chunk, and a chunk never crosses the capacity.
        self.data.store_headed(at, payload, |xor| head.to_word(seq, xor));
        self.finish(end, seq.wrapping_add(1));
    }

    /// From here on, words before `end` may be overwritten.
    #[inline(always)]
    fn begin(&self, end: u64) {
        self.header.store(header::INTENT, end, Ordering::Relaxed);
        // SYNC: pairs with the reader's Acquire fence between its copy and its look at INTENT: a reader that copied
        // any word written from here on sees this INTENT.
        fence(Ordering::Release);
    }

    /// All words before `end` are records.
    #[inline(always)]
    fn finish(&self, end: u64, next_seq: u64) {
        self.header.store(header::NEXT_SEQ, next_seq, Ordering::Relaxed);
        // SYNC: pairs with the reader's Acquire load of TAIL: it sees every word before it.
        self.header.store(header::TAIL, end, Ordering::Release);
    }

    /// Fills the chunk that `tail` is in, if it is in one, and writes the header of the next.
    fn open_chunk(&self, tail: u64, seq: u64) {
        let start = next_chunk(tail);
        if start != tail {
            self.fill(PADDING, tail, start, seq);
        }
        self.put(start, start / CHUNK);
        self.put(start + 1, seq);
        self.put(start + 2, chunk_check(start / CHUNK, seq));
    }

    fn fill(&self, kind: u16, start: u64, end: u64, seq: u64) {
        let head = RecordHead { kind, words: end.wrapping_sub(start).wrapping_sub(1) as u16 };
        self.put(start, head.to_word(seq, 0));
    }

    /// Makes the lane whole again after a thread that ended inside [`LaneWriter::write`]; does nothing where none did.
    /// What that thread had begun, finished or not, becomes one [`ABANDONED`] record.
    ///
    /// INTENT must not come back: what lies before it may be overwritten already. So the chunks up to it are given up,
    /// at most two.
    #[cold]
    pub fn recover(&self) {
        let tail = self.header.load(header::TAIL, Ordering::Relaxed);
        let intent = self.header.load(header::INTENT, Ordering::Relaxed);
        // Numbers that no writer leaves are not worked through: the next record overwrites them.
        let lead = intent.wrapping_sub(tail);
        if lead == 0 || lead > MAX_LEAD || tail > MAX_POSITION {
            return;
        }
        // NEXT_SEQ may have been raised or not: the chunk knows.
        let seq = self.seq_at(tail);
        let end = intent.next_multiple_of(CHUNK);
        self.begin(end);
        let mut at = tail;
        let mut kind = ABANDONED;
        while at < end {
            let next_seq = if kind == ABANDONED { seq } else { seq.wrapping_add(1) };
            if at.is_multiple_of(CHUNK) {
                self.open_chunk(at, next_seq);
                at += CHUNK_HEADER_WORDS as u64;
            }
            let chunk_end = at.next_multiple_of(CHUNK);
            self.fill(kind, at, chunk_end, next_seq);
            (at, kind) = (chunk_end, PADDING);
        }
        self.finish(end, seq.wrapping_add(1));
    }

    /// The number of the record at `tail`: that of its chunk's first, and those between. The chunk that ends at `tail`
    /// stands, since a lane has at least four.
    fn seq_at(&self, tail: u64) -> u64 {
        if tail == 0 {
            return 0;
        }
        let start = (tail - 1) / CHUNK * CHUNK;
        let mut seq = self.get(start + 1);
        let mut at = start + CHUNK_HEADER_WORDS as u64;
        while at < tail {
            let head = RecordHead::from_word(self.get(at));
            seq = seq.wrapping_add(u64::from(head.kind != PADDING));
            at += 1 + u64::from(head.words);
        }
        seq
    }

    fn get(&self, position: u64) -> u64 {
        self.data.load(self.index(position), Ordering::Relaxed)
    }

    fn put(&self, position: u64, word: u64) {
        self.data.store(self.index(position), word, Ordering::Relaxed);
    }

    fn index(&self, position: u64) -> usize {
        (position % self.capacity) as usize
    }
}
