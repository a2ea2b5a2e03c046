//! `cuInit` and the questions about the device. Its devices are make-believe.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::hook_abi::resource;
use crate::result::{CuResult, INVALID_DEVICE, INVALID_VALUE, NOT_INITIALIZED, SUCCESS, text};
use crate::{hooks, inject, settings};

const DEVICE_NAME: &std::ffi::CStr = c"Fake GPU (gputap tests)";

static INITIALIZED: AtomicBool = AtomicBool::new(false);

/// Success once `cuInit` has run.
fn initialized() -> CuResult {
    // SYNC: pairs with the Release store in `cuInit`.
    if INITIALIZED.load(Ordering::Acquire) { SUCCESS } else { NOT_INITIALIZED }
}

/// The device of this ordinal, once `cuInit` has run.
pub fn known_device(ordinal: c_int) -> Result<u32, CuResult> {
    match initialized() {
        SUCCESS => exists(ordinal).ok_or(INVALID_DEVICE),
        error => Err(error),
    }
}

fn exists(ordinal: c_int) -> Option<u32> {
    u32::try_from(ordinal).ok().filter(|&ordinal| ordinal < settings::devices())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(flags: c_uint) -> CuResult {
    if flags != 0 {
        return INVALID_VALUE;
    }
    inject::once(|| {
        inject::inject();
        // SYNC: pairs with the Acquire load in `initialized`.
        INITIALIZED.store(true, Ordering::Release);
        hooks::resource(resource::INIT_FINISHED, std::ptr::null_mut(), std::ptr::null_mut());
    });
    SUCCESS
}

/// # Safety
/// `version` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> CuResult {
    // SAFETY: by contract.
    unsafe { give(version, settings::driver_version()) }
}

/// # Safety
/// `count` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> CuResult {
    // SAFETY: by contract.
    unsafe { give(count, settings::devices() as c_int) }
}

/// # Safety
/// `device` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> CuResult {
    match known_device(ordinal) {
        // SAFETY: by contract.
        Ok(_) => unsafe { give(device, ordinal) },
        Err(error) => error,
    }
}

/// # Safety
/// `name` has room for `size` bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, size: c_int, device: c_int) -> CuResult {
    if exists(device).is_none() {
        return INVALID_DEVICE;
    }
    let Some(room) = usize::try_from(size).ok().filter(|&n| n > 0 && !name.is_null()) else { return INVALID_VALUE };
    let kept = DEVICE_NAME.to_bytes().len().min(room - 1);
    // SAFETY: `kept` bytes and the NUL fit in the `size` bytes that `name` has by contract; the sources are apart.
    unsafe {
        DEVICE_NAME.as_ptr().copy_to_nonoverlapping(name, kept);
        name.add(kept).write(0);
    }
    SUCCESS
}

/// # Safety
/// `uuid` has room for 16 bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> CuResult {
    let Some(number) = exists(device) else { return INVALID_DEVICE };
    let mut id = *b"gputap-fake-gpu0";
    id[15] += number as u8;
    // SAFETY: by contract.
    unsafe { give(uuid, id) }
}

/// # Safety
/// As [`cuDeviceGetUuid`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> CuResult {
    // SAFETY: the same contract.
    unsafe { cuDeviceGetUuid(uuid, device) }
}

/// # Safety
/// `string` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(error: CuResult, string: *mut *const c_char) -> CuResult {
    match text(error) {
        // SAFETY: by contract.
        Some(text) => unsafe { give(string, text.as_ptr()) },
        None => INVALID_VALUE,
    }
}

/// Writes `value` where the caller asked for it.
///
/// # Safety
/// `to` may be written, or is null.
pub unsafe fn give<T>(to: *mut T, value: T) -> CuResult {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: not null, so by contract it may be written.
    unsafe { to.write(value) };
    SUCCESS
}
