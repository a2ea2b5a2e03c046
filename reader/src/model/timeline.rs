//! How busy streams were, column by column: what a timeline shows.

use serde::Serialize;

/// What a stream can be busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A kernel that is no collective.
    Compute,
    /// A kernel of NCCL or the like, in which processes meet and wait for each other.
    Collective,
    Copy,
    Set,
}

/// Sorts of work.
pub const WORKS: usize = 4;

impl Work {
    pub const ALL: [Work; WORKS] = [Work::Compute, Work::Collective, Work::Copy, Work::Set];

    pub fn name(self) -> &'static str {
        match self {
            Work::Compute => "kernels",
            Work::Collective => "collectives",
            Work::Copy => "copies",
            Work::Set => "sets",
        }
    }

    /// Of a kernel, by its mangled name. Collectives that are done by copies alone are not known for what they are.
    pub fn of_kernel(mangled: &[u8]) -> Work {
        const MARKS: [&[u8]; 10] = [
            b"nccl",
            b"nvshmem",
            b"allreduce",
            b"all_reduce",
            b"allgather",
            b"all_gather",
            b"reducescatter",
            b"reduce_scatter",
            b"alltoall",
            b"cross_device_reduce",
        ];
        /// A name is given once, but may be long.
        const LOOKED_AT: usize = 512;
        let start = mangled[..mangled.len().min(LOOKED_AT)].to_ascii_lowercase();
        let has = |mark: &&[u8]| start.windows(mark.len()).any(|window| window == *mark);
        if MARKS.iter().any(has) { Work::Collective } else { Work::Compute }
    }
}

/// What to look at: `columns` of `column_ns` each, up to `end_ns` of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stretch {
    pub end_ns: u64,
    pub column_ns: u64,
    pub columns: u64,
}

impl Stretch {
    pub fn span_ns(self) -> u64 {
        self.column_ns.saturating_mul(self.columns)
    }

    pub fn from_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.span_ns())
    }

    /// The nearest that buckets of `fine_ns`, or where they do not reach of `coarse_ns`, can show: columns of whole
    /// buckets that begin at multiples of their width, so that a picture that moves on does so by whole columns.
    pub(super) fn kept_to_buckets(self, fine_ns: u64, coarse_ns: u64, fine: u64, coarse: u64) -> Stretch {
        let column_ns = self.column_ns.clamp(fine_ns, coarse_ns * coarse);
        let is_fine = column_ns < coarse_ns && column_ns.saturating_mul(self.columns) <= fine_ns * fine;
        let (bucket_ns, buckets) = if is_fine { (fine_ns, fine) } else { (coarse_ns, coarse) };
        let column_ns = column_ns.div_ceil(bucket_ns) * bucket_ns;
        let end_ns = self.end_ns / column_ns * column_ns;
        let columns = self.columns.min(bucket_ns * buckets / column_ns).min(end_ns / column_ns);
        Stretch { end_ns, column_ns, columns }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// What is shown, which may be less than was asked for.
    pub stretch: Stretch,
    /// In the order of devices, contexts and streams.
    pub rows: Vec<TimelineRow>,
    /// Pieces of work of streams that found no room.
    pub not_shown: u64,
}

/// One stream.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TimelineRow {
    pub device_id: u32,
    pub context_id: u32,
    pub stream_id: u32,
    /// Oldest first.
    pub slices: Vec<Slice>,
    /// Of the whole stretch.
    pub shares: WorkShares,
}

/// One column of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Slice {
    /// By [`Work`], each from 0 to 1.
    pub shares: [f32; WORKS],
}

impl Slice {
    pub(super) fn of(busy_ns: [u64; WORKS], width_ns: u64) -> Slice {
        Slice { shares: busy_ns.map(|busy_ns| busy_ns as f32 / width_ns.max(1) as f32) }
    }

    pub fn busy(self) -> f32 {
        self.shares.iter().sum::<f32>().min(1.0)
    }

    /// What there was most of, where there was anything.
    pub fn main(self) -> Option<Work> {
        let shares = Work::ALL.into_iter().map(|work| (work, self.shares[work as usize]));
        let most = shares.fold(None, |most: Option<(Work, f32)>, (work, share)| match most {
            Some((_, best)) if best >= share => most,
            _ => Some((work, share)),
        });
        most.filter(|&(_, share)| share > 0.0).map(|(work, _)| work)
    }
}

/// Shares of a time, streams added up: two streams that are busy all the time make 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WorkShares {
    pub compute: f64,
    pub collective: f64,
    pub copy: f64,
    pub set: f64,
}

impl WorkShares {
    pub(super) fn of(busy_ns: [u64; WORKS], span_ns: u64) -> WorkShares {
        let [compute, collective, copy, set] = busy_ns.map(|busy_ns| busy_ns as f64 / span_ns.max(1) as f64);
        WorkShares { compute, collective, copy, set }
    }

    pub fn busy(&self) -> f64 {
        self.compute + self.collective + self.copy + self.set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_are_known_by_name() {
        assert_eq!(Work::of_kernel(b"_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24"), Work::Collective);
        assert_eq!(Work::of_kernel(b"_ZN4vllm19cross_device_reduceI6__halfEEv"), Work::Collective);
        assert_eq!(Work::of_kernel(b"ampere_bf16_s16816gemm"), Work::Compute);
        assert_eq!(Work::of_kernel(b""), Work::Compute);
    }

    #[test]
    fn a_slice_is_what_it_has_most_of() {
        assert_eq!(Slice::default().main(), None);
        assert_eq!(Slice { shares: [0.2, 0.0, 0.3, 0.1] }.main(), Some(Work::Copy));
        assert_eq!(Slice { shares: [0.2, 0.2, 0.0, 0.0] }.main(), Some(Work::Compute), "the first of equals");
    }
}
