//! Allocations and pools.

use std::ffi::c_void;

use crate::api_context::{Context, current, current_stream};
use crate::api_device::give;
use crate::driver_lock::lock;
use crate::hook_abi::{
    HOST_MEMORY, HOST_POOL, HostEvent, MEMORY_ALLOCATED, MEMORY_RELEASED, POOL_CREATED, POOL_DESTROYED, POOL_TRIMMED,
    PoolFacts, default_stream_id,
};
use crate::hooks::{self, Api};
use crate::result::{CuResult, INVALID_VALUE, SUCCESS};
use crate::timeline;

const KIND_DEVICE: u32 = 3;

/// # Safety
/// `address` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> CuResult {
    let call = |correlation| Call { correlation, stream: None };
    // SAFETY: by contract.
    Api::new(243, c"cuMemAlloc_v2").run(|id| unsafe { call(id).allocate(address, bytes, Source::Device) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> CuResult {
    Api::new(245, c"cuMemFree_v2").run(|correlation| Call { correlation, stream: None }.free(address))
}

/// From the device's default pool.
///
/// # Safety
/// `address` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(address: *mut u64, bytes: usize, stream: *mut c_void) -> CuResult {
    let call = |correlation| Call { correlation, stream: Some(stream) };
    // SAFETY: by contract.
    Api::new(598, c"cuMemAllocAsync").run(|id| unsafe { call(id).allocate(address, bytes, Source::DefaultPool) })
}

/// # Safety
/// `address` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocFromPoolAsync(
    address: *mut u64,
    bytes: usize,
    pool: *mut c_void,
    stream: *mut c_void,
) -> CuResult {
    let source = Source::Pool(pool.addr() as u64);
    let call = |correlation| Call { correlation, stream: Some(stream) };
    // SAFETY: by contract.
    Api::new(611, c"cuMemAllocFromPoolAsync").run(|id| unsafe { call(id).allocate(address, bytes, source) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: u64, stream: *mut c_void) -> CuResult {
    Api::new(600, c"cuMemFreeAsync").run(|correlation| Call { correlation, stream: Some(stream) }.free(address))
}

/// The properties are not looked at: a pool is one of device memory.
///
/// # Safety
/// `pool` may be written, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolCreate(pool: *mut *mut c_void, _properties: *const c_void) -> CuResult {
    Api::new(607, c"cuMemPoolCreate").run(|correlation| {
        let context = match current() {
            Ok(context) => context,
            Err(error) => return error,
        };
        let mut state = lock();
        let new = state.memory.create_pool();
        tell_pool(POOL_CREATED, correlation, context, new, 0);
        drop(state);
        // SAFETY: by contract.
        unsafe { give(pool, std::ptr::without_provenance_mut(new.address as usize)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolDestroy(pool: *mut c_void) -> CuResult {
    Api::new(608, c"cuMemPoolDestroy").run(|correlation| {
        let (context, mut state) = match current() {
            Ok(context) => (context, lock()),
            Err(error) => return error,
        };
        let Some(gone) = state.memory.destroy_pool(pool.addr() as u64) else { return INVALID_VALUE };
        tell_pool(POOL_DESTROYED, correlation, context, gone, 0);
        SUCCESS
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolTrimTo(pool: *mut c_void, keep_bytes: usize) -> CuResult {
    Api::new(602, c"cuMemPoolTrimTo").run(|correlation| {
        let (context, mut state) = match current() {
            Ok(context) => (context, lock()),
            Err(error) => return error,
        };
        let Some(pool) = state.memory.trim_pool(pool.addr() as u64, keep_bytes as u64) else { return INVALID_VALUE };
        tell_pool(POOL_TRIMMED, correlation, context, pool, keep_bytes as u64);
        SUCCESS
    })
}

fn tell_pool(operation: u32, correlation_id: u32, context: Context, pool: PoolFacts, min_bytes_to_keep: u64) {
    let now = timeline::now_ns();
    hooks::host(&HostEvent {
        kind: HOST_POOL,
        operation,
        correlation_id,
        device_id: context.device,
        context_id: context.id,
        start_ns: now,
        end_ns: now,
        pool,
        min_bytes_to_keep,
        ..HostEvent::default()
    });
}

enum Source {
    Device,
    DefaultPool,
    Pool(u64),
}

struct Call {
    correlation: u32,
    stream: Option<*mut c_void>,
}

impl Call {
    /// # Safety
    /// `address` may be written, or is null.
    unsafe fn allocate(&self, address: *mut u64, bytes: usize, source: Source) -> CuResult {
        if bytes == 0 || address.is_null() {
            return INVALID_VALUE;
        }
        let (context, stream_id) = match self.place() {
            Ok(place) => place,
            Err(error) => return error,
        };
        let mut state = lock();
        let pool = match source {
            Source::Device => 0,
            Source::DefaultPool => state.default_pool(context.device),
            Source::Pool(pool) => pool,
        };
        if pool != 0 && state.memory.pool(pool).address == 0 {
            return INVALID_VALUE;
        }
        let new = state.memory.allocate(bytes as u64, pool);
        let pool = state.memory.pool(pool);
        self.tell(MEMORY_ALLOCATED, context, stream_id, (new, bytes as u64), pool);
        drop(state);
        // SAFETY: by contract.
        unsafe { give(address, new) }
    }

    fn free(&self, address: u64) -> CuResult {
        let (context, stream_id) = match self.place() {
            Ok(place) => place,
            Err(error) => return error,
        };
        let mut state = lock();
        let Some(gone) = state.memory.free(address) else { return INVALID_VALUE };
        let pool = state.memory.pool(gone.pool);
        self.tell(MEMORY_RELEASED, context, stream_id, (address, gone.bytes), pool);
        SUCCESS
    }

    fn place(&self) -> Result<(Context, u32), CuResult> {
        match self.stream {
            Some(stream) => current_stream(stream),
            None => current().map(|context| (context, default_stream_id(context.id))),
        }
    }

    fn tell(&self, operation: u32, context: Context, stream_id: u32, memory: (u64, u64), pool: PoolFacts) {
        let now = timeline::now_ns();
        hooks::host(&HostEvent {
            kind: HOST_MEMORY,
            operation,
            correlation_id: self.correlation,
            device_id: context.device,
            context_id: context.id,
            stream_id,
            start_ns: now,
            end_ns: now,
            memory_kind: KIND_DEVICE,
            is_async: u32::from(self.stream.is_some()),
            address: memory.0,
            bytes: memory.1,
            pool,
            ..HostEvent::default()
        });
    }
}
