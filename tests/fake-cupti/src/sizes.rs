//! How long the records of each version of CUPTI are, and where in them their times and names lie.

use std::mem::offset_of;

use crate::layout::{
    GraphTraceRecord, KIND_CONCURRENT_KERNEL, KIND_GRAPH_TRACE, KIND_KERNEL, KIND_MEMCPY, KIND_MEMCPY2, KIND_MEMSET,
    KernelRecord, MemcpyRecord, MemsetRecord, PeerCopyRecord,
};
use crate::layout_host::{
    ApiRecord, KIND_DRIVER, KIND_MARKER, KIND_MEMORY_POOL, KIND_MEMORY2, KIND_OVERHEAD, KIND_RUNTIME,
    KIND_SYNCHRONIZATION, MarkerRecord, MemoryPoolRecord, MemoryRecord, OverheadRecord, SynchronizationRecord,
};

/// A kind that no version has, for `FAKE_CUPTI_ALIEN_KIND_EVERY`.
pub const KIND_ALIEN: u32 = 999;
pub const ALIEN_BYTES: usize = 72;

/// How long each record is, in bytes. Kinds that are missing here have one size in all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub kernel: usize,
    pub memcpy: usize,
    pub memset: usize,
    pub graph_trace: usize,
    pub memory: usize,
    pub memory_pool: usize,
    pub overhead: usize,
    pub synchronization: usize,
}

impl Sizes {
    pub const CUDA_11_8: Self = Self {
        kernel: 200,
        memcpy: 88,
        memset: 88,
        graph_trace: 48,
        memory: 120,
        memory_pool: 72,
        overhead: 40,
        synchronization: 40,
    };
    const CUDA_12_1: Self = Self { kernel: 208, ..Self::CUDA_11_8 };
    const CUDA_12_3: Self = Self { graph_trace: 56, overhead: 48, ..Self::CUDA_12_1 };
    const CUDA_12_4: Self = Self { overhead: 56, ..Self::CUDA_12_3 };
    const CUDA_12_6: Self = Self { memory: 128, ..Self::CUDA_12_4 };
    const CUDA_12_8: Self = Self { memcpy: 96, synchronization: 56, ..Self::CUDA_12_6 };
    const CUDA_13_0: Self = Self { kernel: 216, memory_pool: 80, ..Self::CUDA_12_8 };
    const CUDA_13_1: Self = Self { kernel: 224, ..Self::CUDA_13_0 };
    const CUDA_13_3: Self = Self { kernel: 232, ..Self::CUDA_13_1 };
    const CUDA_13_4: Self = Self { kernel: 248, memcpy: 112, memset: 104, ..Self::CUDA_13_3 };

    /// By the number that `cuptiGetVersion` returns. 18 is shared by 11.8 and 12.1 and means 12.1 here; versions
    /// between those that were compared with headers take the earlier one's.
    pub fn of(version: u32) -> Self {
        match version {
            ..21 => Self::CUDA_12_1,
            21 => Self::CUDA_12_3,
            22..24 => Self::CUDA_12_4,
            24..26 => Self::CUDA_12_6,
            26..130_000 => Self::CUDA_12_8,
            130_000..130_100 => Self::CUDA_13_0,
            130_100..130_300 => Self::CUDA_13_1,
            130_300..130_400 => Self::CUDA_13_3,
            _ => Self::CUDA_13_4,
        }
    }

    /// The size of a record of `kind`, for the kinds that this library writes.
    pub fn of_kind(&self, kind: u32) -> Option<usize> {
        Some(match kind {
            KIND_KERNEL | KIND_CONCURRENT_KERNEL => self.kernel,
            KIND_MEMCPY => self.memcpy,
            KIND_MEMSET => self.memset,
            KIND_MEMCPY2 => size_of::<PeerCopyRecord>(),
            KIND_GRAPH_TRACE => self.graph_trace,
            KIND_DRIVER | KIND_RUNTIME => size_of::<ApiRecord>(),
            KIND_MARKER => size_of::<MarkerRecord>(),
            KIND_OVERHEAD => self.overhead,
            KIND_SYNCHRONIZATION => self.synchronization,
            KIND_MEMORY2 => self.memory,
            KIND_MEMORY_POOL => self.memory_pool,
            KIND_ALIEN => ALIEN_BYTES,
            _ => return None,
        })
    }
}

/// Where `start` and `end` lie in a record of `kind`; the same place twice where there is one timestamp.
pub fn time_offsets(kind: u32) -> Option<(usize, usize)> {
    macro_rules! times {
        ($record:ty) => {
            (offset_of!($record, start), offset_of!($record, end))
        };
    }
    macro_rules! timestamp {
        ($record:ty) => {
            (offset_of!($record, timestamp), offset_of!($record, timestamp))
        };
    }
    Some(match kind {
        KIND_KERNEL | KIND_CONCURRENT_KERNEL => times!(KernelRecord),
        KIND_MEMCPY => times!(MemcpyRecord),
        KIND_MEMSET => times!(MemsetRecord),
        KIND_MEMCPY2 => times!(PeerCopyRecord),
        KIND_GRAPH_TRACE => times!(GraphTraceRecord),
        KIND_DRIVER | KIND_RUNTIME => times!(ApiRecord),
        KIND_OVERHEAD => times!(OverheadRecord),
        KIND_SYNCHRONIZATION => times!(SynchronizationRecord),
        KIND_MARKER => timestamp!(MarkerRecord),
        KIND_MEMORY2 => timestamp!(MemoryRecord),
        KIND_MEMORY_POOL => timestamp!(MemoryPoolRecord),
        _ => return None,
    })
}

/// Where the time `completed` lies, which only kernels have.
pub fn completed_offset(kind: u32) -> Option<usize> {
    matches!(kind, KIND_KERNEL | KIND_CONCURRENT_KERNEL).then_some(offset_of!(KernelRecord, completed))
}

/// Where a name lies.
pub fn name_offset(kind: u32) -> Option<usize> {
    Some(match kind {
        KIND_KERNEL | KIND_CONCURRENT_KERNEL => offset_of!(KernelRecord, name),
        KIND_MARKER => offset_of!(MarkerRecord, name),
        _ => return None,
    })
}
