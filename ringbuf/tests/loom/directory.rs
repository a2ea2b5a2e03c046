//! Lanes that go from thread to thread: whoever is inside is alone, and sees all that those before it wrote.

use super::{LoomWords, check};
use gputap_ringbuf::{
    lane::directory::LaneDirectory,
    sync::Ordering,
    words::{ReadWords, Words},
};
use loom::thread;
use std::{cell::Cell, sync::Arc};

/// One lane, and words that its owners change without atomic operations: a count, as TAIL is one, and whether a write
/// is under way, as INTENT says.
#[derive(Clone)]
struct Process {
    directory: Arc<LaneDirectory<LoomWords>>,
    tail: LoomWords,
}

const COUNT: usize = 0;
const UNDER_WAY: usize = 1;
/// Thread 1 has ended.
const ENDED: usize = 2;

fn directory() -> LaneDirectory<LoomWords> {
    LaneDirectory::new(LoomWords::new(LaneDirectory::<LoomWords>::words_needed(1)), 1)
}

impl Process {
    fn new() -> Process {
        let process = Process { directory: Arc::new(directory()), tail: LoomWords::new(3) };
        process.directory.lane_reserved(0);
        process
    }

    /// Writes if it can; gives how many records that made, mended ones included.
    fn write(&self, thread: u64, tid: u64) -> u64 {
        let Ok(lane) = self.directory.enter(thread, tid) else { return 0 };
        let mended = if lane.broken_off { self.mend() } else { 0 };
        assert_eq!(self.tail.load(UNDER_WAY, Ordering::Relaxed), 0, "a broken off lane was given out");
        self.tail.store(UNDER_WAY, 1, Ordering::Relaxed);
        self.count_up();
        self.tail.store(UNDER_WAY, 0, Ordering::Relaxed);
        mended + 1
    }

    /// As a thread that ends inside a write.
    fn break_off(&self, thread: u64, tid: u64) {
        let lane = self.directory.enter(thread, tid).unwrap();
        self.tail.store(UNDER_WAY, 1, Ordering::Relaxed);
        std::mem::forget(lane);
        self.tail.store(ENDED, 1, Ordering::Relaxed);
    }

    fn write_and_end(&self, thread: u64) -> u64 {
        let written = self.write(thread, 1);
        // SYNC: pairs with the Acquire load of an heir, which the kernel starts after this thread's end.
        self.tail.store(ENDED, 1, Ordering::Release);
        written
    }

    /// Housekeeping asks the kernel who lives; it gets no order from the answer.
    fn is_gone(&self, tid: u64) -> bool {
        tid == 1 && self.tail.load(ENDED, Ordering::Relaxed) == 1
    }

    fn write_as_heir(&self, thread: u64) -> u64 {
        if self.tail.load(ENDED, Ordering::Acquire) == 0 {
            return 0;
        }
        self.write(thread, 2) + self.write(thread, 2)
    }

    fn mend(&self) -> u64 {
        assert_eq!(self.tail.load(UNDER_WAY, Ordering::Relaxed), 1, "there was nothing to mend");
        self.count_up();
        self.tail.store(UNDER_WAY, 0, Ordering::Relaxed);
        1
    }

    fn count_up(&self) {
        let count = self.tail.load(COUNT, Ordering::Relaxed);
        self.tail.store(COUNT, count + 1, Ordering::Relaxed);
    }

    fn written(&self) -> u64 {
        self.tail.load(COUNT, Ordering::Relaxed)
    }
}

/// What a thread of the model does; gives how many records it wrote.
type Actor = fn(&Process) -> u64;

/// Checks the actors against each other, after `before`, started in every order; none of them knows that another has
/// ended but through the lane.
fn check_actors(name: &str, before: fn(&Process), actors: [Actor; 3]) {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        check(&format!("directory, {name} {order:?}"), 2, move || {
            let process = Process::new();
            before(&process);
            let threads = order.map(|i| {
                let process = process.clone();
                thread::spawn(move || actors[i](&process))
            });
            let written: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
            assert_eq!(process.written(), written, "an owner did not see what those before it wrote");
        });
    }
}

fn nothing(_: &Process) {}

fn free_the_first(process: &Process) -> u64 {
    let mended = Cell::new(0);
    process.directory.free_lanes_of_the_dead(|tid| process.is_gone(tid), |_| mended.set(process.mend()));
    mended.get()
}

/// A thread writes and ends; housekeeping frees its lane, which a stranger may claim.
pub fn handing_over() {
    check_actors("handing over", nothing, [|p| p.write_and_end(100), free_the_first, |p| p.write(300, 3)]);
}

/// Housekeeping frees the lane of a dead thread while one with the same thread pointer enters it.
pub fn inheriting() {
    check_actors("inheriting", nothing, [|p| p.write_and_end(100), free_the_first, |p| p.write_as_heir(100)]);
}

/// A thread has ended inside a write: its heir and housekeeping both want to mend the lane, a stranger to have it.
/// What it wrote is there for all that start after its end, as the kernel sees to.
pub fn mending() {
    let break_off = |p: &Process| p.break_off(100, 1);
    check_actors("mending", break_off, [|p| p.write(100, 2), free_the_first, |p| p.write(300, 3)]);
}

/// A lane is claimed only when its memory is there.
pub fn reserving() {
    check("directory, reserving", 3, || {
        let (directory, pages) = (Arc::new(directory()), LoomWords::new(1));
        let (its_directory, its_pages) = (directory.clone(), pages.clone());
        let writing = thread::spawn(move || {
            if its_directory.enter(100, 1).is_ok() {
                assert_eq!(its_pages.load(0, Ordering::Relaxed), 1, "claimed without pages");
            }
        });
        pages.store(0, 1, Ordering::Relaxed);
        directory.lane_reserved(0);
        writing.join().unwrap();
    });
}

#[test]
fn a_lane_is_handed_over_whole() {
    handing_over();
}

#[test]
fn an_heir_and_housekeeping_do_not_meet_in_a_lane() {
    inheriting();
}

#[test]
fn a_lane_that_a_thread_left_inside_a_write_is_mended_once() {
    mending();
}

#[test]
fn a_lane_without_memory_is_not_claimed() {
    reserving();
}
