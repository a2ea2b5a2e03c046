//! NVTX ranges, from the application's side: what NVIDIA's header does, as far as these tests need it.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use gputap_tests::{artifact, isolated};

use crate::cuda::Cuda;
use crate::cupti::{Cupti, Record, records, text};

const MARKER: u32 = 12;
const FUNCTIONS: usize = 16;

type Place = AtomicPtr<c_void>;
type Table = [AtomicPtr<Place>; FUNCTIONS];
type GetTable = unsafe extern "C" fn(u32) -> *const ExportTable;

/// The application's own function pointers; null does nothing. One array for each of NVTX's modules.
static CORE: [Place; FUNCTIONS] = [const { Place::new(std::ptr::null_mut()) }; FUNCTIONS];
static CORE2: [Place; FUNCTIONS] = [const { Place::new(std::ptr::null_mut()) }; FUNCTIONS];
/// Where those pointers lie, as the injected library gets it. Number 0 is nothing's.
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

/// What the header does at an application's first NVTX call.
fn initialize() -> c_int {
    let path = std::env::var_os("NVTX_INJECTION64_PATH").expect("set");
    // SAFETY: our own library, which is never unloaded.
    let library = Box::leak(Box::new(unsafe { libloading::Library::new(path) }.expect("loads")));
    // SAFETY: the type is that of NVIDIA's header, and the tables live as long as the process.
    unsafe {
        library.get::<unsafe extern "C" fn(GetTable) -> c_int>(b"InitializeInjectionNvtx2\0").unwrap()(export_table)
    }
}

/// A function that was injected, by its number.
macro_rules! injected {
    ($places:ident[$number:literal], fn($($type:ty),*) $(-> $result:ty)? $(, $argument:expr)*) => {{
        let function = $places[$number].load(Ordering::Relaxed);
        assert!(!function.is_null());
        // SAFETY: the number is that of a function of this type in NVIDIA's header, and strings are passed where it
        // wants strings.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) $(-> $result)?>(function)($($argument),*) }
    }};
}

fn push(name: &str) -> c_int {
    let name = CString::new(name).unwrap();
    injected!(CORE[9], fn(*const c_char) -> c_int, name.as_ptr())
}

fn pop() -> c_int {
    injected!(CORE[11], fn() -> c_int)
}

fn mark(name: &str) {
    let name = CString::new(name).unwrap();
    injected!(CORE[2], fn(*const c_char), name.as_ptr());
}

fn domain(name: &str) -> *mut c_void {
    let name = CString::new(name).unwrap();
    injected!(CORE2[12], fn(*const c_char) -> *mut c_void, name.as_ptr())
}

/// `nvtxEventAttributes_t` with an ASCII (1) or registered (3) message.
#[repr(C)]
struct Attributes {
    head: [u32; 8],
    message_type: i32,
    message: *const c_void,
}

impl Attributes {
    fn new(message_type: i32, message: *const c_void) -> Self {
        Self { head: [3 | 48 << 16, 0, 0, 0, 0, 0, 0, 0], message_type, message }
    }
}

fn recording() -> Cupti {
    let (cuda, cupti) = (Cuda::load(), Cupti::load());
    cuda.start();
    cupti.record();
    assert_eq!(cupti.enable(MARKER), 0);
    assert_eq!(initialize(), 1);
    cupti
}

/// Flags, id, name and domain of each marker.
fn markers(cupti: &Cupti) -> Vec<(u32, u32, Option<String>, Option<String>)> {
    assert_eq!(cupti.flush(false), 0);
    let marker = |record: &Record| match record {
        Record::Marker(m) => (m.flags, m.id, text(m.name), text(m.domain)),
        other => panic!("{other:?}"),
    };
    records().iter().map(marker).collect()
}

fn named(name: &str) -> Option<String> {
    Some(name.into())
}

fn in_application(test: &str, body: impl FnOnce()) {
    let cupti = artifact("fake_cupti").expect("built");
    isolated(test, &[("NVTX_INJECTION64_PATH", cupti.to_str().unwrap())], body);
}

#[test]
fn ranges_nest_and_end_under_their_own_ids() {
    in_application("nvtx::ranges_nest_and_end_under_their_own_ids", || {
        let cupti = recording();
        assert_eq!((push("step"), push("forward")), (0, 1));
        mark("here");
        assert_eq!((pop(), pop(), pop()), (1, 0, -1));
        let expected = [
            (2, 1, named("step"), None),
            (2, 2, named("forward"), None),
            (1, 3, named("here"), None),
            (4, 2, None, None),
            (4, 1, None, None),
        ];
        assert_eq!(markers(&cupti), expected);
    });
}

#[test]
fn domains_have_ranges_of_their_own() {
    in_application("nvtx::domains_have_ranges_of_their_own", || {
        let cupti = recording();
        let nccl = domain("NCCL");
        let text = |name: &CString| Attributes::new(1, name.as_ptr().cast());
        let name = CString::new("all-reduce").unwrap();
        let ascii = text(&name);
        push("step");
        let depth = injected!(CORE2[4], fn(*mut c_void, *const Attributes) -> c_int, nccl, &raw const ascii);
        assert_eq!(depth, 0, "the first in its domain");
        assert_eq!(pop(), 0, "of the default domain");
        assert_eq!(injected!(CORE2[5], fn(*mut c_void) -> c_int, nccl), 0);
        let handle = injected!(CORE2[10], fn(*mut c_void, *const c_char) -> *mut c_void, nccl, name.as_ptr());
        let registered = Attributes::new(3, handle);
        let id = injected!(CORE2[2], fn(*mut c_void, *const Attributes) -> u64, nccl, &raw const registered);
        injected!(CORE2[3], fn(*mut c_void, u64), nccl, id);
        let expected = [
            (2, 1, named("step"), None),
            (2, 2, named("all-reduce"), named("NCCL")),
            (4, 1, None, None),
            (4, 2, None, named("NCCL")),
            (2, 3, named("all-reduce"), named("NCCL")),
            (4, 3, None, named("NCCL")),
        ];
        assert_eq!(markers(&cupti), expected);
    });
}

#[test]
fn markers_are_recorded_only_while_enabled() {
    in_application("nvtx::markers_are_recorded_only_while_enabled", || {
        let cupti = recording();
        cupti.disable(MARKER);
        mark("unseen");
        cupti.enable(MARKER);
        mark("seen");
        assert_eq!(markers(&cupti), [(1, 2, named("seen"), None)]);
    });
}
