//! The buffers that CUPTI fills with records. A fixed region of equal buffers; taking and giving back is one exchange
//! on a flag, bounded by the number of buffers. The timer thread prepares (touches) buffers ahead of their use.

use std::{
    ptr::NonNull,
    sync::atomic::{AtomicU8, AtomicUsize, Ordering},
};

/// 128 KiB: an event of a job that does not synchronize reaches the reader in tens of milliseconds (a buffer is
/// withheld while it holds an unfinished record), and a flush is short.
pub const BUFFER_BYTES: usize = 128 << 10;
/// 64 MiB that CUPTI can hold between two flushes.
const BUFFERS: usize = 512;

const UNPREPARED: u8 = 0;
const FREE: u8 = 1;
const TAKEN: u8 = 2;

/// Buffers for CUPTI.
pub struct BufferPool {
    region: NonNull<u8>,
    states: Box<[AtomicU8]>,
    /// Where the next search begins.
    next: AtomicUsize,
    free: AtomicUsize,
}

// SAFETY: the region is never unmapped; a buffer belongs to whoever moved its state to TAKEN.
unsafe impl Send for BufferPool {}
// SAFETY: as for Send.
unsafe impl Sync for BufferPool {}

impl BufferPool {
    /// Maps the region; touches nothing yet. `None` where there is no address space for it.
    pub fn new() -> Option<BufferPool> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // One more: the spare.
        let len = (BUFFERS + 1) * BUFFER_BYTES;
        // SAFETY: an anonymous mapping at an address that the kernel chooses disturbs nothing.
        let region = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags | libc::MAP_NORESERVE, -1, 0) };
        if region == libc::MAP_FAILED {
            return None;
        }
        let states = (0..BUFFERS).map(|_| AtomicU8::new(UNPREPARED)).collect();
        let region = NonNull::new(region.cast())?;
        Some(BufferPool { region, states, next: AtomicUsize::new(0), free: AtomicUsize::new(0) })
    }

    fn buffer(&self, index: usize) -> *mut u8 {
        // SAFETY: index <= BUFFERS, and the region has BUFFERS + 1 buffers.
        unsafe { self.region.as_ptr().add(index.min(BUFFERS) * BUFFER_BYTES) }
    }

    /// A buffer for CUPTI to fill, a prepared one if there is one; `None` where all are taken.
    pub fn take(&self) -> Option<*mut u8> {
        let prepared = self.take_in_state(FREE);
        if prepared.is_some() {
            self.free.fetch_sub(1, Ordering::Relaxed);
        }
        // A cold buffer costs CUPTI page faults, but no record.
        prepared.or_else(|| self.take_in_state(UNPREPARED))
    }

    fn take_in_state(&self, wanted: u8) -> Option<*mut u8> {
        let start = self.next.load(Ordering::Relaxed);
        for step in 0..BUFFERS {
            let index = (start + step) % BUFFERS;
            // A look is cheap, an exchange is not: with all buffers out, an application's thread comes by here.
            if self.states[index].load(Ordering::Relaxed) != wanted {
                continue;
            }
            // SYNC: pairs with the Release store of FREE by `prepare` and `give_back`.
            let taken = self.states[index].compare_exchange(wanted, TAKEN, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                self.next.store(index + 1, Ordering::Relaxed);
                return Some(self.buffer(index));
            }
        }
        None
    }

    /// A buffer whose records are thrown away, for when all are taken: CUPTI before 12.9 crashes on a null one.
    pub fn spare(&self) -> *mut u8 {
        self.buffer(BUFFERS)
    }

    /// Whether this is the spare, which several requests may have shared: its contents mean nothing.
    pub fn is_spare(&self, buffer: *mut u8) -> bool {
        buffer == self.spare()
    }

    /// Takes a buffer back from CUPTI.
    pub fn give_back(&self, buffer: *mut u8) {
        let offset = (buffer as usize).wrapping_sub(self.region.as_ptr() as usize);
        if let Some(state) = self.states.get(offset / BUFFER_BYTES) {
            self.free.fetch_add(1, Ordering::Relaxed);
            // SYNC: pairs with the Acquire exchange in `take`: the records have been read.
            state.store(FREE, Ordering::Release);
        }
    }

    /// Timer thread: touches buffers until `ahead` are free. Makes system calls and page faults.
    pub fn prepare(&self, ahead: usize) {
        for (index, state) in self.states.iter().enumerate() {
            if self.free.load(Ordering::Relaxed) >= ahead {
                return;
            }
            if state.load(Ordering::Relaxed) != UNPREPARED {
                continue;
            }
            // Taken while it is touched: a callback must not get it half prepared.
            if state.compare_exchange(UNPREPARED, TAKEN, Ordering::Relaxed, Ordering::Relaxed).is_err() {
                continue;
            }
            for page in (0..BUFFER_BYTES).step_by(4096) {
                // SAFETY: inside the buffer, which is ours while it is taken.
                unsafe { self.buffer(index).add(page).write_volatile(0) };
            }
            self.free.fetch_add(1, Ordering::Relaxed);
            // SYNC: pairs with the Acquire exchange in `take`.
            state.store(FREE, Ordering::Release);
        }
    }

    /// Buffers that CUPTI holds or that are being read.
    pub fn taken(&self) -> usize {
        self.states.iter().filter(|s| s.load(Ordering::Relaxed) == TAKEN).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_buffer_goes_to_one_and_comes_back() {
        let pool = BufferPool::new().unwrap();
        pool.prepare(2);
        let (a, b) = (pool.take().unwrap(), pool.take().unwrap());
        assert_ne!(a, b);
        assert_eq!(pool.taken(), 2);
        pool.give_back(a);
        // Prepared ones first.
        assert_eq!(pool.take(), Some(a));
        assert!(pool.take().is_some_and(|cold| cold != a && cold != b));
    }

    #[test]
    fn the_pool_grows_to_its_bound_and_no_further() {
        let pool = BufferPool::new().unwrap();
        pool.prepare(3);
        let all: std::collections::HashSet<_> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!(all.len(), BUFFERS);
        assert!(!all.contains(&pool.spare()));
        assert!(pool.is_spare(pool.spare()));
        // Giving the spare back changes nothing.
        pool.give_back(pool.spare());
        assert_eq!(pool.take(), None);
    }
}
