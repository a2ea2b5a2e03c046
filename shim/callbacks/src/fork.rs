//! Telling a forked child, even one made by a raw clone: a word that the kernel wipes in the child.

use std::{
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering},
};

/// A word that is 1 in the process that made it and 0 in every child forked from it.
pub struct ForkWord(NonNull<AtomicU64>);

// SAFETY: the word is an atomic in memory that is never unmapped.
unsafe impl Send for ForkWord {}
// SAFETY: as for Send.
unsafe impl Sync for ForkWord {}

impl ForkWord {
    /// `None` where the kernel cannot (before Linux 4.14): a tap must not run there.
    pub fn new() -> Option<ForkWord> {
        const LEN: usize = 4096;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: an anonymous mapping at an address that the kernel chooses disturbs nothing.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), LEN, protection, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the page is ours alone.
        if unsafe { libc::madvise(page, LEN, libc::MADV_WIPEONFORK) } != 0 {
            return None;
        }
        let word = ForkWord(NonNull::new(page.cast())?);
        word.word().store(1, Ordering::Relaxed);
        Some(word)
    }

    /// Whether this is the process that made the word.
    pub fn is_original(&self) -> bool {
        self.word().load(Ordering::Relaxed) == 1
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped, aligned, zeroed memory that is never unmapped.
        unsafe { self.0.as_ref() }
    }
}
