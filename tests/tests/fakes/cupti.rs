//! The fake CUPTI, called as a tap calls it. What its callbacks bring is kept in statics of this process.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use fake_cupti::counters::Counters;
use fake_cupti::layout::{
    GraphTraceRecord, KIND_CONCURRENT_KERNEL, KIND_GRAPH_TRACE, KIND_KERNEL, KIND_MEMCPY, KIND_MEMCPY2, KIND_MEMSET,
    KernelRecord, MemcpyRecord, MemsetRecord, PeerCopyRecord,
};
use fake_cupti::layout_host::{
    ApiRecord, KIND_DRIVER, KIND_MARKER, KIND_MEMORY_POOL, KIND_MEMORY2, KIND_OVERHEAD, KIND_RUNTIME,
    KIND_SYNCHRONIZATION, MarkerRecord, MemoryPoolRecord, MemoryRecord, OverheadRecord, SynchronizationRecord,
};
use gputap_tests::artifact;
use libloading::Library;

pub type Handle = *mut c_void;

/// A callback as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub domain: u32,
    pub cbid: u32,
    pub thread: ThreadId,
    /// Of a module: the address of its bytes, and a copy.
    pub cubin: Option<(usize, Vec<u8>)>,
    /// Of an API call.
    pub call: Option<Call>,
}

/// What a callback says of an API call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// 0 at the begin, 1 at the end.
    pub site: u32,
    pub function: String,
    /// The kernel's name, of launches.
    pub symbol: Option<String>,
    pub correlation_id: u32,
}

/// A record as it came, missing fields zero.
#[derive(Clone, Copy, Debug)]
pub enum Record {
    Kernel(KernelRecord),
    Memcpy(MemcpyRecord),
    Memset(MemsetRecord),
    PeerCopy(PeerCopyRecord),
    Graph(GraphTraceRecord),
    Api(ApiRecord),
    Marker(MarkerRecord),
    Overhead(OverheadRecord),
    Synchronization(SynchronizationRecord),
    Memory(MemoryRecord),
    Pool(MemoryPoolRecord),
    /// Of a kind that this does not know.
    Alien(u32),
}

// SAFETY: the pointers in records are names, which live as long as the process.
unsafe impl Send for Record {}

static EVENTS: Mutex<Vec<Event>> = Mutex::new(Vec::new());
static DURING: Mutex<Option<Box<dyn Fn() + Send>>> = Mutex::new(None);
static RECORDS: Mutex<Vec<Record>> = Mutex::new(Vec::new());
static DELIVERED_BYTES: AtomicU64 = AtomicU64::new(0);
static COMPLETERS: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());
/// The size of the next buffers; 0 gives one of no size, `usize::MAX` none at all.
pub static BUFFER_BYTES: AtomicUsize = AtomicUsize::new(4096);
pub static MAX_RECORDS: AtomicUsize = AtomicUsize::new(0);
/// `cuptiActivityGetNextRecord`, for the completed-callback.
static NEXT_RECORD: AtomicUsize = AtomicUsize::new(0);

type NextRecord = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> u32;
type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

pub struct Cupti {
    library: &'static Library,
}

macro_rules! call {
    ($self:expr, $name:literal, fn($($type:ty),*) $(, $argument:expr)*) => {{
        // SAFETY: the type is that of NVIDIA's headers; places may be written, callbacks called from any thread.
        unsafe {
            let function = $self.library.get::<unsafe extern "C" fn($($type),*) -> u32>(concat!($name, "\0").as_bytes());
            function.expect($name)($($argument),*)
        }
    }};
}

impl Cupti {
    pub fn load() -> Self {
        let path = artifact("fake_cupti").expect("built");
        // SAFETY: our own library.
        let library = unsafe { Library::new(path) }.expect("loads");
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the type is that of NVIDIA's headers.
        let next = *unsafe { library.get::<NextRecord>(b"cuptiActivityGetNextRecord\0") }.expect("exported");
        NEXT_RECORD.store(next as usize, Ordering::Relaxed);
        Self { library }
    }

    pub fn subscribe(&self) -> Result<Handle, u32> {
        let mut handle = std::ptr::null_mut();
        let none = std::ptr::null_mut();
        let code =
            call!(self, "cuptiSubscribe", fn(*mut Handle, Callback, *mut c_void), &raw mut handle, on_callback, none);
        if code == 0 { Ok(handle) } else { Err(code) }
    }

    pub fn unsubscribe(&self, subscriber: Handle) -> u32 {
        call!(self, "cuptiUnsubscribe", fn(Handle), subscriber)
    }

    pub fn finalize(&self) -> u32 {
        call!(self, "cuptiFinalize", fn())
    }

    pub fn enable_callback(&self, on: bool, subscriber: Handle, domain: u32, cbid: u32) -> u32 {
        call!(self, "cuptiEnableCallback", fn(u32, Handle, u32, u32), u32::from(on), subscriber, domain, cbid)
    }

    /// Registers the buffer callbacks and enables kernels, copies and memsets.
    pub fn record(&self) {
        let register = call!(
            self,
            "cuptiActivityRegisterCallbacks",
            fn(Request, Complete),
            on_buffer_requested,
            on_buffer_completed
        );
        assert_eq!(register, 0);
        for kind in [KIND_CONCURRENT_KERNEL, KIND_MEMCPY, KIND_MEMSET] {
            assert_eq!(self.enable(kind), 0);
        }
    }

    pub fn enable(&self, kind: u32) -> u32 {
        call!(self, "cuptiActivityEnable", fn(u32), kind)
    }

    pub fn disable(&self, kind: u32) -> u32 {
        call!(self, "cuptiActivityDisable", fn(u32), kind)
    }

    pub fn flush(&self, forced: bool) -> u32 {
        call!(self, "cuptiActivityFlushAll", fn(u32), u32::from(forced))
    }

    pub fn dropped(&self, context: Handle) -> usize {
        let mut dropped = usize::MAX;
        let code =
            call!(self, "cuptiActivityGetNumDroppedRecords", fn(Handle, u32, *mut usize), context, 0, &raw mut dropped);
        assert_eq!(code, 0);
        dropped
    }

    pub fn version(&self) -> u32 {
        let mut version = 0;
        assert_eq!(call!(self, "cuptiGetVersion", fn(*mut u32), &raw mut version), 0);
        version
    }

    pub fn stream_id(&self, context: Handle, stream: Handle) -> u32 {
        let mut id = 0;
        let code = call!(self, "cuptiGetStreamIdEx", fn(Handle, Handle, u8, *mut u32), context, stream, 0, &raw mut id);
        assert_eq!(code, 0);
        id
    }

    pub fn device_id(&self, context: Handle) -> u32 {
        let mut id = 0;
        assert_eq!(call!(self, "cuptiGetDeviceId", fn(Handle, *mut u32), context, &raw mut id), 0);
        id
    }

    pub fn graph_exec_id(&self, exec: Handle) -> u32 {
        let mut id = 0;
        assert_eq!(call!(self, "cuptiGetGraphExecId", fn(Handle, *mut u32), exec, &raw mut id), 0);
        id
    }

    pub fn graph_id(&self, graph: Handle) -> u32 {
        let mut id = 0;
        assert_eq!(call!(self, "cuptiGetGraphId", fn(Handle, *mut u32), graph, &raw mut id), 0);
        id
    }

    pub fn timestamp(&self) -> u64 {
        let mut now = 0;
        assert_eq!(call!(self, "cuptiGetTimestamp", fn(*mut u64), &raw mut now), 0);
        now
    }

    pub fn crc(&self, bytes: &[u8]) -> u64 {
        let mut params = [32_usize, bytes.len(), bytes.as_ptr().addr(), 0];
        // The pointer travels as a number; CUPTI's is a pointer of the same size.
        let _exposed = bytes.as_ptr().expose_provenance();
        assert_eq!(call!(self, "cuptiGetCubinCrc", fn(*mut usize), params.as_mut_ptr()), 0);
        params[3] as u64
    }

    pub fn register_clock(&self, clock: unsafe extern "C" fn() -> u64) {
        let code = call!(self, "cuptiActivityRegisterTimestampCallback", fn(unsafe extern "C" fn() -> u64), clock);
        assert_eq!(code, 0);
    }

    pub fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        // SAFETY: the fake's own function; the place may be written.
        unsafe {
            let fill = self.library.get::<unsafe extern "C" fn(*mut Counters)>(b"fake_cupti_counters\0");
            fill.expect("exported")(&raw mut counters);
        }
        counters
    }
}

/// The callbacks since the last question.
pub fn events() -> Vec<Event> {
    std::mem::take(&mut *lock(&EVENTS))
}

/// The records since the last question.
pub fn records() -> Vec<Record> {
    std::mem::take(&mut *lock(&RECORDS))
}

/// The bytes of records since the last question.
pub fn delivered_bytes() -> u64 {
    DELIVERED_BYTES.swap(0, Ordering::Relaxed)
}

/// The threads that have brought records so far.
pub fn completers() -> usize {
    lock(&COMPLETERS).len()
}

/// Runs `work` inside every later callback.
pub fn during_callbacks(work: impl Fn() + Send + 'static) {
    *lock(&DURING) = Some(Box::new(work));
}

impl Record {
    /// Start and end, or twice the one timestamp.
    pub fn times(&self) -> (u64, u64) {
        match self {
            Self::Kernel(r) => (r.start, r.end),
            Self::Memcpy(r) => (r.start, r.end),
            Self::Memset(r) => (r.start, r.end),
            Self::PeerCopy(r) => (r.start, r.end),
            Self::Graph(r) => (r.start, r.end),
            Self::Api(r) => (r.start, r.end),
            Self::Overhead(r) => (r.start, r.end),
            Self::Synchronization(r) => (r.start, r.end),
            Self::Marker(r) => (r.timestamp, r.timestamp),
            Self::Memory(r) => (r.timestamp, r.timestamp),
            Self::Pool(r) => (r.timestamp, r.timestamp),
            Self::Alien(_) => (0, 0),
        }
    }

    /// 0 for what has none.
    pub fn correlation_id(&self) -> u32 {
        match self {
            Self::Kernel(r) => r.correlation_id,
            Self::Memcpy(r) => r.correlation_id,
            Self::Memset(r) => r.correlation_id,
            Self::PeerCopy(r) => r.correlation_id,
            Self::Graph(r) => r.correlation_id,
            Self::Api(r) => r.correlation_id,
            Self::Synchronization(r) => r.correlation_id,
            Self::Memory(r) => r.correlation_id,
            Self::Pool(r) => r.correlation_id,
            Self::Overhead(_) | Self::Marker(_) | Self::Alien(_) => 0,
        }
    }

    /// # Safety
    /// At `at` begins a record, and `left` bytes are readable.
    unsafe fn read(at: *const u8, left: usize) -> Self {
        // SAFETY: at least the record's kind is there; the rest by contract, and each kind has its structure.
        unsafe {
            match at.cast::<u32>().read() {
                KIND_KERNEL | KIND_CONCURRENT_KERNEL => Self::Kernel(prefix(at, left)),
                KIND_MEMCPY => Self::Memcpy(prefix(at, left)),
                KIND_MEMSET => Self::Memset(prefix(at, left)),
                KIND_MEMCPY2 => Self::PeerCopy(prefix(at, left)),
                KIND_GRAPH_TRACE => Self::Graph(prefix(at, left)),
                KIND_DRIVER | KIND_RUNTIME => Self::Api(prefix(at, left)),
                KIND_MARKER => Self::Marker(prefix(at, left)),
                KIND_OVERHEAD => Self::Overhead(prefix(at, left)),
                KIND_SYNCHRONIZATION => Self::Synchronization(prefix(at, left)),
                KIND_MEMORY2 => Self::Memory(prefix(at, left)),
                KIND_MEMORY_POOL => Self::Pool(prefix(at, left)),
                other => Self::Alien(other),
            }
        }
    }
}

/// A text that CUPTI points at; None for null.
pub fn text(at: *const std::ffi::c_char) -> Option<String> {
    // SAFETY: CUPTI's texts are NUL-terminated and live as long as the process, or at least as the callback.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}

/// A kernel record's name.
pub fn name(kernel: &KernelRecord) -> String {
    text(kernel.name).unwrap_or_default()
}

/// `CUpti_CallbackData`.
#[repr(C)]
struct CallbackData {
    site: u32,
    function: *const std::ffi::c_char,
    params: *const c_void,
    return_value: *mut c_void,
    symbol: *const std::ffi::c_char,
    context: *mut c_void,
    context_uid: u32,
    correlation_data: *mut u64,
    correlation_id: u32,
}

#[repr(C)]
struct ModuleData {
    id: u32,
    size: usize,
    cubin: *const u8,
}

/// # Safety
/// Called by CUPTI with the data that the domain and id call for.
unsafe extern "C" fn on_callback(_user: *mut c_void, domain: u32, cbid: u32, data: *const c_void) {
    let is_module = domain == 3 && matches!(cbid, 6 | 7);
    // SAFETY: resource data are three pointers, the third of which describes the module; its bytes are valid now.
    let cubin = is_module.then(|| unsafe {
        let module = &*data.cast::<*const ModuleData>().add(2).read();
        (module.cubin.expose_provenance(), std::slice::from_raw_parts(module.cubin, module.size).to_vec())
    });
    let call = matches!(domain, 1 | 2).then(|| {
        // SAFETY: in these domains the data describe a call, and are valid now.
        let data = unsafe { &*data.cast::<CallbackData>() };
        Call {
            site: data.site,
            function: text(data.function).unwrap_or_default(),
            symbol: text(data.symbol),
            correlation_id: data.correlation_id,
        }
    });
    lock(&EVENTS).push(Event { domain, cbid, thread: std::thread::current().id(), cubin, call });
    if let Some(work) = &*lock(&DURING) {
        work();
    }
}

/// # Safety
/// The three places may be written.
unsafe extern "C" fn on_buffer_requested(buffer: *mut *mut u8, size: *mut usize, max_records: *mut usize) {
    let bytes = BUFFER_BYTES.load(Ordering::Relaxed);
    let fresh: *mut u8 = match bytes {
        usize::MAX => std::ptr::null_mut(),
        // Leaked: a test's process is short.
        _ => Box::leak(vec![0_u64; bytes / 8 + 1].into_boxed_slice()).as_mut_ptr().cast(),
    };
    // SAFETY: by contract.
    unsafe {
        buffer.write(fresh);
        size.write(if bytes == usize::MAX { 0 } else { bytes });
        max_records.write(MAX_RECORDS.load(Ordering::Relaxed));
    }
}

/// # Safety
/// `buffer` has `valid` bytes of records.
unsafe extern "C" fn on_buffer_completed(_: *mut c_void, _: u32, buffer: *mut u8, _size: usize, valid: usize) {
    // SAFETY: stored from a function pointer of this type when the library was loaded.
    let next = unsafe { std::mem::transmute::<usize, NextRecord>(NEXT_RECORD.load(Ordering::Relaxed)) };
    DELIVERED_BYTES.fetch_add(valid as u64, Ordering::Relaxed);
    let mut record = std::ptr::null_mut();
    // SAFETY: by contract; `record` is null or the one before.
    while unsafe { next(buffer, valid, &raw mut record) } == 0 {
        let left = valid - (record.addr() - buffer.addr());
        // SAFETY: a record begins here, and the buffer is readable to its end.
        let read = unsafe { Record::read(record, left) };
        lock(&RECORDS).push(read);
    }
    let mut completers = lock(&COMPLETERS);
    let me = std::thread::current().id();
    if !completers.contains(&me) {
        completers.push(me);
    }
}

/// The record at `at`, of which at most `left` bytes are there.
///
/// # Safety
/// `left` bytes are readable, and `T` is one of the record structures, for which all bytes zero are valid.
unsafe fn prefix<T>(at: *const u8, left: usize) -> T {
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: no more than the structure and no more than is readable; all bytes of the result are initialised.
    unsafe {
        at.copy_to_nonoverlapping(value.as_mut_ptr().cast(), left.min(size_of::<T>()));
        value.assume_init()
    }
}

fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
