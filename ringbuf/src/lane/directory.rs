//! Which thread owns which lane. Private memory of the writing process, no thread-locals: looking a thread up by its
//! thread pointer takes no lock, makes no call and is bounded by the number of lanes.
//!
//! ```text
//! UNRESERVED ──(housekeeping reserved its memory)──► owner = FREE ──(claim)──► owner = thread pointer
//!                                                        ▲                            │
//!                                                        └──(housekeeping: the thread is gone)
//! busy:  0 idle │ 1 its thread is writing │ 2 housekeeping is freeing it
//! ```
//! A thread that inherits a dead thread's pointer inherits its lane. A write nested in a write of the same thread
//! (a signal handler) is refused. Whoever holds `busy` may write or free; nobody waits for it.

use crate::sync::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// Owner words that are no thread pointer.
const UNRESERVED: u64 = 0;
const FREE: u64 = 1;

const IDLE: u64 = 0;
const WRITING: u64 = 1;
const FREEING: u64 = 2;

struct Slot {
    owner: AtomicU64,
    tid: AtomicU64,
    busy: AtomicU64,
}

/// The lanes of a process and their owners.
pub struct LaneDirectory {
    slots: Box<[CachePadded<Slot>]>,
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
pub struct Entered<'a> {
    slot: &'a Slot,
    pub index: usize,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        leave(self.slot);
    }
}

impl LaneDirectory {
    /// A directory of `lanes` lanes, none of them reserved yet.
    pub fn new(lanes: usize) -> Self {
        let slot = || Slot { owner: AtomicU64::new(UNRESERVED), tid: AtomicU64::new(0), busy: AtomicU64::new(IDLE) };
        LaneDirectory { slots: (0..lanes).map(|_| CachePadded::new(slot())).collect() }
    }

    /// The lane of the calling thread, claimed now if it has none. `thread` is its thread pointer (above 1), `tid` its
    /// id, 0 if unknown.
    pub fn enter(&self, thread: u64, tid: u64) -> Result<Entered<'_>, Refused> {
        for (index, slot) in self.slots.iter().enumerate() {
            // Only this thread makes itself an owner, so it needs no order to see that it is one.
            if slot.owner.load(Ordering::Relaxed) != thread {
                continue;
            }
            match self.take(slot, IDLE, WRITING) {
                Err(WRITING) => return Err(Refused::Nested),
                Err(_) => break,
                Ok(_) if slot.owner.load(Ordering::Relaxed) == thread => {
                    slot.tid.store(tid, Ordering::Relaxed);
                    return Ok(Entered { slot, index });
                }
                Ok(_) => {
                    // Housekeeping freed it between our two looks; claim another.
                    leave(slot);
                    break;
                }
            }
        }
        self.claim(thread, tid).ok_or(Refused::NoLane)
    }

    fn claim(&self, thread: u64, tid: u64) -> Option<Entered<'_>> {
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.owner.load(Ordering::Relaxed) != FREE {
                continue;
            }
            if self.take(slot, IDLE, WRITING).is_err() {
                continue;
            }
            // SYNC: pairs with the Release store of FREE by `lane_reserved`: the lane's memory is there.
            if slot.owner.compare_exchange(FREE, thread, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                slot.tid.store(tid, Ordering::Relaxed);
                return Some(Entered { slot, index });
            }
            leave(slot);
        }
        None
    }

    fn take(&self, slot: &Slot, from: u64, to: u64) -> Result<u64, u64> {
        // SYNC: pairs with the Release store in `leave`: the next writer continues where the last one ended.
        slot.busy.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
    }

    /// Housekeeping: the memory of lane `index` is reserved; it may be claimed from now on.
    pub fn lane_reserved(&self, index: usize) {
        // SYNC: pairs with the Acquire exchange in `claim`.
        self.slots[index].owner.store(FREE, Ordering::Release);
    }

    /// Housekeeping: the first lane without memory, if reserved lanes are fewer than `ahead`.
    pub fn wants_reservation(&self, ahead: usize) -> Option<usize> {
        let count = |owner| self.slots.iter().filter(|s| s.owner.load(Ordering::Relaxed) == owner).count();
        if count(FREE) >= ahead {
            return None;
        }
        self.slots.iter().position(|s| s.owner.load(Ordering::Relaxed) == UNRESERVED)
    }

    /// Housekeeping: frees the lanes whose owner `is_gone` says no longer exists; gives how many.
    pub fn free_lanes_of_the_dead(&self, is_gone: impl Fn(u64) -> bool) -> usize {
        let mut freed = 0;
        for slot in &self.slots {
            let tid = slot.tid.load(Ordering::Relaxed);
            // A thread whose id is unknown cannot be told from a living one.
            if slot.owner.load(Ordering::Relaxed) <= FREE || tid == 0 || !is_gone(tid) {
                continue;
            }
            if self.take(slot, IDLE, FREEING).is_err() {
                continue;
            }
            // A thread may have inherited the pointer, and with it the lane, since we looked.
            if is_gone(slot.tid.load(Ordering::Relaxed)) {
                slot.owner.store(FREE, Ordering::Relaxed);
                freed += 1;
            }
            leave(slot);
        }
        freed
    }
}

/// Gives up `busy`.
fn leave(slot: &Slot) {
    // SYNC: pairs with the Acquire exchange in `take` by the next one to enter or free this lane.
    slot.busy.store(IDLE, Ordering::Release);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn ready(lanes: usize) -> LaneDirectory {
        let d = LaneDirectory::new(lanes);
        (0..lanes).for_each(|i| d.lane_reserved(i));
        d
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
        let d = LaneDirectory::new(1);
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
        assert_eq!(d.free_lanes_of_the_dead(|tid| tid == 9), 0);
        // The heir has the same thread pointer and another tid: it owns the lane now.
        drop(d.enter(100, 2).unwrap());
        assert_eq!(d.free_lanes_of_the_dead(|tid| tid == 1), 0);
        assert_eq!(d.free_lanes_of_the_dead(|tid| tid == 2), 1);
        assert_eq!(d.enter(300, 3).unwrap().index, 0);
    }

    #[test]
    fn a_lane_in_use_is_not_freed() {
        let d = ready(1);
        let _writing = d.enter(100, 1).unwrap();
        assert_eq!(d.free_lanes_of_the_dead(|_| true), 0);
    }
}
