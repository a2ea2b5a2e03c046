//! The running statistics of one kernel.

use super::snapshot::KernelRow;
use super::timing::Timing;
use gputap_ringbuf::event::KernelEvent;
use hdrhistogram::Histogram;

/// Two significant digits: a quantile is within 1 % of the true value.
pub const SIGNIFICANT_DIGITS: u8 = 2;
/// Longer durations count as this long in the quantiles (73 minutes); total, minimum and maximum stay exact.
pub const QUANTILE_MAX_NS: u64 = 1 << 42;

/// Calls and durations of one kernel, in bounded memory.
#[derive(Clone, Debug)]
pub struct KernelStats {
    calls: u64,
    flagged: u64,
    total_ns: u64,
    min_ns: u64,
    max_ns: u64,
    /// Grows with the longest duration: 1 KiB for microseconds, 34 KiB at [`QUANTILE_MAX_NS`]. Absent until the first.
    durations: Option<Box<Histogram<u64>>>,
    latest: KernelEvent,
    shape_varies: bool,
}

impl Default for KernelStats {
    fn default() -> Self {
        KernelStats {
            calls: 0,
            flagged: 0,
            total_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            durations: None,
            latest: KernelEvent::default(),
            shape_varies: false,
        }
    }
}

impl KernelStats {
    /// Counts one call, and its duration where `timing` is good.
    #[inline]
    pub fn count(&mut self, kernel: &KernelEvent, timing: Timing) {
        if self.calls > 0 && (kernel.grid != self.latest.grid || kernel.block != self.latest.block) {
            self.shape_varies = true;
        }
        self.calls = self.calls.saturating_add(1);
        if kernel.start_ns >= self.latest.start_ns {
            self.latest = *kernel;
        }
        let Some(duration_ns) = timing.duration_ns() else {
            self.flagged = self.flagged.saturating_add(1);
            return;
        };
        self.total_ns = self.total_ns.saturating_add(duration_ns);
        self.min_ns = self.min_ns.min(duration_ns);
        self.max_ns = self.max_ns.max(duration_ns);
        if self.durations.is_none() {
            self.durations = new_histogram();
        }
        if let Some(durations) = &mut self.durations {
            // Fails only above the largest u64 that a histogram can hold, far above the bound.
            let _ = durations.record(duration_ns.min(QUANTILE_MAX_NS));
        }
    }

    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Calls with good times.
    pub fn timed(&self) -> u64 {
        self.calls.saturating_sub(self.flagged)
    }

    /// Of all calls with good times.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// Whether it was launched with more than one grid or block.
    pub fn shape_varies(&self) -> bool {
        self.shape_varies
    }

    /// Adds the calls of `other`, of another process, say.
    pub fn merge(&mut self, other: &KernelStats) {
        if other.calls == 0 {
            return;
        }
        let same = other.latest.grid == self.latest.grid && other.latest.block == self.latest.block;
        self.shape_varies |= other.shape_varies || (self.calls > 0 && !same);
        self.calls = self.calls.saturating_add(other.calls);
        self.flagged = self.flagged.saturating_add(other.flagged);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        if other.latest.start_ns >= self.latest.start_ns {
            self.latest = other.latest;
        }
        match (&mut self.durations, &other.durations) {
            // Both grow as they need to, and have the same precision.
            (Some(durations), Some(others)) => drop(durations.add(&**others)),
            (durations @ None, others) => durations.clone_from(others),
            (Some(_), None) => {}
        }
    }

    /// The row without its names; `share` is of `all_kernels_ns`.
    pub fn row(&self, all_kernels_ns: u64) -> KernelRow {
        let timed = self.calls.saturating_sub(self.flagged);
        let ratio = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        KernelRow {
            calls: self.calls,
            flagged: self.flagged,
            total_ns: self.total_ns,
            min_ns: if timed == 0 { 0 } else { self.min_ns },
            max_ns: self.max_ns,
            mean_ns: ratio(self.total_ns, timed),
            p50_ns: self.quantile(0.50),
            p99_ns: self.quantile(0.99),
            share: ratio(self.total_ns, all_kernels_ns),
            grid: self.latest.grid,
            block: self.latest.block,
            registers_per_thread: self.latest.registers_per_thread,
            static_shared_bytes: self.latest.static_shared_bytes,
            dynamic_shared_bytes: self.latest.dynamic_shared_bytes,
            last_end_ns: self.latest.end_ns,
            ..Default::default()
        }
    }

    fn quantile(&self, quantile: f64) -> u64 {
        let Some(durations) = &self.durations else { return 0 };
        durations.value_at_quantile(quantile).clamp(self.min_ns, self.max_ns)
    }
}

/// Grows by itself. None only if the constant were out of the constructor's range.
fn new_histogram() -> Option<Box<Histogram<u64>>> {
    Histogram::new(SIGNIFICANT_DIGITS).ok().map(Box::new)
}
