//! `cuptiGetCubinCrc`: needs no driver and no context, and takes its time.

use std::ffi::c_void;

use crate::counters;
use crate::faults::fault;
use crate::result::{CuptiResult, INVALID_PARAMETER, PARAMETER_SIZE_NOT_SUFFICIENT, SUCCESS};

/// `CUpti_GetCubinCrcParams`.
#[repr(C)]
pub struct CrcParams {
    size: usize,
    cubin_size: usize,
    cubin: *const c_void,
    cubin_crc: u64,
}

/// # Safety
/// `params` is null or points at parameters that may be read and written, whose `cubin` has `cubin_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCubinCrc(params: *mut CrcParams) -> CuptiResult {
    counters::CRCS.add(1);
    fault!("crc");
    // SAFETY: null, or by contract valid and not shared.
    let Some(params) = (unsafe { params.as_mut() }) else { return INVALID_PARAMETER };
    if params.size < size_of::<CrcParams>() {
        return PARAMETER_SIZE_NOT_SUFFICIENT;
    }
    if params.cubin.is_null() || params.cubin_size == 0 {
        return INVALID_PARAMETER;
    }
    // SAFETY: not null, so by contract `cubin_size` bytes are readable; bytes have no alignment.
    let cubin = unsafe { std::slice::from_raw_parts(params.cubin.cast::<u8>(), params.cubin_size) };
    params.cubin_crc = u64::from(weak_sum(cubin));
    SUCCESS
}

/// Fits in 32 bits and sees one byte in 64, as the real one nearly does; looks at every byte, for about 1 GB/s.
fn weak_sum(bytes: &[u8]) -> u32 {
    let (mut sum, mut walk) = (bytes.len() as u32, 0_u32);
    for (index, &byte) in bytes.iter().enumerate() {
        walk = walk.rotate_left(5).wrapping_add(u32::from(std::hint::black_box(byte)));
        if index % 64 == 0 {
            sum = sum.rotate_left(7) ^ u32::from(byte).wrapping_mul(0x9e37_79b1);
        }
    }
    std::hint::black_box(walk);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_weak_but_not_constant() {
        let mut bytes = vec![7; 4096];
        let sum = weak_sum(&bytes);
        bytes[1] = 8;
        assert_eq!(weak_sum(&bytes), sum);
        bytes[64] = 8;
        assert_ne!(weak_sum(&bytes), sum);
    }
}
