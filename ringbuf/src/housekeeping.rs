//! What the writer's own timer thread does for the segment, so that no callback has to: reserving room ahead of the
//! writers, in small steps, and freeing the lanes of threads that are gone.

use crate::{
    backing::reserve::{ReserveError, Reserver},
    layout::PAGE_BYTES,
    store::writer::StoreWriter,
    tap::TapWriter,
    words::Words,
};

/// How far ahead of the writers room is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    pub lanes: usize,
    pub cubin_bytes: u64,
    pub definition_bytes: u64,
    /// At most this much is reserved in one step, rounded up to [`PAGE_BYTES`].
    pub step_bytes: u64,
}

impl Ahead {
    /// Two lanes, 64 MiB of cubins (the largest module of a PyTorch run has tens of MB), 1 MiB of definitions.
    pub const DEFAULT: Ahead =
        Ahead { lanes: 2, cubin_bytes: 64 << 20, definition_bytes: 1 << 20, step_bytes: 8 << 20 };
}

/// Reserves and frees. Owned by one thread.
pub struct Housekeeper {
    reserver: Reserver,
    ahead: Ahead,
}

/// What one step did.
#[derive(Debug)]
pub enum Step {
    /// There is as much room ahead as there should be.
    Enough,
    /// Room was reserved; there may be more to do.
    Reserved,
    /// The room wanted could not be had; what is reserved stays.
    Short(ReserveError),
}

impl Housekeeper {
    pub fn new(reserver: Reserver, ahead: Ahead) -> Housekeeper {
        Housekeeper { reserver, ahead }
    }

    pub fn reserved_bytes(&self) -> u64 {
        self.reserver.reserved_bytes()
    }

    /// Ends housekeeping and gives back what it reserved with.
    pub fn into_reserver(self) -> Reserver {
        self.reserver
    }

    /// Reserves the next piece of what is missing, the most urgent first. What there is no room for does not keep
    /// smaller wants from being met.
    pub fn step<W: Words>(&mut self, tap: &TapWriter<W>) -> Step {
        let layout = tap.layout();
        let definitions = (&tap.definitions.store, layout.definitions, self.ahead.definition_bytes);
        let cubins = (&tap.cubins.store, layout.cubins, self.ahead.cubin_bytes);
        let mut result = self.add_lane(tap);
        for (store, start_word, ahead_bytes) in [definitions, cubins] {
            if matches!(result, Step::Reserved) {
                break;
            }
            match (self.extend(store, start_word as u64 * 8, ahead_bytes), &result) {
                (Step::Enough, _) | (Step::Short(_), Step::Short(_)) => {}
                (done, _) => result = done,
            }
        }
        result
    }

    fn add_lane<W: Words>(&mut self, tap: &TapWriter<W>) -> Step {
        let Some(lane) = tap.directory.wants_reservation(self.ahead.lanes) else { return Step::Enough };
        let (layout, size_bytes) = (tap.layout(), tap.layout().sizes.lane_words as u64 * 8);
        match self.reserver.reserve(layout.lane_data(lane) as u64 * 8, size_bytes) {
            Ok(()) => {
                tap.directory.lane_reserved(lane);
                Step::Reserved
            }
            Err(error) => Step::Short(error),
        }
    }

    fn extend<W: Words>(&mut self, store: &StoreWriter<W>, start_bytes: u64, ahead_bytes: u64) -> Step {
        let reserved = store.reserved_bytes();
        let wanted = store.used_bytes().saturating_add(ahead_bytes).min(store.capacity_bytes());
        let missing = wanted.saturating_sub(reserved);
        let step = missing.min(self.ahead.step_bytes);
        let page = PAGE_BYTES as u64;
        // Small remainders wait until a step is worth a system call.
        let worth_it = missing >= (ahead_bytes / 16).max(page).min(ahead_bytes) || wanted == store.capacity_bytes();
        if step == 0 || !worth_it {
            return Step::Enough;
        }
        let step = step.next_multiple_of(page).min(store.capacity_bytes().saturating_sub(reserved));
        match self.reserver.reserve(start_bytes + reserved, step) {
            Ok(()) => {
                store.set_reserved(reserved + step);
                Step::Reserved
            }
            Err(error) => Step::Short(error),
        }
    }

    /// Frees the lanes of threads that `is_gone` says no longer exist.
    pub fn free_lanes<W: Words>(&mut self, tap: &TapWriter<W>, is_gone: impl Fn(u64) -> bool) -> usize {
        tap.free_lanes(is_gone)
    }
}
