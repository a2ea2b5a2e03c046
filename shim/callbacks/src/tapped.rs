//! The one tap of this process, as callbacks see it: set once at start-up, before the first callback can come.

use crate::{
    clock::Clock, correlation::Correlations, details::Details, fork::ForkWord, names::LaneNames, pool::BufferPool,
    records::RecordApi,
};
use gputap_cupti::layout::Layouts;
use gputap_ringbuf::{
    event::{EventKind, NO_NAME},
    tap::{Lane, TapWriter},
};
use std::{
    cell::UnsafeCell,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering},
};

/// What `cuptiGetVersion` says of CUDA 12.9 update 1.
const CUDA_12_9: u32 = 28;

/// Everything that callbacks use.
pub struct Tapped {
    pub tap: TapWriter,
    pub records: RecordApi,
    pub layouts: Layouts,
    pub pool: BufferPool,
    pub fork: ForkWord,
    pub clock: Clock,
    pub correlations: Correlations,
    pub details: Details,
    /// Kinds that somebody wants, a mask of `EventKind::bit`s: CUPTI goes on delivering those that are never switched off.
    wanted: AtomicU64,
    /// A record of a kernel or a graph has come.
    work_seen: AtomicBool,
    names: Box<[UnsafeCell<LaneNames>]>,
    /// CUPTI may be given no buffer, and counts what it then drops: from 12.9 on. Before, it crashes.
    pub may_refuse_buffers: bool,
}

// SAFETY: every field but `names` is Sync by itself; a table of `names` is only reached through an entered lane, which
// one thread has at a time.
unsafe impl Sync for Tapped {}
// SAFETY: nothing in it is tied to a thread.
unsafe impl Send for Tapped {}

impl Tapped {
    pub fn new(
        tap: TapWriter,
        records: RecordApi,
        layouts: Layouts,
        pool: BufferPool,
        fork: ForkWord,
        cupti_version: u32,
    ) -> Tapped {
        let lanes = tap.layout().sizes.lanes;
        let names = (0..lanes).map(|_| UnsafeCell::new(LaneNames::default())).collect();
        let may_refuse_buffers = cupti_version >= CUDA_12_9;
        Tapped {
            tap,
            records,
            layouts,
            pool,
            fork,
            clock: Clock::default(),
            correlations: Correlations::default(),
            details: Details::default(),
            wanted: AtomicU64::new(0),
            work_seen: AtomicBool::new(false),
            names,
            may_refuse_buffers,
        }
    }

    /// Timer thread: from now on events of these kinds are wanted.
    pub fn want(&self, kinds: u64) {
        self.wanted.store(kinds, Ordering::Relaxed);
    }

    /// Whether an event of this kind is to be written. Kernels and graphs always are: CUPTI delivers them only where they
    /// were asked for, though perhaps a little later.
    pub fn wants(&self, kind: EventKind) -> bool {
        matches!(kind, EventKind::Kernel | EventKind::Graph) || self.wanted.load(Ordering::Relaxed) & kind.bit() != 0
    }

    /// CUPTI delivers records of the device's work.
    pub(crate) fn see_work(&self) {
        self.work_seen.store(true, Ordering::Relaxed);
    }

    /// Timer thread: whether it ever has.
    pub fn has_seen_work(&self) -> bool {
        self.work_seen.load(Ordering::Relaxed)
    }

    /// The slot of a kernel's name in the definitions, for the thread that has entered `lane`.
    pub fn kernel_name(&self, lane: &mut Lane<'_>, name: &[u8]) -> u32 {
        self.names_of(lane).map_or(NO_NAME, |names| names.kernel(&self.tap, name))
    }

    /// The slot of another text.
    pub fn text(&self, lane: &mut Lane<'_>, text: &[u8]) -> u32 {
        self.names_of(lane).map_or(NO_NAME, |names| names.text(&self.tap, text))
    }

    fn names_of<'a>(&'a self, lane: &'a mut Lane<'_>) -> Option<&'a mut LaneNames> {
        let names = self.names.get(lane.index())?;
        // SAFETY: `lane` is entered by this thread alone, and borrowed exclusively as long as the names are.
        Some(unsafe { &mut *names.get() })
    }
}

static TAPPED: AtomicPtr<Tapped> = AtomicPtr::new(std::ptr::null_mut());

/// Start-up: from now on callbacks see this tap. It is never taken away.
pub fn install(tapped: Tapped) -> &'static Tapped {
    let tapped: &'static Tapped = Box::leak(Box::new(tapped));
    // SYNC: pairs with the Acquire load in `current`.
    TAPPED.store(std::ptr::from_ref(tapped).cast_mut(), Ordering::Release);
    tapped
}

/// The tap, if there is one and this is not a forked child of its process.
pub fn current() -> Option<&'static Tapped> {
    // SYNC: pairs with the Release store in `install`.
    let tapped = TAPPED.load(Ordering::Acquire);
    // SAFETY: null, or leaked by `install` and only ever shared.
    let tapped = unsafe { tapped.as_ref() }?;
    tapped.fork.is_original().then_some(tapped)
}
