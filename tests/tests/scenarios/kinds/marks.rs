//! NVTX from the application's side: what NVIDIA's header does, as far as these tests need it.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

const FUNCTIONS: usize = 16;

type Place = AtomicPtr<c_void>;
type Table = [AtomicPtr<Place>; FUNCTIONS];

/// The application's function pointers, by NVTX's modules CORE and CORE2; null does nothing. Number 0 is nothing's.
static CORE: [Place; FUNCTIONS] = [const { Place::new(std::ptr::null_mut()) }; FUNCTIONS];
static CORE2: [Place; FUNCTIONS] = [const { Place::new(std::ptr::null_mut()) }; FUNCTIONS];
static CORE_TABLE: Table = [const { AtomicPtr::new(std::ptr::null_mut()) }; FUNCTIONS];
static CORE2_TABLE: Table = [const { AtomicPtr::new(std::ptr::null_mut()) }; FUNCTIONS];

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct ExportTable {
    size: usize,
    module_table: unsafe extern "C" fn(c_int, *mut *const Table, *mut c_uint) -> c_int,
}

static EXPORT: ExportTable = ExportTable { size: size_of::<ExportTable>(), module_table };

unsafe extern "C" fn export_table(id: u32) -> *const ExportTable {
    if id == 1 { &raw const EXPORT } else { std::ptr::null() }
}

/// # Safety
/// Both places may be written.
unsafe extern "C" fn module_table(module: c_int, table: *mut *const Table, size: *mut c_uint) -> c_int {
    let (places, given) = match module {
        1 => (&CORE, &CORE_TABLE),
        5 => (&CORE2, &CORE2_TABLE),
        _ => return 0,
    };
    for (entry, place) in given.iter().zip(places).skip(1) {
        entry.store(std::ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
    }
    // SAFETY: by contract.
    unsafe {
        table.write(given);
        size.write(FUNCTIONS as c_uint);
    }
    1
}

/// What the header does at an application's first call; 1 where something was injected.
pub fn initialize() -> c_int {
    let Some(path) = std::env::var_os("NVTX_INJECTION64_PATH") else { return 0 };
    // SAFETY: a library of ours, which is never unloaded.
    let library = Box::leak(Box::new(unsafe { libloading::Library::new(path) }.expect("loads")));
    type Initialize = unsafe extern "C" fn(unsafe extern "C" fn(u32) -> *const ExportTable) -> c_int;
    // SAFETY: the type is that of NVIDIA's header, and the tables live as long as the process.
    unsafe { library.get::<Initialize>(b"InitializeInjectionNvtx2\0") }
        .map_or(0, |initialize| unsafe { initialize(export_table) })
}

/// A function that was injected, by its number; where none was, nothing happens, as in the header.
macro_rules! injected {
    ($places:ident[$number:literal], fn($($type:ty),*) $(-> $result:ty)?, $nothing:expr $(, $argument:expr)*) => {{
        let function = $places[$number].load(Ordering::Relaxed);
        if function.is_null() {
            $nothing
        } else {
            // SAFETY: the number is that of a function of this type in NVIDIA's header, and strings are passed where
            // it wants strings.
            unsafe {
                type Function = unsafe extern "C" fn($($type),*) $(-> $result)?;
                std::mem::transmute::<*mut c_void, Function>(function)($($argument),*)
            }
        }
    }};
}

fn text(text: &str) -> CString {
    CString::new(text).expect("no NUL")
}

pub fn push(name: &str) {
    injected!(CORE[9], fn(*const c_char) -> c_int, 0, text(name).as_ptr());
}

pub fn pop() {
    injected!(CORE[11], fn() -> c_int, 0);
}

pub fn mark(name: &str) {
    injected!(CORE[2], fn(*const c_char), (), text(name).as_ptr());
}

pub fn start(name: &str) -> u64 {
    injected!(CORE[5], fn(*const c_char) -> u64, 0, text(name).as_ptr())
}

pub fn end(id: u64) {
    injected!(CORE[7], fn(u64), (), id);
}

/// `nvtxEventAttributes_t` with an ASCII message.
#[repr(C)]
struct Attributes {
    head: [u32; 8],
    message_type: i32,
    message: *const c_char,
}

/// A range of this name in a domain.
pub fn range_in(domain: &str, name: &str) {
    let handle = injected!(CORE2[12], fn(*const c_char) -> *mut c_void, std::ptr::null_mut(), text(domain).as_ptr());
    let name = text(name);
    let message = Attributes { head: [3 | 48 << 16, 0, 0, 0, 0, 0, 0, 0], message_type: 1, message: name.as_ptr() };
    injected!(CORE2[4], fn(*mut c_void, *const Attributes) -> c_int, 0, handle, &raw const message);
    injected!(CORE2[5], fn(*mut c_void) -> c_int, 0, handle);
}
