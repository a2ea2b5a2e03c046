//! Where the fields of CUPTI's activity records lie, by the version of CUPTI that wrote them.
//!
//! The tables are facts (offsets and sizes), compared with NVIDIA's own headers by `.ci/layouts`. What the headers of
//! 11.8 to 13.5 show, and the tables rest on:
//! - a record only ever grows at its end, so a newer record read by an older table gives the older fields;
//! - x86_64 and aarch64 have the same layouts: both are little-endian LP64, and the records are packed to 8 bytes;
//! - a struct may gain a field without a new name, in what was padding (`CUpti_ActivityMemset4` at 13.0).
//!
//! | `cuptiGetVersion` | CUDA | kernel | memcpy | memset |
//! |---|---|---|---|---|
//! | 18 | 11.8, 12.0 and 12.1 alike | 8, the part that 9 shares | 5 | 4 |
//! | 20 to 24 | 12.2 to 12.6 | 9 | 5 | 4 |
//! | 26, 27, 28 | 12.8, 12.9, 12.9 update 1 | 9 | 6 | 4 |
//! | 1300zz | 13.0 | 10 | 6, device launches told | 4, device launches told |
//! | 1301zz, 1302zz | 13.1, 13.2 | 11 | the same | the same |
//! | 1303zz | 13.3 | 12 | the same | the same |
//! | 1304zz, 130500 | 13.4, 13.5 | 13 | 7 | 5 |
//!
//! | `cuptiGetVersion` | CUDA | synchronization | graph trace | memory | memory pool | overhead |
//! |---|---|---|---|---|---|---|
//! | 18, 20 | 11.8 to 12.2 | 1 | 1 | 3 | 2 | 1 |
//! | 21 | 12.3 | 1 | 2 | 3 | 2 | 2 |
//! | 22, 23 | 12.4, 12.5 | 1 | 2 | 3 | 2 | 3 |
//! | 24 | 12.6 | 1 | 2 | 4 | 2 | 3 |
//! | 26, 27, 28 | 12.8, 12.9, 12.9 update 1 | 2 | 2 | 4 | 2 | 3 |
//! | 1300zz to 130500 | 13.0 to 13.5 | 2 | 2 | 4 | 3 | 3 |
//!
//! The same in all of them: marker (`CUpti_ActivityMarker2`), calls (`CUpti_ActivityAPI`) and copies between devices
//! (`CUpti_ActivityMemcpyPtoP4`).
//!
//! Reading happens in a CUPTI callback: it allocates nothing, cannot panic, takes no lock, and touches only the record.

use std::fmt;

mod api;
mod field;
mod graph_trace;
mod kernel;
mod marker;
mod memcpy;
mod memcpy_ptop;
mod memory;
mod memory_pool;
mod memset;
mod overhead;
mod synchronization;

pub use api::{ApiLayout, ApiRecord};
pub use field::{Field, Plain};
pub use graph_trace::{GraphTraceLayout, GraphTraceRecord};
pub use kernel::{KernelLayout, KernelRecord};
pub use marker::{MarkerLayout, MarkerRecord};
pub use memcpy::{MemcpyLayout, MemcpyRecord};
pub use memcpy_ptop::{MemcpyPtopLayout, MemcpyPtopRecord};
pub use memory::{MemoryLayout, MemoryRecord};
pub use memory_pool::{MemoryPoolLayout, MemoryPoolRecord};
pub use memset::{MemsetLayout, MemsetRecord};
pub use overhead::{OverheadLayout, OverheadRecord};
pub use synchronization::{SynchronizationLayout, SynchronizationRecord};

/// The oldest version of CUPTI whose records are known: CUDA 11.8.
pub const OLDEST_VERSION: u32 = 18;
/// The newest version of CUPTI whose headers the tables were compared with: CUDA 13.5.
pub const NEWEST_VERSION: u32 = 130_500;

/// The tables for one version of CUPTI.
#[derive(Clone, Copy, Debug)]
pub struct Layouts {
    pub kernel: &'static KernelLayout,
    pub memcpy: &'static MemcpyLayout,
    pub memset: &'static MemsetLayout,
    pub memcpy_ptop: &'static MemcpyPtopLayout,
    pub synchronization: &'static SynchronizationLayout,
    pub graph_trace: &'static GraphTraceLayout,
    pub memory: &'static MemoryLayout,
    pub memory_pool: &'static MemoryPoolLayout,
    pub overhead: &'static OverheadLayout,
    pub marker: &'static MarkerLayout,
    pub api: &'static ApiLayout,
    /// False where no header of this version, nor of one on either side, was compared: the closest older tables
    /// are used, on the ground that records grow at their end. To be said aloud.
    pub exact: bool,
}

/// This CUPTI is older than the oldest whose records are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOld {
    pub cupti_version: u32,
}

impl fmt::Display for TooOld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cupti_version } = self;
        write!(
            f,
            "CUPTI version {cupti_version} is older than {OLDEST_VERSION} (CUDA 11.8), the oldest that gputap reads"
        )
    }
}

impl std::error::Error for TooOld {}

/// The tables for what `cuptiGetVersion` reported (after it reported success: on failure the number means nothing).
///
/// Where one number stands for several layouts (18), or no published header has it (19, 25, 29 to 129999), the tables
/// are the smaller ones: they read what all candidates share.
pub fn for_version(cupti_version: u32) -> Result<Layouts, TooOld> {
    if cupti_version < OLDEST_VERSION {
        return Err(TooOld { cupti_version });
    }
    Ok(Layouts {
        kernel: kernel::for_version(cupti_version),
        memcpy: memcpy::for_version(cupti_version),
        memset: memset::for_version(cupti_version),
        memcpy_ptop: memcpy_ptop::for_version(cupti_version),
        synchronization: synchronization::for_version(cupti_version),
        graph_trace: graph_trace::for_version(cupti_version),
        memory: memory::for_version(cupti_version),
        memory_pool: memory_pool::for_version(cupti_version),
        overhead: overhead::for_version(cupti_version),
        marker: marker::for_version(cupti_version),
        api: api::for_version(cupti_version),
        exact: matches!(cupti_version, OLDEST_VERSION..=28 | 130_000..=NEWEST_VERSION),
    })
}

/// The kind of any activity record, by which to choose its table: the first four bytes of each.
///
/// # Safety
/// Four bytes from `record` on are readable.
pub unsafe fn kind(record: *const u8) -> u32 {
    const KIND: Field<u32> = Field::at(0);
    // SAFETY: the field lies in the first four bytes, which the caller promises are readable.
    unsafe { KIND.read(record) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structures(cupti_version: u32) -> (&'static str, &'static str, &'static str, bool) {
        let layouts = for_version(cupti_version).expect("a known version");
        (layouts.kernel.structure, layouts.memcpy.structure, layouts.memset.structure, layouts.exact)
    }

    #[test]
    fn older_than_cuda_11_8_is_refused_with_the_number() {
        assert_eq!(for_version(17).err(), Some(TooOld { cupti_version: 17 }));
        assert!(TooOld { cupti_version: 17 }.to_string().contains("version 17 is older than 18"));
        assert!(for_version(0).is_err());
    }

    #[test]
    fn each_known_version_has_the_structs_that_its_header_names() {
        let (k8, k9, k10) = ("CUpti_ActivityKernel8", "CUpti_ActivityKernel9", "CUpti_ActivityKernel10");
        let (k11, k12, k13) = ("CUpti_ActivityKernel11", "CUpti_ActivityKernel12", "CUpti_ActivityKernel13");
        let (c5, c6, c7) = ("CUpti_ActivityMemcpy5", "CUpti_ActivityMemcpy6", "CUpti_ActivityMemcpy7");
        let (s4, s5) = ("CUpti_ActivityMemset4", "CUpti_ActivityMemset5");
        assert_eq!(structures(18), (k8, c5, s4, true));
        assert_eq!(structures(24), (k9, c5, s4, true));
        assert_eq!(structures(28), (k9, c6, s4, true));
        assert_eq!(structures(130_001), (k10, c6, s4, true));
        assert_eq!(structures(130_202), (k11, c6, s4, true));
        assert_eq!(structures(130_301), (k12, c6, s4, true));
        assert_eq!(structures(130_400), (k13, c7, s5, true));
        assert_eq!(structures(130_500), (k13, c7, s5, true));
    }

    #[test]
    fn a_version_nobody_has_seen_gets_the_closest_older_tables_and_says_so() {
        assert!(!structures(130_501).3);
        assert_eq!(
            structures(u32::MAX),
            ("CUpti_ActivityKernel13", "CUpti_ActivityMemcpy7", "CUpti_ActivityMemset5", false)
        );
        assert_eq!(structures(29), ("CUpti_ActivityKernel9", "CUpti_ActivityMemcpy6", "CUpti_ActivityMemset4", false));
    }

    #[test]
    fn a_record_cut_short_is_not_read() {
        let layouts = for_version(NEWEST_VERSION).expect("a known version");
        let record = vec![0xa5_u8; layouts.kernel.size_bytes];
        // SAFETY: `record` holds `size_bytes` bytes, and each call is told no more than that.
        unsafe {
            assert!(layouts.kernel.read(record.as_ptr(), record.len() - 1).is_none());
            let whole = layouts.kernel.read(record.as_ptr(), record.len()).expect("the whole record");
            assert_eq!((kind(record.as_ptr()), whole.start_ns), (0xa5a5_a5a5, 0xa5a5_a5a5_a5a5_a5a5));
            assert_eq!(whole.source_graph_node_id, Some(0xa5a5_a5a5_a5a5_a5a5));
        }
    }

    #[test]
    fn a_field_that_the_version_lacks_is_none() {
        let layouts = for_version(OLDEST_VERSION).expect("a known version");
        let record = vec![0xa5_u8; layouts.memcpy.size_bytes];
        // SAFETY: `record` holds `size_bytes` bytes.
        let read = unsafe { layouts.memcpy.read(record.as_ptr(), record.len()) }.expect("the whole record");
        assert_eq!((read.copy_count, read.source_graph_node_id, read.copy_kind), (None, None, 0xa5));
    }

    /// Synchronization, graph trace, memory, memory pool, overhead: the number that ends each struct's name.
    fn numbers_of_the_later_families(cupti_version: u32) -> [u32; 5] {
        let layouts = for_version(cupti_version).expect("a known version");
        let number = |structure: &str| structure.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(1);
        [
            number(layouts.synchronization.structure),
            number(layouts.graph_trace.structure),
            number(layouts.memory.structure),
            number(layouts.memory_pool.structure),
            number(layouts.overhead.structure),
        ]
    }

    #[test]
    fn the_later_families_grow_where_their_headers_say() {
        assert_eq!(numbers_of_the_later_families(18), [1, 1, 3, 2, 1]);
        assert_eq!(numbers_of_the_later_families(20), [1, 1, 3, 2, 1]);
        assert_eq!(numbers_of_the_later_families(21), [1, 2, 3, 2, 2]);
        assert_eq!(numbers_of_the_later_families(23), [1, 2, 3, 2, 3]);
        assert_eq!(numbers_of_the_later_families(24), [1, 2, 4, 2, 3]);
        assert_eq!(numbers_of_the_later_families(25), [1, 2, 4, 2, 3]);
        assert_eq!(numbers_of_the_later_families(26), [2, 2, 4, 2, 3]);
        assert_eq!(numbers_of_the_later_families(129_999), [2, 2, 4, 2, 3]);
        assert_eq!(numbers_of_the_later_families(130_000), [2, 2, 4, 3, 3]);
        assert_eq!(numbers_of_the_later_families(u32::MAX), [2, 2, 4, 3, 3]);
    }

    /// A record of which each byte is its own offset, so that a value tells where it was read.
    fn numbered_bytes(size_bytes: usize) -> Vec<u8> {
        (0..=u8::MAX).take(size_bytes).collect()
    }

    #[test]
    fn the_object_of_a_marker_and_the_pool_of_an_allocation_are_read_out_of_their_nests() {
        let layouts = for_version(NEWEST_VERSION).expect("a known version");
        let (marker, memory) = (numbered_bytes(layouts.marker.size_bytes), numbered_bytes(layouts.memory.size_bytes));
        // SAFETY: each record holds `size_bytes` bytes.
        let marker = unsafe { layouts.marker.read(marker.as_ptr(), marker.len()) }.expect("the whole record");
        // SAFETY: as above.
        let memory = unsafe { layouts.memory.read(memory.as_ptr(), memory.len()) }.expect("the whole record");
        assert_eq!(marker.process_id.to_le_bytes(), [24, 25, 26, 27]);
        assert_eq!(marker.thread_id.to_le_bytes(), [28, 29, 30, 31]);
        assert_eq!(memory.pool_type.to_le_bytes(), [80, 81, 82, 83]);
        assert_eq!(memory.pool_utilized_bytes.to_le_bytes(), [112, 113, 114, 115, 116, 117, 118, 119]);
        assert_eq!(memory.source.map(|source| source.addr() & 0xff), Some(120));
    }

    #[test]
    fn a_short_overhead_record_of_an_older_cupti_has_no_details() {
        let (old, new) = (for_version(18).expect("known").overhead, for_version(22).expect("known").overhead);
        let record = numbered_bytes(old.size_bytes);
        // SAFETY: `record` holds `old.size_bytes` bytes, and each call is told no more than that.
        unsafe {
            let read = old.read(record.as_ptr(), record.len()).expect("the whole record");
            assert_eq!((read.correlation_id, read.details), (None, None));
            assert!(new.read(record.as_ptr(), record.len()).is_none());
        }
    }
}
