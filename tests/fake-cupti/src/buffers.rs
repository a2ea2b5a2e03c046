//! The client's activity buffers while CUPTI has them.
//!
//! Guarantees: records lie in launch order (save by script), 8-byte aligned and packed; a buffer is given back exactly
//! once, by the worker or a completer, unless `cuptiFinalize` forgets it or a script has it kept; a record that finds no
//! room is counted. The lock here is never held while the driver lock is being waited for; the client's buffer-requested
//! callback runs under both.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::counters;
use crate::damage::damage;
use crate::draft::{self, Draft};
use crate::ids::realtime_ns;
use crate::settings::settings;
use crate::watch;
use crate::worker;

/// `CUpti_BuffersCallbackRequestFunc`.
pub type RequestFunc = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// `CUpti_BuffersCallbackCompleteFunc`.
pub type CompleteFunc = unsafe extern "C" fn(*mut std::ffi::c_void, u32, *mut u8, usize, usize);

/// The client's two callbacks.
#[derive(Clone, Copy)]
pub struct Client {
    pub request: RequestFunc,
    pub complete: CompleteFunc,
}

pub struct Buffer {
    pub at: *mut u8,
    pub size: usize,
    pub used: usize,
    records: u64,
    /// 0 for as many as fit.
    max_records: u64,
    /// When its last record is finished, on the device's clock.
    finished_ns: u64,
    /// From the device's clock to the client's, for all records in here.
    clock_offset_ns: i64,
}

// SAFETY: the client handed the memory over until it is completed; only the holder of the `Buffer` touches it.
unsafe impl Send for Buffer {}

pub struct Buffers {
    pub client: Option<Client>,
    current: Option<Buffer>,
    full: VecDeque<Buffer>,
    sequence: u64,
    taken: u64,
    clock_offset_ns: i64,
    /// A record that waits for the next one to be laid down before it.
    held_back: Option<Draft>,
}

/// Which buffers a pass of the worker may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Take {
    /// Full ones without an unfinished record.
    Full,
    /// The one being filled too, if it has no unfinished record.
    Partial,
    /// All.
    Forced,
}

static BUFFERS: Mutex<Buffers> = Mutex::new(Buffers {
    client: None,
    current: None,
    full: VecDeque::new(),
    sequence: 0,
    taken: 0,
    clock_offset_ns: 0,
    held_back: None,
});

static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How many records were dropped since the last question. Without the lock: clients ask in their callbacks, and a watcher
/// of locks would take ours for theirs.
pub fn take_dropped() -> u64 {
    DROPPED.swap(0, Ordering::Relaxed)
}

pub fn lock() -> MutexGuard<'static, Buffers> {
    BUFFERS.lock().unwrap_or_else(PoisonError::into_inner)
}

static COPIED: AtomicBool = AtomicBool::new(false);

/// Whether a copy was ever recorded in this process.
pub fn has_copied() -> bool {
    COPIED.load(Ordering::Relaxed)
}

/// A copy is being recorded.
pub fn note_copy() {
    COPIED.store(true, Ordering::Relaxed);
}

/// By how much a script has moved CUPTI's own clock so far.
static CLOCK_STEP_NS: AtomicI64 = AtomicI64::new(0);

pub fn clock_step_ns() -> i64 {
    CLOCK_STEP_NS.load(Ordering::Relaxed)
}

/// Lays a record down, on the thread that did what it tells of.
pub fn lay_down(draft: Draft) {
    if !settings().silent && lock().lay_down(draft) {
        worker::poke();
    }
}

impl Buffers {
    /// True if a buffer became full.
    fn lay_down(&mut self, mut draft: Draft) -> bool {
        let settings = settings();
        self.sequence += 1;
        let number = self.sequence;
        self.step_clock(number);
        if settings.drop.hits(number) {
            self.drop_record();
            return false;
        }
        draft.shift_times(self.clock_offset_ns);
        damage(&mut draft, number);
        if settings.swap.hits(number) && self.held_back.is_none() {
            self.held_back = Some(draft);
            return false;
        }
        let mut filled = self.append(&draft);
        if settings.duplicate.hits(number) {
            filled |= self.append(&draft);
        }
        filled | self.append_held_back()
    }

    fn append_held_back(&mut self) -> bool {
        self.held_back.take().is_some_and(|draft| self.append(&draft))
    }

    fn append(&mut self, draft: &Draft) -> bool {
        let size = draft.size();
        let filled = self.retire_current_if(|buffer| !buffer.has_room(size));
        if self.current.is_none() {
            self.current = self.request(size);
        }
        match &mut self.current {
            Some(buffer) => buffer.append(draft),
            None => self.drop_record(),
        }
        filled
    }

    /// Moves CUPTI's clock at the record that a script names. A client's own clock stays.
    fn step_clock(&mut self, number: u64) {
        if let Some((at, step_ns)) = settings().clock_step
            && at == number
            && !crate::ids::has_client_clock()
        {
            CLOCK_STEP_NS.store(step_ns, Ordering::Relaxed);
            self.set_clock_offset(self.clock_offset_ns + step_ns);
        }
    }

    fn drop_record(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
        counters::RECORDS_DROPPED.add(1);
    }

    fn retire_current_if(&mut self, condition: impl FnOnce(&Buffer) -> bool) -> bool {
        match self.current.take() {
            Some(buffer) if condition(&buffer) => {
                self.full.push_back(buffer);
                true
            }
            other => {
                self.current = other;
                false
            }
        }
    }

    /// Asks the client for a buffer with room for `needed` bytes.
    fn request(&mut self, needed: usize) -> Option<Buffer> {
        let client = self.client?;
        let (mut at, mut size, mut max_records) = (std::ptr::null_mut(), 0, 0);
        // SAFETY: the client registered the function for this use; the three places may be written.
        watch::during(watch::BUFFERS, || unsafe { (client.request)(&raw mut at, &raw mut size, &raw mut max_records) });
        if at.is_null() {
            if settings().null_buffer_crashes() {
                eprintln!("fake-cupti: the client returned a null buffer, which crashes CUPTI before 12.9");
                std::process::abort();
            }
            return None;
        }
        counters::BUFFERS_REQUESTED.add(1);
        let buffer = Buffer {
            at,
            size,
            used: 0,
            records: 0,
            max_records: max_records as u64,
            finished_ns: 0,
            clock_offset_ns: self.clock_offset_ns,
        };
        if size < needed || !at.addr().is_multiple_of(8) {
            // Of no use: goes back empty.
            self.full.push_back(buffer);
            worker::poke();
            return None;
        }
        Some(buffer)
    }

    /// The buffers that may be completed at `now_ns`, oldest first.
    pub fn take(&mut self, which: Take, now_ns: u64) -> Vec<Buffer> {
        if which != Take::Full {
            self.append_held_back();
            let ready = |b: &Buffer| b.used > 0 && (which == Take::Forced || b.finished_ns <= now_ns);
            self.retire_current_if(ready);
        }
        let may_go = |b: &Buffer| which == Take::Forced || b.finished_ns <= now_ns;
        let (mut taken, kept): (Vec<_>, Vec<_>) = self.full.drain(..).partition(may_go);
        self.full.extend(kept);
        taken.retain(|buffer| self.may_return(buffer));
        if which == Take::Forced {
            taken.iter_mut().for_each(|buffer| buffer.clear_unfinished(now_ns));
        }
        taken
    }

    /// False for a buffer that a script has CUPTI keep for ever.
    fn may_return(&mut self, buffer: &Buffer) -> bool {
        self.taken += 1;
        let kept = settings().keep_buffer.hits(self.taken);
        if kept {
            counters::BUFFERS_KEPT.add(1);
            counters::RECORDS_KEPT.add(buffer.records);
        }
        !kept
    }

    /// When the next full buffer will be finished.
    pub fn next_finish_ns(&self) -> Option<u64> {
        self.full.iter().map(|buffer| buffer.finished_ns).min()
    }

    /// Later records carry the client's clock.
    pub fn set_clock_offset(&mut self, offset_ns: i64) {
        self.retire_current_if(|_| true);
        self.clock_offset_ns = offset_ns;
    }

    /// Lets go of everything, without giving anything back.
    pub fn forget(&mut self) {
        self.append_held_back();
        for buffer in self.full.drain(..).chain(self.current.take()) {
            counters::BUFFERS_FORGOTTEN.add(1);
            counters::RECORDS_FORGOTTEN.add(buffer.records);
        }
        self.client = None;
        take_dropped();
        self.clock_offset_ns = clock_step_ns();
    }
}

impl Buffer {
    fn has_room(&self, size: usize) -> bool {
        self.size - self.used >= size && (self.max_records == 0 || self.records < self.max_records)
    }

    /// Writes one record, for which there is room.
    fn append(&mut self, draft: &Draft) {
        let bytes = draft.bytes();
        // SAFETY: `has_room` said that the bytes fit behind `used`, in the client's memory, which is ours until
        // completed; the draft is memory of our own.
        unsafe { self.at.add(self.used).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.used += bytes.len();
        self.records += 1;
        self.finished_ns = self.finished_ns.max(draft.finished_ns);
        counters::RECORDS_WRITTEN.add(1);
    }

    /// Gives records that are not finished at `now_ns` zero times.
    fn clear_unfinished(&mut self, now_ns: u64) {
        if self.finished_ns <= now_ns {
            return;
        }
        let now = now_ns.saturating_add_signed(self.clock_offset_ns);
        let mut offset = 0;
        while offset < self.used {
            // SAFETY: records were laid down from the start to `used` without gaps, so one begins at `offset`.
            let at = unsafe { self.at.add(offset) };
            // SAFETY: as above; every record begins with its kind.
            let kind = unsafe { at.cast::<u32>().read() };
            // SAFETY: as above.
            if unsafe { draft::end_of(kind, at) } > now {
                // SAFETY: as above, and the buffer is ours alone.
                unsafe { draft::clear_times(kind, at) };
                counters::RECORDS_UNFINISHED.add(1);
            }
            offset += settings().sizes.of_kind(kind).unwrap_or(self.used);
        }
    }

    /// Gives the buffer back to its client.
    pub fn complete(self, client: &Client) {
        // SAFETY: the client registered the function for this use, and the memory is the one it handed out.
        watch::during(0, || unsafe { (client.complete)(std::ptr::null_mut(), 0, self.at, self.size, self.used) });
        // Counted once the client has seen them, so that a test may wait for the count.
        counters::RECORDS_DELIVERED.add(self.records);
        counters::BUFFERS_COMPLETED.add(1);
    }
}

/// The client and the buffers that a pass of the worker gives back to it now.
pub fn take(which: Take) -> (Option<Client>, Vec<Buffer>) {
    let mut buffers = lock();
    (buffers.client, buffers.take(which, realtime_ns()))
}
