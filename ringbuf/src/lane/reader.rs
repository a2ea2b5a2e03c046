//! The reading side of a lane: copies, then validates, then hands out records from its own copy. It writes nothing to
//! the lane, so any number of readers, stopped or dead, cost the writer nothing.
//!
//! Exactness: for each reader, records written before its last drain are its sum of delivered, overwritten,
//! before_attach, abandoned (begun by a thread that ended) and unreadable (a segment that lies about its own records;
//! never from our writer).

use super::{ABANDONED, CHUNK_HEADER_WORDS, MAX_POSITION, RecordHead, chunk_check, header, is_whole};
use crate::{
    layout::CHUNK_WORDS,
    sync::{Ordering, fence},
    words::{ReadWords, prefetch, xor},
};
use std::ops::AddAssign;

/// A record in the reader's own memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Number of the record in its lane, from 0.
    pub seq: u64,
    pub kind: u16,
    pub words: &'a [u64],
}

/// What one drain did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    pub delivered: u64,
    /// Overwritten since the last drain, before this reader came to them.
    pub overwritten: u64,
    /// Overwritten before this reader had read anything.
    pub before_attach: u64,
    /// Records that their thread began and, ending, did not finish.
    pub abandoned: u64,
    /// Records that a broken or hostile writer made unreadable.
    pub unreadable: u64,
    /// There was more than the limit allowed.
    pub more: bool,
}

impl Drained {
    /// Records that this reader has not got and never will, for whatever reason.
    pub fn missed(&self) -> u64 {
        [self.before_attach, self.abandoned, self.unreadable].into_iter().fold(self.overwritten, u64::saturating_add)
    }

    /// Records delivered and missed.
    pub fn accounted(&self) -> u64 {
        self.delivered.saturating_add(self.missed())
    }
}

/// Sums that a hostile segment cannot make wrap; `more` is the later drain's.
impl AddAssign for Drained {
    fn add_assign(&mut self, later: Drained) {
        let sums = [
            (&mut self.delivered, later.delivered),
            (&mut self.overwritten, later.overwritten),
            (&mut self.before_attach, later.before_attach),
            (&mut self.abandoned, later.abandoned),
            (&mut self.unreadable, later.unreadable),
        ];
        sums.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.more = later.more;
    }
}

/// Why records lie between the last one that was counted and the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    BeforeAttach,
    Overwritten,
    Unreadable,
}

/// Reads one lane from the oldest record that it still holds.
pub struct LaneReader<R: ReadWords> {
    header: R,
    data: R,
    capacity: u64,
    position: u64,
    /// Records that this reader has accounted for, and up to which position they reach.
    seq: u64,
    seq_position: u64,
    /// Set between a jump and the chunk header that tells how many records it passed.
    gap: Option<Gap>,
    attached: bool,
    copy: Box<[u64]>,
}

/// How often a drain starts over on a chunk that is overwritten under it or makes no sense, before it gives the caller
/// a turn.
const MAX_LAPS: u64 = 8;
const CHUNK: u64 = CHUNK_WORDS as u64;
/// The copy of a chunk is larger than a first-level cache, and where the next record lies is known only from this one.
const PREFETCH_WORDS: usize = 64;
/// INTENT is ahead of TAIL by a record at most, with padding before it; a reader may see TAIL a record late.
const MAX_INTENT_LEAD: u64 = 4 * CHUNK;

/// What INTENT says about words that were just copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    Whole,
    Overtaken,
    /// INTENT is a number that no honest writer stores: nothing can be said, or done, until it is right again.
    Unknown,
}

impl<R: ReadWords> LaneReader<R> {
    /// `data` has `capacity` words, a multiple of [`CHUNK_WORDS`].
    pub fn new(header: R, data: R, capacity: usize) -> Self {
        let copy = vec![0; CHUNK_WORDS].into_boxed_slice();
        let capacity = capacity as u64;
        LaneReader { header, data, capacity, position: 0, seq: 0, seq_position: 0, gap: None, attached: false, copy }
    }

    /// Hands up to about `max_records` records to `each`, oldest first (a chunk once begun is finished). Comes to an
    /// end even if the writer never pauses: what is written after the call began can wait for the next.
    pub fn drain(&mut self, max_records: u64, mut each: impl FnMut(Record<'_>)) -> Drained {
        let mut done = Drained::default();
        let mut laps = 0;
        let mut words_read = 0;
        let Some(goal) = self.tail() else { return done };
        while let Some(tail) = self.tail() {
            // A tail behind us is a lie of the writer's: stay where we are.
            if self.position >= tail || (self.position >= goal && self.gap.is_none()) {
                break;
            }
            // An honest lane holds no more than its capacity between here and the goal.
            done.more = done.delivered >= max_records || laps > MAX_LAPS || words_read > 2 * self.capacity;
            if done.more {
                break;
            }
            if tail - self.position > self.capacity {
                self.catch_up(tail, laps);
                laps += 1;
                continue;
            }
            let chunk_end = (self.position / CHUNK + 1) * CHUNK;
            let len = (tail.min(chunk_end) - self.position) as usize;
            self.data.load_all((self.position % self.capacity) as usize, &mut self.copy[..len]);
            words_read += len as u64;
            match self.copied() {
                Copied::Whole => {
                    self.attached = true;
                    if !self.parse(len, &mut done, &mut each) {
                        if tail < chunk_end {
                            break; // Perhaps it is TAIL that is wrong: the chunk is given up when it is full.
                        }
                        self.skip_chunk();
                        laps += 1;
                    }
                }
                Copied::Overtaken => {
                    self.catch_up(tail, laps);
                    laps += 1;
                }
                Copied::Unknown => break,
            }
        }
        done
    }

    /// `None` where it is a number that no honest writer stores: beyond INTENT, which is stored before it.
    fn tail(&self) -> Option<u64> {
        // SYNC: pairs with the writer's Release store of TAIL: every word before it, and INTENT, is there.
        let tail = self.header.load(header::TAIL, Ordering::Acquire);
        let intent = self.header.load(header::INTENT, Ordering::Relaxed);
        (tail <= intent && tail <= MAX_POSITION).then_some(tail)
    }

    /// Whether the writer may have touched what was just copied from `position` on.
    fn copied(&self) -> Copied {
        // SYNC: pairs with the writer's Release fence after its store of INTENT.
        fence(Ordering::Acquire);
        let intent = self.header.load(header::INTENT, Ordering::Relaxed);
        let Some(tail) = self.tail() else { return Copied::Unknown };
        if intent.saturating_sub(tail) > MAX_INTENT_LEAD {
            Copied::Unknown
        } else if intent.saturating_sub(self.position) > self.capacity {
            Copied::Overtaken
        } else {
            Copied::Whole
        }
    }

    /// Moves to the oldest chunk that still stands. What that skips is counted when the chunk's header has been read.
    fn catch_up(&mut self, tail: u64, laps: u64) {
        let intent = self.header.load(header::INTENT, Ordering::Relaxed).clamp(tail, tail + self.capacity);
        // The first time nothing readable is given away; a writer that overtakes us again gets a head start.
        let head_start = (laps * CHUNK).min(self.capacity / 4);
        let oldest = intent.saturating_sub(self.capacity) + head_start;
        self.position = oldest.next_multiple_of(CHUNK).max(self.position);
        self.gap = Some(if self.attached { Gap::Overwritten } else { Gap::BeforeAttach });
    }

    /// Delivers the records of `copy[..len]`, which starts at `position` and ends at a record's end, and moves there;
    /// or to where they cease to make sense, and gives false.
    #[inline(never)]
    fn parse(&mut self, len: usize, done: &mut Drained, each: &mut impl FnMut(Record<'_>)) -> bool {
        let mut at = 0;
        if self.position.is_multiple_of(CHUNK) {
            let (number, first_seq) = (self.copy[0], self.copy[1]);
            let missed = first_seq.wrapping_sub(self.seq);
            // A record has at least a word: more cannot have passed. Fewer than none wraps to a very large number.
            let most = self.position - self.seq_position;
            let whole = number == self.position / CHUNK && self.copy[2] == chunk_check(number, first_seq);
            if len < CHUNK_HEADER_WORDS || !whole || missed > most {
                return false;
            }
            self.close_gap(missed, done);
            at = CHUNK_HEADER_WORDS;
        }
        // Locals, since `each` may be anything: what is in `self` or `done` would be loaded and stored around it.
        let (mut rest, mut seq) = (&self.copy[at..len], self.seq);
        let mut abandoned = 0;
        while let Some((word, after)) = rest.split_first() {
            let head = RecordHead::from_word(*word);
            let Some((payload, next)) = after.split_at_checked(usize::from(head.words)) else { break };
            prefetch(after, PREFETCH_WORDS);
            let filling = head.is_filling();
            if !is_whole(if filling { *word } else { *word ^ xor(payload) }, seq) {
                break;
            }
            if filling {
                let unfinished = u64::from(head.kind == ABANDONED);
                seq += unfinished;
                abandoned += unfinished;
            } else {
                each(Record { seq, kind: head.kind, words: payload });
                seq += 1;
            }
            rest = next;
        }
        let whole = rest.is_empty();
        done.delivered += seq - self.seq - abandoned;
        done.abandoned += abandoned;
        self.seq = seq;
        self.position += (len - rest.len()) as u64;
        self.seq_position = self.position;
        whole
    }

    /// Accounts for the records between the last one counted and the chunk that begins at `position`.
    fn close_gap(&mut self, missed: u64, done: &mut Drained) {
        match self.gap.take() {
            Some(Gap::BeforeAttach) => done.before_attach += missed,
            Some(Gap::Overwritten) => done.overwritten += missed,
            Some(Gap::Unreadable) | None => done.unreadable += missed,
        }
        self.seq += missed;
        self.seq_position = self.position;
    }

    /// Leaves a chunk that makes no sense; the next chunk's header tells how many records that cost, which may be none:
    /// a guess here would make that header, and in time every later one, a lie.
    fn skip_chunk(&mut self) {
        self.position = (self.position / CHUNK + 1) * CHUNK;
        self.gap = self.gap.or(Some(Gap::Unreadable));
    }
}
