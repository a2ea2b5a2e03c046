//! Counters of the shim, each on a cache line of its own, raised by any thread.

use crate::{
    layout::{COUNTER_LINES, COUNTERS, LINE},
    sync::Ordering,
    words::{ReadWords, Words},
};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// What the shim counts. The number is part of the ABI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Counter { $($(#[$doc])* $name = $number,)* }

        impl Counter {
            pub const ALL: &[Counter] = &[$(Counter::$name,)*];

            /// A stable name for screens and files.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$name => $text,)* }
            }
        }
    };
}

counters! {
    /// Records lost because no reserved lane was free for the thread.
    NoLane = 0, "no_lane";
    /// Records lost because the write came from inside another write of the same thread.
    Nested = 1, "nested";
    /// Records that CUPTI said it dropped.
    CuptiDropped = 2, "cupti_dropped";
    /// Records of a kind that was never asked for; not events, not lost.
    UnknownRecords = 3, "unknown_records";
    /// Kernel names that found no room in the definitions; their events are delivered without a name.
    NamesLost = 4, "names_lost";
    /// Module loads that reached the shim.
    ModuleLoads = 5, "module_loads";
    /// Of these, loads of a cubin that the store already had.
    ModuleDuplicates = 6, "module_duplicates";
    /// Of these, refused: the store's cap is reached.
    ModulesFull = 7, "modules_full";
    /// Of these, refused: more than was reserved at that instant.
    ModulesNotReserved = 8, "modules_not_reserved";
    /// Of these, refused: too many threads at the same instant.
    ModulesContended = 9, "modules_contended";
    /// Bytes of the cubins stored.
    CubinBytes = 10, "cubin_bytes";
    /// Nanoseconds spent in the module-loaded callback.
    ModuleCallbackNs = 11, "module_callback_ns";
    /// Times that the shim was unsubscribed (yielded): modules loaded meanwhile are unknown.
    YieldGaps = 12, "yield_gaps";
    /// Buffers given to CUPTI to be thrown away, because the pool was empty, and places in others that could not be read:
    /// what was in them is unknown.
    PoolEmpty = 13, "pool_empty";
    /// Kernel records without an end.
    Unfinished = 14, "unfinished";
    Flushes = 15, "flushes";
    FlushNs = 16, "flush_ns";
    /// The longest flush in nanoseconds; written by the timer thread only.
    FlushMaxNs = 17, "flush_max_ns";
    BuffersCompleted = 18, "buffers_completed";
    /// Nanoseconds spent in buffer-completed callbacks.
    CompletedNs = 19, "completed_ns";
    /// CUPTI calls of the timer thread that failed.
    CuptiErrors = 20, "cupti_errors";
    /// Panics caught at the door: a defect of ours.
    Panics = 21, "panics";
    /// The longest module-loaded callback in nanoseconds.
    ModuleCallbackMaxNs = 22, "module_callback_max_ns";
    /// Records without a start: CUPTI had no time for them.
    ZeroTimes = 23, "zero_times";
    /// Records that end before they start.
    NegativeTimes = 24, "negative_times";
    /// Launches counted, while it is not known whether CUPTI delivers records here.
    LaunchesSeen = 25, "launches_seen";
    /// Records of kinds that nobody wanted any more when they came: CUPTI keeps some kinds on. Not events, not lost.
    Unwanted = 26, "unwanted";
    /// Times that the wall clock was set while CUPTI's records follow it.
    ClockSteps = 27, "clock_steps";
    /// Records near such a step, whose time may be off by as much as the clock was set.
    ClockDoubtful = 28, "clock_doubtful";
}

impl Counter {
    /// Counters that are records lost before they reached a lane.
    pub const LOST: [Counter; 3] = [Counter::NoLane, Counter::Nested, Counter::CuptiDropped];

    fn word(self) -> usize {
        const { assert!(Counter::ALL.len() <= COUNTER_LINES) };
        COUNTERS + self as usize * LINE
    }

    pub fn add<W: Words>(self, words: &W, count: u64) {
        words.fetch_add(self.word(), count, Ordering::Relaxed);
    }

    /// Raises the counter to `value` if it is below; two threads at once may leave the smaller of theirs.
    pub fn raise_to<W: Words>(self, words: &W, value: u64) {
        if words.load(self.word(), Ordering::Relaxed) < value {
            words.store(self.word(), value, Ordering::Relaxed);
        }
    }

    pub fn read<R: ReadWords>(self, words: &R) -> u64 {
        words.load(self.word(), Ordering::Relaxed)
    }
}
