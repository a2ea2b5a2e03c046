//! A plain tap: one sort of callback, three activity kinds, pooled buffers, a flushing timer, and a lock in the callback.
//!
//! Settings: `GPUTAP_CUPTI` (path of the libcupti to open), `NAIVE_FLUSH_US` (the timer's period, default 1000),
//! `NAIVE_CALLBACK` (which callbacks it wants, and takes the lock in: `module_load`, the default, `module_unload`,
//! `context_create`, `context_destroy`, `launch` or `synchronize`).

mod c_mutex;
mod place;

use std::ffi::c_void;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use libloading::Library;

use c_mutex::CMutex;
use place::Place;

/// Which lock the callback takes around its work.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "each of the two libraries picks one")]
pub enum CallbackLock {
    /// The one that the timer holds across a flush.
    Guard,
    /// One that nobody holds across a CUPTI call.
    Own,
}

/// MEMCPY, MEMSET, CONCURRENT_KERNEL.
const KINDS: [u32; 3] = [1, 2, 10];
const BUFFER_BYTES: usize = 1 << 20;

static GUARD: CMutex = CMutex::new();
static OWN: CMutex = CMutex::new();
static POOL: Mutex<Vec<Box<[u64]>>> = Mutex::new(Vec::new());
static TAP: OnceLock<Tap> = OnceLock::new();

struct Tap {
    lock: CallbackLock,
    place: Place,
    flush_all: unsafe extern "C" fn(u32) -> u32,
    cubin_crc: unsafe extern "C" fn(*mut CrcParams) -> u32,
}

/// `CUpti_GetCubinCrcParams`.
#[repr(C)]
struct CrcParams {
    size: usize,
    cubin_size: usize,
    cubin: *const c_void,
    cubin_crc: u64,
}

/// `CUpti_ResourceData`.
#[repr(C)]
struct ResourceData {
    context: *mut c_void,
    resource: *mut c_void,
    descriptor: *const ModuleData,
}

/// `CUpti_ModuleResourceData`.
#[repr(C)]
struct ModuleData {
    module_id: u32,
    cubin_size: usize,
    cubin: *const u8,
}

type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

/// Taps the process; 1 on success. Says on stderr why not.
pub fn start(lock: CallbackLock) -> i32 {
    match connect(lock) {
        Ok(()) => 1,
        Err(reason) => {
            eprintln!("control shim: not tapping: {reason}");
            0
        }
    }
}

fn connect(lock: CallbackLock) -> Result<(), String> {
    let place = Place::from_env()?;
    let path = std::env::var_os("GPUTAP_CUPTI").ok_or("GPUTAP_CUPTI is not set")?;
    // SAFETY: whoever set the variable vouches for the library's constructors.
    let library = unsafe { Library::new(&path) }.map_err(|e| e.to_string())?;
    // Never unloaded: callbacks and the timer use it for ever.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: the types in these two lines are those of NVIDIA's headers.
    let flush_all = *unsafe { library.get(b"cuptiActivityFlushAll\0") }.map_err(|e| e.to_string())?;
    // SAFETY: as above.
    let cubin_crc = *unsafe { library.get(b"cuptiGetCubinCrc\0") }.map_err(|e| e.to_string())?;
    TAP.set(Tap { lock, place, flush_all, cubin_crc }).map_err(|_| "started twice")?;
    subscribe(library, place)?;
    std::thread::Builder::new().name("control-timer".into()).spawn(flush_for_ever).map_err(|e| e.to_string())?;
    Ok(())
}

fn subscribe(library: &'static Library, place: Place) -> Result<(), String> {
    type Subscribe = unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> u32;
    type EnableCallback = unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> u32;
    type RegisterCallbacks = unsafe extern "C" fn(Request, Complete) -> u32;
    type Enable = unsafe extern "C" fn(u32) -> u32;
    let ok = |what: &str, code: u32| if code == 0 { Ok(()) } else { Err(format!("{what}: CUPTI error {code}")) };
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: the types of the four functions are those of NVIDIA's headers, the subscriber's place may be written,
    // and the callbacks may be called from any thread for ever.
    unsafe {
        let subscribe = library.get::<Subscribe>(b"cuptiSubscribe\0").map_err(|e| e.to_string())?;
        let enable_callback = library.get::<EnableCallback>(b"cuptiEnableCallback\0").map_err(|e| e.to_string())?;
        let register =
            library.get::<RegisterCallbacks>(b"cuptiActivityRegisterCallbacks\0").map_err(|e| e.to_string())?;
        let enable = library.get::<Enable>(b"cuptiActivityEnable\0").map_err(|e| e.to_string())?;
        ok("cuptiSubscribe", subscribe(&raw mut subscriber, on_callback, std::ptr::null_mut()))?;
        for &(domain, cbid) in place.ids() {
            ok("cuptiEnableCallback", enable_callback(1, subscriber, domain, cbid))?;
        }
        ok("cuptiActivityRegisterCallbacks", register(on_buffer_requested, on_buffer_completed))?;
        KINDS.iter().try_for_each(|&kind| ok("cuptiActivityEnable", enable(kind)))
    }
}

/// The timer: holds the guard across the flush, as a tap would that wants CUPTI called by one thread at a time.
fn flush_for_ever() {
    let period_us = std::env::var("NAIVE_FLUSH_US").ok().and_then(|v| v.parse().ok()).unwrap_or(1000);
    let Some(tap) = TAP.get() else { return };
    loop {
        std::thread::sleep(Duration::from_micros(period_us));
        let held = GUARD.lock();
        // SAFETY: the library is never unloaded.
        unsafe { (tap.flush_all)(0) };
        drop(held);
    }
}

/// # Safety
/// Called by CUPTI with the data that the domain and id call for.
unsafe extern "C" fn on_callback(_user: *mut c_void, domain: u32, cbid: u32, data: *const c_void) {
    let Some(tap) = TAP.get().filter(|tap| tap.place.ids().contains(&(domain, cbid))) else { return };
    if matches!(tap.place, Place::ModuleLoad | Place::ModuleUnload) {
        // SAFETY: for these ids CUPTI passes resource data with a module's description, valid during the call.
        let module = unsafe { &*(*data.cast::<ResourceData>()).descriptor };
        // SAFETY: CUPTI keeps these bytes readable until the callback returns.
        let cubin = unsafe { std::slice::from_raw_parts(module.cubin, module.cubin_size) }.to_vec();
        tap.locked(|| tap.checksum(&cubin));
    } else {
        tap.locked(|| ());
    }
}

impl Tap {
    /// Runs `work` under the callback's lock.
    fn locked(&self, work: impl FnOnce()) {
        let _held = if self.lock == CallbackLock::Guard { GUARD.lock() } else { OWN.lock() };
        work();
    }

    fn checksum(&self, cubin: &[u8]) {
        let (size, cubin_size) = (size_of::<CrcParams>(), cubin.len());
        let mut params = CrcParams { size, cubin_size, cubin: cubin.as_ptr().cast(), cubin_crc: 0 };
        // SAFETY: the parameters are valid, and the cubin that they name is alive.
        unsafe { (self.cubin_crc)(&raw mut params) };
    }
}

/// # Safety
/// The three places may be written.
unsafe extern "C" fn on_buffer_requested(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    let fresh = pool().pop().unwrap_or_else(|| vec![0; BUFFER_BYTES / 8].into_boxed_slice());
    // SAFETY: by contract.
    unsafe {
        buffer.write(Box::into_raw(fresh).cast());
        size.write(BUFFER_BYTES);
        max_records.write(0);
    }
}

/// # Safety
/// `buffer` is one that `on_buffer_requested` gave, given back once.
unsafe extern "C" fn on_buffer_completed(_: *mut c_void, _: u32, buffer: *mut u8, size: usize, _valid: usize) {
    let whole = std::ptr::slice_from_raw_parts_mut(buffer.cast::<u64>(), size / 8);
    // SAFETY: made by Box::into_raw of a slice of this length, and CUPTI does not use it any more.
    pool().push(unsafe { Box::from_raw(whole) });
}

fn pool() -> std::sync::MutexGuard<'static, Vec<Box<[u64]>>> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}
