//! Which thread owns which lane. Private memory of the writing process, no thread-locals: looking a thread up by its
//! thread pointer takes no lock, makes no call and is bounded by the number of lanes.
//!
//! ```text
//! owner:  UNRESERVED ──(housekeeping reserved its memory)──► FREE ──(claim)──► thread pointer
//!                                                              ▲                     │
//!                                                              └──(housekeeping: the thread is gone)
//! busy:   0 idle │ the id of the thread that is writing │ FREEING: housekeeping is freeing it
//! ```
//! A thread that inherits a dead thread's pointer inherits its lane. A write nested in a write of the same thread
//! (a signal handler) is refused. Whoever holds `busy` may write or free; nobody waits for it. A thread that ends inside
//! a write leaves its id in `busy`: its heir, or housekeeping, takes the lane over and mends it. A
//! thread that finds housekeeping in its lane claims another besides, and may go on in the first one later: its records
//! are in order within each.

use crate::{layout::LINE, sync::Ordering, words::Words};

/// Owner words that are no thread pointer.
const UNRESERVED: u64 = 0;
const FREE: u64 = 1;

/// Busy words that are no thread id.
const IDLE: u64 = 0;
const FREEING: u64 = u64::MAX;
/// A writer whose id is unknown cannot be told from one that ended.
const UNKNOWN_WRITER: u64 = u64::MAX - 1;

/// Words of a slot, on a line of its own.
mod slot {
    pub const OWNER: usize = 0;
    pub const TID: usize = 1;
    pub const BUSY: usize = 2;
}

/// The lanes of a process and their owners.
pub struct LaneDirectory<W: Words> {
    words: W,
    lanes: usize,
}

/// Why a thread cannot write now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No reserved lane is free.
    NoLane,
    /// This thread is already writing: the call came from a signal handler inside a write.
    Nested,
}

/// The right to write into lane `index`, until dropped.
pub struct Entered<'a, W: Words> {
    directory: &'a LaneDirectory<W>,
    pub index: usize,
    /// The thread before this one ended inside a write: the lane has to be recovered first.
    pub broken_off: bool,
}

impl<W: Words> Drop for Entered<'_, W> {
    fn drop(&mut self) {
        self.directory.leave(self.index);
    }
}

impl<W: Words> LaneDirectory<W> {
    /// Words that a directory of `lanes` lanes needs, all 0.
    pub const fn words_needed(lanes: usize) -> usize {
        lanes * LINE
    }

    /// A directory of `lanes` lanes, none of them reserved yet.
    pub fn new(words: W, lanes: usize) -> Self {
        LaneDirectory { words, lanes }
    }

    /// The lane of the calling thread, claimed now if it has none. `thread` is its thread pointer (above 1), `tid` its
    /// id, 0 if unknown.
    #[inline]
    pub fn enter(&self, thread: u64, tid: u64) -> Result<Entered<'_, W>, Refused> {
        let writer = if tid == 0 { UNKNOWN_WRITER } else { tid };
        for index in 0..self.lanes {
            // Only this thread makes itself an owner, so it needs no order to see that it is one.
            if self.owner(index) != thread {
                continue;
            }
            let broken_off = match self.take(index, IDLE, writer) {
                Ok(_) => false,
                Err(FREEING) => break,
                Err(found) if found == writer || found == UNKNOWN_WRITER || writer == UNKNOWN_WRITER => {
                    return Err(Refused::Nested);
                }
                // No two living threads have the same pointer: this one has ended. Housekeeping may be faster than us.
                Err(found) => match self.take(index, found, writer) {
                    Ok(_) => true,
                    Err(_) => break,
                },
            };
            if self.owner(index) == thread {
                self.put(index, slot::TID, tid);
                return Ok(Entered { directory: self, index, broken_off });
            }
            // Housekeeping freed it between our two looks; claim another.
            self.give_up(index, writer);
            break;
        }
        self.claim(thread, tid, writer).ok_or(Refused::NoLane)
    }

    fn claim(&self, thread: u64, tid: u64, writer: u64) -> Option<Entered<'_, W>> {
        for index in 0..self.lanes {
            if self.owner(index) != FREE || self.take(index, IDLE, writer).is_err() {
                continue;
            }
            let owner = index * LINE + slot::OWNER;
            // SYNC: pairs with the Release store of FREE by `lane_reserved`: the lane's memory is there.
            if self.words.compare_exchange(owner, FREE, thread, Ordering::Acquire).is_ok() {
                self.put(index, slot::TID, tid);
                // An owner may have come and gone between our two exchanges and taken us for dead. The lane is ours from
                // now on, but for this once there is no telling who holds `busy`.
                let still_ours = self.get(index, slot::BUSY) == writer;
                return still_ours.then(|| Entered { directory: self, index, broken_off: false });
            }
            self.give_up(index, writer);
        }
        None
    }

    /// Gives up `busy` of a lane that turned out to be another's: unless its owner has taken us for dead and holds it.
    /// Nothing was written, and an exchange passes on what those before us wrote: no order is needed.
    fn give_up(&self, index: usize, writer: u64) {
        let _ = self.words.compare_exchange(index * LINE + slot::BUSY, writer, IDLE, Ordering::Relaxed);
    }

    fn take(&self, index: usize, from: u64, to: u64) -> Result<u64, u64> {
        // SYNC: pairs with the Release store in `leave`: the next writer continues where the last one ended.
        self.words.compare_exchange(index * LINE + slot::BUSY, from, to, Ordering::Acquire)
    }

    /// Gives up `busy`.
    fn leave(&self, index: usize) {
        // SYNC: pairs with the Acquire exchange in `take` by the next one to enter or free this lane.
        self.words.store(index * LINE + slot::BUSY, IDLE, Ordering::Release);
    }

    fn owner(&self, index: usize) -> u64 {
        self.get(index, slot::OWNER)
    }

    fn get(&self, index: usize, word: usize) -> u64 {
        self.words.load(index * LINE + word, Ordering::Relaxed)
    }

    fn put(&self, index: usize, word: usize, value: u64) {
        self.words.store(index * LINE + word, value, Ordering::Relaxed);
    }

    /// Housekeeping: the memory of lane `index` is reserved; it may be claimed from now on.
    pub fn lane_reserved(&self, index: usize) {
        // SYNC: pairs with the Acquire exchange in `claim`.
        self.words.store(index * LINE + slot::OWNER, FREE, Ordering::Release);
    }

    /// Housekeeping: the first lane without memory, if reserved lanes are fewer than `ahead`.
    pub fn wants_reservation(&self, ahead: usize) -> Option<usize> {
        let free = (0..self.lanes).filter(|i| self.owner(*i) == FREE).count();
        if free >= ahead {
            return None;
        }
        (0..self.lanes).find(|i| self.owner(*i) == UNRESERVED)
    }

    /// Housekeeping: frees the lanes whose owner `is_gone` says no longer exists; gives how many. A lane that its owner
    /// left in the middle of a write is handed to `recover` first.
    pub fn free_lanes_of_the_dead(&self, is_gone: impl Fn(u64) -> bool, recover: impl Fn(usize)) -> usize {
        (0..self.lanes).filter(|index| self.free_if_dead(*index, &is_gone, &recover)).count()
    }

    fn free_if_dead(&self, index: usize, is_gone: &impl Fn(u64) -> bool, recover: &impl Fn(usize)) -> bool {
        let (owner, busy) = (self.owner(index), self.get(index, slot::BUSY));
        let tid = if busy == IDLE { self.get(index, slot::TID) } else { busy };
        if owner == UNRESERVED || (owner == FREE && busy == IDLE) || !is_known(tid) || !is_gone(tid) {
            return false;
        }
        if self.take(index, busy, FREEING).is_err() {
            return false;
        }
        // A writer that ended inside a claim may not have come to be the owner: then nothing of the lane was touched.
        if busy != IDLE {
            recover(index);
        }
        // A thread may have inherited the pointer, and with it the lane, since we looked; and one that ended while it
        // tried to claim the lane of another leaves that to its owner. No id was noted yet where the first claim ended.
        let tid = self.get(index, slot::TID);
        let dead = if is_known(tid) { is_gone(tid) } else { busy != IDLE };
        if dead {
            self.put(index, slot::OWNER, FREE);
        }
        self.leave(index);
        dead
    }
}

/// Whether this is the id of a thread. One whose id is unknown cannot be told from a living one.
fn is_known(tid: u64) -> bool {
    tid != 0 && tid < UNKNOWN_WRITER
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::words::{MappedWords, heap_words};

    fn directory(lanes: usize) -> LaneDirectory<MappedWords> {
        LaneDirectory::new(heap_words(LaneDirectory::<MappedWords>::words_needed(lanes)), lanes)
    }

    fn ready(lanes: usize) -> LaneDirectory<MappedWords> {
        let d = directory(lanes);
        (0..lanes).for_each(|i| d.lane_reserved(i));
        d
    }

    /// As when the thread ends inside the write.
    fn break_off(entered: Entered<'_, MappedWords>) {
        std::mem::forget(entered);
    }

    fn not_expected(index: usize) {
        panic!("lane {index} was not broken off");
    }
    #[test]
    fn a_thread_keeps_its_lane_and_others_get_others() {
        let d = ready(2);
        assert_eq!(d.enter(100, 1).unwrap().index, 0);
        assert_eq!(d.enter(200, 2).unwrap().index, 1);
        assert_eq!(d.enter(100, 1).unwrap().index, 0);
        assert_eq!(d.enter(300, 3).err(), Some(Refused::NoLane));
    }

    #[test]
    fn a_nested_write_is_refused_and_the_outer_one_goes_on() {
        let d = ready(2);
        let outer = d.enter(100, 1).unwrap();
        assert_eq!(d.enter(100, 1).err(), Some(Refused::Nested));
        drop(outer);
        assert_eq!(d.enter(100, 1).unwrap().index, 0);
    }

    #[test]
    fn an_unreserved_lane_cannot_be_claimed() {
        let d = directory(1);
        assert_eq!(d.enter(100, 1).err(), Some(Refused::NoLane));
        assert_eq!(d.wants_reservation(1), Some(0));
        d.lane_reserved(0);
        assert_eq!(d.wants_reservation(1), None);
        assert!(d.enter(100, 1).is_ok());
    }

    #[test]
    fn lanes_of_the_dead_are_freed_and_an_heir_keeps_its_own() {
        let d = ready(1);
        drop(d.enter(100, 1).unwrap());
        assert_eq!(d.free_lanes_of_the_dead(|tid| tid == 9, not_expected), 0);
        // The heir has the same thread pointer and another tid: it owns the lane now.
        drop(d.enter(100, 2).unwrap());
        assert_eq!(d.free_lanes_of_the_dead(|tid| tid == 1, not_expected), 0);
        assert_eq!(d.free_lanes_of_the_dead(|tid| tid == 2, not_expected), 1);
        assert_eq!(d.enter(300, 3).unwrap().index, 0);
    }

    #[test]
    fn a_lane_in_use_is_not_freed() {
        let d = ready(2);
        let _writing = d.enter(100, 1).unwrap();
        assert_eq!(d.free_lanes_of_the_dead(|tid| tid != 1, not_expected), 0);
        // Where ids are unknown, nobody can be taken for dead.
        let _unknown = d.enter(200, 0).unwrap();
        assert_eq!(d.free_lanes_of_the_dead(|tid| tid != 1, not_expected), 0);
        assert_eq!(d.enter(200, 7).err(), Some(Refused::Nested));
    }

    #[test]
    fn the_heir_of_a_thread_that_ended_inside_a_write_gets_its_lane_to_mend() {
        let d = ready(2);
        break_off(d.enter(100, 1).unwrap());
        let heir = d.enter(100, 2).unwrap();
        assert_eq!((heir.index, heir.broken_off), (0, true));
        drop(heir);
        assert!(!d.enter(100, 2).unwrap().broken_off);
    }

    #[test]
    fn housekeeping_mends_and_frees_the_lane_of_a_thread_that_ended_inside_a_write() {
        let d = ready(1);
        break_off(d.enter(100, 1).unwrap());
        let mended = std::cell::Cell::new(None);
        assert_eq!(d.free_lanes_of_the_dead(|tid| tid == 1, |index| mended.set(Some(index))), 1);
        assert_eq!(mended.get(), Some(0));
        assert!(!d.enter(300, 3).unwrap().broken_off);
    }

    /// Such a lane was neither claimed nor freed, nor reserved anew, ever again.
    #[test]
    fn the_lane_of_a_thread_that_ended_inside_its_first_claim_comes_free() {
        let d = ready(1);
        let mended = std::cell::Cell::new(0);
        let free = |gone| d.free_lanes_of_the_dead(|tid| tid == gone, |_| mended.set(mended.get() + 1));
        // Before it was the owner, and when it was but had not noted its id.
        for owner in [FREE, 100] {
            d.put(0, slot::OWNER, owner);
            d.put(0, slot::TID, 0);
            d.put(0, slot::BUSY, 1);
            assert_eq!((free(9), free(1), free(1)), (0, 1, 0));
            assert_eq!(d.enter(300, 3).unwrap().index, 0);
        }
        assert_eq!(mended.get(), 2);
    }

    #[test]
    fn a_thread_that_ended_while_it_tried_for_the_lane_of_another_leaves_it_to_its_owner() {
        let d = ready(1);
        drop(d.enter(100, 1).unwrap());
        d.put(0, slot::BUSY, 2);
        assert_eq!(d.free_lanes_of_the_dead(|tid| tid == 2, |_| ()), 0);
        assert_eq!(d.enter(100, 1).unwrap().index, 0);
    }

    /// Whoever tries for a lane that another claims meanwhile holds `busy` for a moment. The owner takes it for dead.
    #[test]
    fn who_comes_too_late_to_claim_a_lane_does_not_let_its_owner_nest() {
        let d = ready(1);
        drop(d.enter(100, 1).unwrap());
        d.take(0, IDLE, 2).unwrap();
        let owner = d.enter(100, 1).unwrap();
        d.give_up(0, 2);
        assert_eq!(d.enter(100, 1).err(), Some(Refused::Nested));
        drop(owner);
        assert!(!d.enter(100, 1).unwrap().broken_off);
    }
}
