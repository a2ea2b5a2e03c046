//! What NVIDIA's header has in an application that uses NVTX: its function pointers, and what it does at the first call.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

const FUNCTIONS: usize = 16;

pub type Place = AtomicPtr<c_void>;
type Table = [AtomicPtr<Place>; FUNCTIONS];

/// The application's function pointers, by NVTX's modules CORE and CORE2; null does nothing. Number 0 is nothing's.
pub static CORE: [Place; FUNCTIONS] = [const { Place::new(std::ptr::null_mut()) }; FUNCTIONS];
pub static CORE2: [Place; FUNCTIONS] = [const { Place::new(std::ptr::null_mut()) }; FUNCTIONS];
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
