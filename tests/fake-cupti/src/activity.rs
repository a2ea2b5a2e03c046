//! The activity functions.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::buffers::{self, Client, CompleteFunc, RequestFunc, Take};
use crate::callbacks;
use crate::counters;
use crate::driver;
use crate::faults::{self, fault};
use crate::ids::realtime_ns;
use crate::layout::{KIND_CONCURRENT_KERNEL, KIND_GRAPH_TRACE, KIND_KERNEL, KIND_MEMCPY, KIND_MEMCPY2, KIND_MEMSET};
use crate::layout_host::{
    KIND_DRIVER, KIND_MARKER, KIND_MEMORY_POOL, KIND_MEMORY2, KIND_OVERHEAD, KIND_RUNTIME, KIND_SYNCHRONIZATION,
};
use crate::records_host;
use crate::result::{
    CuptiResult, INVALID_KIND, INVALID_OPERATION, INVALID_PARAMETER, MAX_LIMIT_REACHED, NOT_INITIALIZED,
    PARAMETER_SIZE_NOT_SUFFICIENT, SUCCESS,
};
use crate::settings::settings;
use crate::worker;

const KINDS: usize = 64;
const FLUSH_FORCED: u32 = 1;

static ENABLED: [AtomicBool; KINDS] = [const { AtomicBool::new(false) }; KINDS];

/// Whether records of `kind` are wanted.
pub fn is_on(kind: u32) -> bool {
    ENABLED.get(kind as usize).is_some_and(|flag| flag.load(Ordering::Relaxed))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(
    request: Option<RequestFunc>,
    complete: Option<CompleteFunc>,
) -> CuptiResult {
    fault!("register_callbacks");
    let (Some(request), Some(complete)) = (request, complete) else { return INVALID_PARAMETER };
    buffers::lock().client = Some(Client { request, complete });
    SUCCESS
}

/// Kinds without records here are accepted, as long as CUPTI knows them.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityEnable(kind: u32) -> CuptiResult {
    fault!("enable");
    if let Some(code) = kind_name(kind).and_then(|name| faults::hit(&format!("enable.{name}"))) {
        return code;
    }
    if driver::door().is_none() || !worker::start() {
        return NOT_INITIALIZED;
    }
    set(kind, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityDisable(kind: u32) -> CuptiResult {
    fault!("disable");
    if let Some(code) = kind_name(kind).and_then(|name| faults::hit(&format!("disable.{name}"))) {
        return code;
    }
    if kind == KIND_MEMCPY && buffers::has_copied() {
        // On CUPTI 13.0 the worker then frees a copy's bookkeeping twice, in about one process of ten.
        eprintln!("fake CUPTI: MEMCPY was switched off in a process that copies");
        std::process::abort();
    }
    set(kind, false)
}

fn set(kind: u32, on: bool) -> CuptiResult {
    match ENABLED.get(kind as usize).filter(|_| kind != 0) {
        Some(flag) => {
            flag.store(on, Ordering::Relaxed);
            SUCCESS
        }
        None => INVALID_KIND,
    }
}

fn kind_name(kind: u32) -> Option<&'static str> {
    Some(match kind {
        KIND_MEMCPY => "MEMCPY",
        KIND_MEMSET => "MEMSET",
        KIND_KERNEL => "KERNEL",
        KIND_CONCURRENT_KERNEL => "CONCURRENT_KERNEL",
        KIND_DRIVER => "DRIVER",
        KIND_RUNTIME => "RUNTIME",
        KIND_MARKER => "MARKER",
        KIND_OVERHEAD => "OVERHEAD",
        KIND_MEMCPY2 => "MEMCPY2",
        KIND_SYNCHRONIZATION => "SYNCHRONIZATION",
        KIND_MEMORY2 => "MEMORY2",
        KIND_MEMORY_POOL => "MEMORY_POOL",
        KIND_GRAPH_TRACE => "GRAPH_TRACE",
        _ => return None,
    })
}

/// Waits for the worker: who calls this with a lock that a callback waits for, hangs.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(flag: u32) -> CuptiResult {
    counters::FLUSHES.add(1);
    if faults::hit("flush_hang").is_some() {
        // The caller waits for ever, and so does whoever waits for it.
        loop {
            std::thread::park();
        }
    }
    fault!("flush");
    let forced = flag & FLUSH_FORCED != 0;
    if forced {
        counters::FORCED_FLUSHES.add(1);
    }
    let began_ns = realtime_ns();
    std::thread::sleep(settings().flush);
    if !worker::pass(if forced { Take::Forced } else { Take::Partial }) {
        return INVALID_OPERATION;
    }
    if is_on(KIND_OVERHEAD) {
        // Given back by the next flush.
        buffers::lay_down(records_host::of_flush(began_ns, realtime_ns(), &settings().sizes));
    }
    SUCCESS
}

/// # Safety
/// `buffer` holds `valid_size` bytes of records of ours; `record` may be read and written and is null or one of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    valid_size: usize,
    record: *mut *mut u8,
) -> CuptiResult {
    fault!("get_next_record");
    if buffer.is_null() || record.is_null() {
        return INVALID_PARAMETER;
    }
    // SAFETY: not null, so by contract it may be read.
    let last = unsafe { record.read() };
    let kind_at = |offset: usize| {
        // SAFETY: by contract a record begins at `offset`, which is below `valid_size`, and with it its kind.
        let kind = unsafe { buffer.add(offset).cast::<u32>().read() };
        settings().sizes.of_kind(kind)
    };
    let offset = if last.is_null() {
        0
    } else {
        let offset = last.addr().wrapping_sub(buffer.addr());
        if offset >= valid_size {
            return INVALID_PARAMETER;
        }
        match kind_at(offset) {
            Some(size) => offset + size,
            None => return INVALID_KIND,
        }
    };
    if offset >= valid_size {
        return MAX_LIMIT_REACHED;
    }
    match kind_at(offset) {
        Some(size) if size <= valid_size - offset => {
            // SAFETY: `offset` is inside the buffer, and by contract `record` may be written.
            unsafe { record.write(buffer.add(offset)) };
            SUCCESS
        }
        _ => INVALID_KIND,
    }
}

/// All buffers are global: what was dropped since the last question is told for context null, and for every other
/// context it is 0.
///
/// # Safety
/// `dropped` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(
    context: *mut c_void,
    _stream_id: u32,
    dropped: *mut usize,
) -> CuptiResult {
    fault!("dropped");
    if dropped.is_null() {
        return INVALID_PARAMETER;
    }
    let count = if context.is_null() { buffers::take_dropped() } else { 0 };
    // SAFETY: not null, so by contract it may be written.
    unsafe { dropped.write(count as usize) };
    SUCCESS
}

/// Kept and given back, and otherwise without effect.
static ATTRIBUTES: [AtomicU64; 9] = [
    AtomicU64::new(3_145_728),
    AtomicU64::new(8_388_608),
    AtomicU64::new(250),
    AtomicU64::new(25_000),
    AtomicU64::new(250),
    AtomicU64::new(0),
    AtomicU64::new(3),
    AtomicU64::new(3),
    AtomicU64::new(0),
];

/// # Safety
/// `size` may be read, or is null; `value` has `*size` readable bytes, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivitySetAttribute(
    attribute: u32,
    size: *mut usize,
    value: *mut c_void,
) -> CuptiResult {
    fault!("set_attribute");
    let Some(kept) = ATTRIBUTES.get(attribute as usize).filter(|_| !size.is_null() && !value.is_null()) else {
        return INVALID_PARAMETER;
    };
    let mut bytes = [0; 8];
    // SAFETY: not null, so by contract it may be read.
    let size = unsafe { size.read() };
    if size == 0 || size > bytes.len() {
        return PARAMETER_SIZE_NOT_SUFFICIENT;
    }
    // SAFETY: `size` bytes are readable by contract and fit in the array.
    unsafe { value.cast::<u8>().copy_to_nonoverlapping(bytes.as_mut_ptr(), size) };
    kept.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    SUCCESS
}

/// # Safety
/// `size` may be read, or is null; `value` has `*size` bytes that may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetAttribute(
    attribute: u32,
    size: *mut usize,
    value: *mut c_void,
) -> CuptiResult {
    fault!("get_attribute");
    let Some(kept) = ATTRIBUTES.get(attribute as usize).filter(|_| !size.is_null() && !value.is_null()) else {
        return INVALID_PARAMETER;
    };
    // SAFETY: not null, so by contract it may be read.
    let size = unsafe { size.read() };
    if size == 0 || size > 8 {
        return PARAMETER_SIZE_NOT_SUFFICIENT;
    }
    let bytes = kept.load(Ordering::Relaxed).to_le_bytes();
    // SAFETY: `size` is at most the array's length, and by contract as many bytes may be written.
    unsafe { bytes.as_ptr().copy_to_nonoverlapping(value.cast::<u8>(), size) };
    SUCCESS
}

/// Lets go of everything; another client may then subscribe.
#[unsafe(no_mangle)]
pub extern "C" fn cuptiFinalize() -> CuptiResult {
    fault!("finalize");
    ENABLED.iter().for_each(|flag| flag.store(false, Ordering::Relaxed));
    callbacks::forget_subscriber();
    // No completed-callback may be under way when this returns.
    if !worker::pass(Take::Full) {
        return INVALID_OPERATION;
    }
    buffers::lock().forget();
    crate::ids::forget_clock();
    SUCCESS
}
