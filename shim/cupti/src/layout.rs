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
//! Reading happens in a CUPTI callback: it allocates nothing, cannot panic, takes no lock, and touches only the record.

use std::fmt;

mod field;
mod kernel;
mod memcpy;
mod memset;

pub use field::{Field, Plain};
pub use kernel::{KernelLayout, KernelRecord};
pub use memcpy::{MemcpyLayout, MemcpyRecord};
pub use memset::{MemsetLayout, MemsetRecord};

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
    let (kernel, memcpy, memset) = match cupti_version {
        0..OLDEST_VERSION => return Err(TooOld { cupti_version }),
        18 => (&kernel::KERNEL8, &memcpy::MEMCPY5, &memset::MEMSET4),
        19..=25 => (&kernel::KERNEL9, &memcpy::MEMCPY5, &memset::MEMSET4),
        26..130_000 => (&kernel::KERNEL9, &memcpy::MEMCPY6, &memset::MEMSET4),
        130_000..130_100 => (&kernel::KERNEL10, &memcpy::MEMCPY6_CUDA13, &memset::MEMSET4_CUDA13),
        130_100..130_300 => (&kernel::KERNEL11, &memcpy::MEMCPY6_CUDA13, &memset::MEMSET4_CUDA13),
        130_300..130_400 => (&kernel::KERNEL12, &memcpy::MEMCPY6_CUDA13, &memset::MEMSET4_CUDA13),
        130_400.. => (&kernel::KERNEL13, &memcpy::MEMCPY7, &memset::MEMSET5),
    };
    let exact = matches!(cupti_version, OLDEST_VERSION..=28 | 130_000..=NEWEST_VERSION);
    Ok(Layouts { kernel, memcpy, memset, exact })
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
}
