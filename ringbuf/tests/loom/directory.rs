//! Lanes that go from thread to thread: whoever is inside is alone, and sees all that those before it wrote.

use super::{LoomWords, check};
use gputap_ringbuf::{
    lane::directory::LaneDirectory,
    sync::Ordering,
    words::{ReadWords, Words},
};
use loom::thread;
use std::sync::Arc;

/// One lane, and a word that its owners count up without an atomic addition, as they do with TAIL.
#[derive(Clone)]
struct Process {
    directory: Arc<LaneDirectory>,
    tail: LoomWords,
}

impl Process {
    fn new() -> Process {
        let process = Process { directory: Arc::new(LaneDirectory::new(1)), tail: LoomWords::new(1) };
        process.directory.lane_reserved(0);
        process
    }

    /// Writes if it can; gives how many records that made.
    fn write(&self, thread: u64, tid: u64) -> u64 {
        let Ok(_lane) = self.directory.enter(thread, tid) else { return 0 };
        let tail = self.tail.load(0, Ordering::Relaxed);
        self.tail.store(0, tail + 1, Ordering::Relaxed);
        1
    }

    fn written(&self) -> u64 {
        self.tail.load(0, Ordering::Relaxed)
    }
}

/// What a thread of the model does; gives how many records it wrote.
type Actor = fn(&Process) -> u64;

/// Checks the actors against each other, started in every order; none of them knows that another has ended but through
/// the lane.
fn check_actors(name: &str, actors: [Actor; 3]) {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        check(&format!("directory, {name} {order:?}"), 2, move || {
            let process = Process::new();
            let threads = order.map(|i| {
                let process = process.clone();
                thread::spawn(move || actors[i](&process))
            });
            let written: u64 = threads.into_iter().map(|t| t.join().unwrap()).sum();
            assert_eq!(process.written(), written, "an owner did not see what those before it wrote");
        });
    }
}

fn free_the_first(process: &Process) -> u64 {
    process.directory.free_lanes_of_the_dead(|tid| tid == 1);
    0
}

/// A thread writes and ends; housekeeping frees its lane, which a stranger may claim.
pub fn handing_over() {
    check_actors("handing over", [|p| p.write(100, 1), free_the_first, |p| p.write(300, 3)]);
}

/// Housekeeping takes the lane of a dead thread for another's while one with the same thread pointer enters it.
pub fn inheriting() {
    check_actors("inheriting", [|p| p.write(100, 1), free_the_first, |p| p.write(100, 2) + p.write(100, 2)]);
}

/// A lane is claimed only when its memory is there.
pub fn reserving() {
    check("directory, reserving", 3, || {
        let (directory, pages) = (Arc::new(LaneDirectory::new(1)), LoomWords::new(1));
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
fn a_lane_without_memory_is_not_claimed() {
    reserving();
}
