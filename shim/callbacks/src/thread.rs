//! Who is calling: thread pointer and thread id, without a system call and without a thread-local of ours.
//!
//! The id lies in glibc's own thread descriptor, at an offset that differs by version and is nowhere published. It is
//! found by looking for the known ids of two threads in their own descriptors; where that fails, ids are 0 and lanes of
//! dead threads are only inherited, not freed.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How much of a thread descriptor is looked at: glibc's has 2,304 bytes (x86_64), the id near 720.
const SEARCHED_BYTES: usize = 1280;
const UNKNOWN: usize = usize::MAX;

static TID_OFFSET: AtomicUsize = AtomicUsize::new(UNKNOWN);

/// The address of the calling thread's descriptor: its identity while it lives. Reads a register.
pub fn pointer() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as u64 }
}

/// The calling thread's id; 0 where it cannot be told without a system call.
pub fn id() -> u64 {
    match TID_OFFSET.load(Ordering::Relaxed) {
        UNKNOWN => 0,
        // SAFETY: `learn` found the offset inside the descriptor, which is mapped while its thread runs.
        offset => u64::from(unsafe { descriptor_word(offset) }),
    }
}

/// # Safety
/// `offset` is a multiple of 4 below [`SEARCHED_BYTES`].
unsafe fn descriptor_word(offset: usize) -> u32 {
    // SAFETY: the descriptor of the calling thread has at least SEARCHED_BYTES readable bytes, aligned to 64.
    unsafe { (pointer() as *const u8).add(offset).cast::<u32>().read_volatile() }
}

/// Offsets at which the calling thread's descriptor holds its id, as one thread sees it.
pub struct Candidates(Vec<usize>);

/// Looks for the calling thread's id in its descriptor. Makes a system call: for start-up, not for callbacks.
pub fn candidates() -> Candidates {
    if !cfg!(target_env = "gnu") {
        return Candidates(Vec::new());
    }
    // SAFETY: no preconditions.
    let tid = unsafe { libc::gettid() } as u32;
    // SAFETY: the offsets are multiples of 4 below the bound.
    let holds_id = |offset: &usize| unsafe { descriptor_word(*offset) } == tid;
    Candidates((0..SEARCHED_BYTES).step_by(4).filter(holds_id).collect())
}

/// Learns the offset from what two different threads found; keeps it only if exactly one fits both.
pub fn learn(one: &Candidates, other: &Candidates) {
    let mut both = one.0.iter().filter(|o| other.0.contains(o));
    if let (Some(offset), None) = (both.next(), both.next()) {
        TID_OFFSET.store(*offset, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_is_learnt_from_two_threads_and_right_in_a_third() {
        let other = std::thread::spawn(candidates).join().unwrap();
        learn(&candidates(), &other);
        // SAFETY: no preconditions.
        let seen = std::thread::spawn(|| (id(), unsafe { libc::gettid() } as u64, pointer())).join().unwrap();
        assert_eq!(seen.0, seen.1);
        assert_ne!(seen.2, pointer());
    }
}
