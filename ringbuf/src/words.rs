//! A view of shared memory as 64-bit words: the only way in which the protocols touch peer-writable bytes.
//!
//! Guarantees: no Rust reference to shared bytes other than an atomic's; a word outside the view reads as 0 and a
//! write to it is nothing, so no index, however wrong, can panic or fault. A run of words that is not all inside reads
//! as zeros, and nothing of it is written.

use crate::sync::{AtomicU64, Ordering};
use std::{ptr::NonNull, sync::Arc};

/// Words that can be read.
pub trait ReadWords: Clone {
    fn load(&self, index: usize, order: Ordering) -> u64;

    /// Copies `to.len()` words from `start`, each with one relaxed load.
    fn load_all(&self, start: usize, to: &mut [u64]) {
        for (i, word) in to.iter_mut().enumerate() {
            *word = self.load(start + i, Ordering::Relaxed);
        }
    }
}

/// Words that can be written too.
pub trait Words: ReadWords {
    fn store(&self, index: usize, value: u64, order: Ordering);
    fn fetch_add(&self, index: usize, value: u64, order: Ordering) -> u64;
    /// Gives the word found, and whether it was `expected` and is now `new`.
    fn compare_exchange(&self, index: usize, expected: u64, new: u64, order: Ordering) -> Result<u64, u64>;

    /// Copies `from` to the words after `start`, and `head(the exclusive or of them all)` to `start` itself, each with
    /// one relaxed store.
    #[track_caller]
    fn store_headed(&self, start: usize, from: &[u64], head: impl Fn(u64) -> u64) {
        for (i, word) in from.iter().enumerate() {
            self.store(start + 1 + i, *word, Ordering::Relaxed);
        }
        self.store(start, head(xor(from)), Ordering::Relaxed);
    }
}

/// Keeps a mapping alive for as long as somebody views it.
pub trait KeepMapped: Send + Sync {}
impl<T: Send + Sync> KeepMapped for T {}

/// Words of mapped memory.
#[derive(Clone)]
pub struct MappedWords {
    base: NonNull<AtomicU64>,
    len: usize,
    /// `None` where the mapping is never unmapped (the shim's own).
    _keep: Option<Arc<dyn KeepMapped>>,
}

// SAFETY: the words are only touched through atomic operations, which any thread may do; the mapping stays (`_keep`
// or a mapping that is never unmapped, which `new` demands).
unsafe impl Send for MappedWords {}
// SAFETY: as for Send.
unsafe impl Sync for MappedWords {}

impl MappedWords {
    /// # Safety
    /// `base` is aligned to 8 bytes and `len` words from it are mapped, readable, and stay so while `keep` lives, or
    /// for ever where it is `None`. A view made of read-only memory is used as [`ReadWords`] only.
    pub unsafe fn new(base: NonNull<u8>, len: usize, keep: Option<Arc<dyn KeepMapped>>) -> Self {
        MappedWords { base: base.cast(), len, _keep: keep }
    }

    /// The part of `len` words from word `start`; cut to what is there.
    pub fn part(&self, start: usize, len: usize) -> Self {
        let start = start.min(self.len);
        let len = len.min(self.len - start);
        // SAFETY: start <= self.len, so the result is inside or one past the mapped words.
        let base = unsafe { self.base.add(start) };
        MappedWords { base, len, _keep: self._keep.clone() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address of the byte at `start_bytes`, for bulk copies of `len_bytes`; `None` where they are not all inside.
    pub fn bytes_at(&self, start_bytes: usize, len_bytes: usize) -> Option<NonNull<u8>> {
        let size_bytes = self.len * 8;
        if len_bytes > size_bytes || start_bytes > size_bytes - len_bytes {
            return None;
        }
        // SAFETY: start_bytes <= size of the mapped words, checked above.
        Some(unsafe { self.base.cast::<u8>().add(start_bytes) })
    }

    /// The `len` words from `start`, if all of them are inside: one check for many words.
    #[inline]
    fn run(&self, start: usize, len: usize) -> Option<&[AtomicU64]> {
        if len > self.len || start > self.len - len {
            return None;
        }
        // SAFETY: start + len <= self.len, and `new` promises that many mapped, aligned words that stay; a slice of
        // atomics may be shared with a peer that writes them.
        Some(unsafe { std::slice::from_raw_parts(self.base.add(start).as_ptr(), len) })
    }

    #[inline]
    fn word(&self, index: usize) -> Option<&AtomicU64> {
        if index >= self.len {
            return None;
        }
        // SAFETY: index < len, and `new` promises len mapped, aligned words that stay; an AtomicU64 may be shared with
        // a peer that writes it.
        Some(unsafe { self.base.add(index).as_ref() })
    }
}

impl ReadWords for MappedWords {
    #[inline]
    fn load(&self, index: usize, order: Ordering) -> u64 {
        self.word(index).map_or(0, |w| w.load(order))
    }

    #[inline]
    fn load_all(&self, start: usize, to: &mut [u64]) {
        match self.run(start, to.len()) {
            Some(words) => copy_out(words, to),
            None => to.fill(0),
        }
    }
}

impl Words for MappedWords {
    #[inline]
    fn store(&self, index: usize, value: u64, order: Ordering) {
        if let Some(w) = self.word(index) {
            w.store(value, order);
        }
    }

    #[inline]
    fn fetch_add(&self, index: usize, value: u64, order: Ordering) -> u64 {
        self.word(index).map_or(0, |w| w.fetch_add(value, order))
    }

    #[inline]
    fn compare_exchange(&self, index: usize, expected: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        match self.word(index) {
            Some(w) => w.compare_exchange(expected, new, order, Ordering::Relaxed),
            None => Err(0),
        }
    }

    #[inline]
    fn store_headed(&self, start: usize, from: &[u64], head: impl Fn(u64) -> u64) {
        if let Some((first, rest)) = self.run(start, from.len() + 1).and_then(<[_]>::split_first) {
            first.store(head(copy_in(from, rest)), Ordering::Relaxed);
        }
    }
}

/// Both slices are of one length. In long steps, since no compiler unrolls or widens a loop over atomics.
#[inline]
fn copy_out(from: &[AtomicU64], to: &mut [u64]) {
    let (steps, rest) = to.as_chunks_mut::<STEP>();
    let (from_steps, from_rest) = from.as_chunks::<STEP>();
    for (to, from) in steps.iter_mut().zip(from_steps) {
        copy_step(from, to);
    }
    rest.iter_mut().zip(from_rest).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
}

const STEP: usize = 32;

/// Two words at a time, which no Rust atomic does: the drain's speed is that of its copy's stores.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
#[inline(always)]
fn copy_step(from: &[AtomicU64; STEP], to: &mut [u64; STEP]) {
    for (to, from) in to.as_chunks_mut::<8>().0.iter_mut().zip(from.as_chunks::<8>().0) {
        // SAFETY: loads the 64 bytes of `from` and stores them to the 64 of `to`, which is ours alone; both are
        // references to eight words. To the compiler this is opaque code that may load atomically; to the machine each
        // aligned word of a 16-byte load is one access, as a relaxed load is, and loads keep their order. The words may
        // be of different times, as with any eight loads: the reader validates what it copied.
        unsafe {
            std::arch::asm!(
                "movups {a}, [{from}]",
                "movups {b}, [{from} + 16]",
                "movups {c}, [{from} + 32]",
                "movups {d}, [{from} + 48]",
                "movups [{to}], {a}",
                "movups [{to} + 16], {b}",
                "movups [{to} + 32], {c}",
                "movups [{to} + 48], {d}",
                from = in(reg) from.as_ptr(),
                to = in(reg) to.as_mut_ptr(),
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
#[inline(always)]
fn copy_step(from: &[AtomicU64; STEP], to: &mut [u64; STEP]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
}

/// As [`copy_out`]; gives the exclusive or of the words copied.
#[inline]
fn copy_in(from: &[u64], to: &[AtomicU64]) -> u64 {
    let (steps, rest) = to.as_chunks::<8>();
    let (from_steps, from_rest) = from.as_chunks::<8>();
    let mut xor = 0;
    for (to, from) in steps.iter().zip(from_steps) {
        for i in (0..8).step_by(2) {
            to[i].store(from[i], Ordering::Relaxed);
            to[i + 1].store(from[i + 1], Ordering::Relaxed);
            xor = known(xor ^ from[i] ^ from[i + 1]);
        }
    }
    for (to, from) in rest.iter().zip(from_rest) {
        to.store(*from, Ordering::Relaxed);
        xor ^= from;
    }
    xor
}

/// The same value, made before anything after this call: compilers put a sum off until all its words are loaded, which
/// takes more registers than there are.
#[inline(always)]
fn known(mut value: u64) -> u64 {
    // SAFETY: the text is a comment to the assembler: no instruction, so nothing but `value` is used, and that as it is.
    unsafe { std::arch::asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// The exclusive or of some words: what records and entries are checked by. A wrong bit, or byte, always shows in it.
#[inline]
pub fn xor(words: &[u64]) -> u64 {
    // Most records are short, and a loop would cost more than its work.
    if words.len() < 16 { xor_short(words) } else { xor_long(words) }
}

/// Of fewer than 16 words. Two sums, one for each half of a vector.
#[inline]
fn xor_short(words: &[u64]) -> u64 {
    let (mut even, mut odd, mut rest) = (0, 0, words);
    if let Some((w, after)) = rest.split_first_chunk::<8>() {
        even = (w[0] ^ w[2]) ^ (w[4] ^ w[6]);
        odd = (w[1] ^ w[3]) ^ (w[5] ^ w[7]);
        rest = after;
    }
    if let Some((w, after)) = rest.split_first_chunk::<4>() {
        even ^= w[0] ^ w[2];
        odd ^= w[1] ^ w[3];
        rest = after;
    }
    rest.iter().fold(even ^ odd, |xor, word| xor ^ word)
}

/// Not inlined: compilers make a vector loop of it that is far larger than all that surrounds a call.
#[inline(never)]
fn xor_long(words: &[u64]) -> u64 {
    words.iter().fold(0, |xor, word| xor ^ word)
}

/// Asks for the line with the word `ahead` words behind the start of some private words, if that is known how to do
/// here. It may lie beyond them: nothing is read.
#[inline(always)]
pub(crate) fn prefetch(words: &[u64], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = words.as_ptr().wrapping_add(ahead);
        // SAFETY: a hint about an address, which need not be mapped; every x86_64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, ahead);
}

/// Private words, all 0: the same protocol without a mapping.
pub fn heap_words(len: usize) -> MappedWords {
    let words: Box<[AtomicU64]> = (0..len).map(|_| AtomicU64::new(0)).collect();
    let words = Arc::new(words);
    let base = NonNull::from(&words[..]).cast::<u8>();
    // SAFETY: the boxed slice has `len` aligned words and lives as long as the Arc that is handed over.
    unsafe { MappedWords::new(base, len, Some(words)) }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Lengths on both sides of every step.
    #[test]
    fn each_wrong_byte_shows_in_the_check_of_any_length_and_each_word_is_copied() {
        for len in 0..70usize {
            let mut words: Vec<u64> = (0..len as u64).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let right = words.iter().fold(0, |all, word| all ^ word);
            assert_eq!(xor(&words), right);
            let shared = heap_words(len + 1);
            shared.store_headed(0, &words, |all| all);
            assert_eq!(shared.load(0, Ordering::Relaxed), right);
            let mut copy = vec![0; len];
            shared.load_all(1, &mut copy);
            assert_eq!(copy, words);
            for at in 0..len {
                words[at] ^= 0x40 << (at % 8 * 8);
                assert_ne!(xor(&words), right, "word {at} of {len}");
                words[at] ^= 0x40 << (at % 8 * 8);
            }
        }
    }
}
