//! NVTX: markers and ranges of the application, as the library that `NVTX_INJECTION64_PATH` names gets them.
//!
//! An application's NVTX header loads that library at its first call, looks `InitializeInjectionNvtx2` up, and hands it
//! a function that gives tables of pointers to its own function pointers; the library puts its functions there. Only
//! the narrow-character functions of the modules CORE and CORE2 are here. A range's end is told under its begin's id.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::activity;
use crate::buffers;
use crate::faults;
use crate::ids::realtime_ns;
use crate::layout_host::KIND_MARKER;
use crate::records_host::{self, Marker};

const INSTANTANEOUS: u32 = 1;
const START: u32 = 2;
const END: u32 = 4;

const TABLE_CALLBACKS: u32 = 1;
const MODULE_CORE: c_int = 1;
const MODULE_CORE2: c_int = 5;
const MESSAGE_ASCII: i32 = 1;
const MESSAGE_REGISTERED: i32 = 3;

/// `NvtxGetExportTableFunc_t`.
pub type GetExportTable = unsafe extern "C" fn(u32) -> *const ExportTableCallbacks;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
pub struct ExportTableCallbacks {
    size: usize,
    module_table: Option<unsafe extern "C" fn(c_int, *mut *mut *mut *const c_void, *mut c_uint) -> c_int>,
}

/// `nvtxEventAttributes_t`.
#[repr(C)]
pub struct EventAttributes {
    version: u16,
    size: u16,
    category: u32,
    color_type: i32,
    color: u32,
    payload_type: i32,
    reserved0: i32,
    payload: u64,
    message_type: i32,
    message: *const c_char,
}

/// A domain or a registered string: a text that lives as long as the process.
type Text = *const c_char;

#[derive(Default)]
struct Ranges {
    last_id: u32,
    /// Open pushed ranges, by thread and domain.
    pushed: HashMap<(i32, usize), Vec<u32>>,
    texts: HashSet<&'static CStr>,
}

static RANGES: Mutex<Option<Ranges>> = Mutex::new(None);

/// 1 on success, as NVTX wants it.
///
/// # Safety
/// `get_export_table` gives NVTX's tables, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(get_export_table: Option<GetExportTable>) -> c_int {
    if faults::hit("nvtx").is_some() {
        return 0;
    }
    let Some(get_export_table) = get_export_table else { return 0 };
    // SAFETY: by contract it gives null or a table that lives as long as the process.
    let table = unsafe { get_export_table(TABLE_CALLBACKS).as_ref() };
    let Some(module_table) = table.and_then(|table| table.module_table) else { return 0 };
    let core: [(usize, *const c_void); 8] = [
        (1, mark_ex as *const c_void),
        (2, mark as *const c_void),
        (4, range_start_ex as *const c_void),
        (5, range_start as *const c_void),
        (7, range_end as *const c_void),
        (8, range_push_ex as *const c_void),
        (9, range_push as *const c_void),
        (11, range_pop as *const c_void),
    ];
    let core2: [(usize, *const c_void); 7] = [
        (1, domain_mark_ex as *const c_void),
        (2, domain_range_start_ex as *const c_void),
        (3, domain_range_end as *const c_void),
        (4, domain_range_push_ex as *const c_void),
        (5, domain_range_pop as *const c_void),
        (10, domain_register_string as *const c_void),
        (12, domain_create as *const c_void),
    ];
    // SAFETY: the function is NVTX's, and the numbers are those of the functions' types in the two modules.
    let all = unsafe { put(module_table, MODULE_CORE, &core) && put(module_table, MODULE_CORE2, &core2) };
    c_int::from(all)
}

/// # Safety
/// `module_table` is NVTX's, and the functions have the types of their numbers in `module`.
unsafe fn put(
    module_table: unsafe extern "C" fn(c_int, *mut *mut *mut *const c_void, *mut c_uint) -> c_int,
    module: c_int,
    functions: &[(usize, *const c_void)],
) -> bool {
    let (mut table, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: both places may be written.
    if unsafe { module_table(module, &raw mut table, &raw mut size) } == 0 || table.is_null() {
        return false;
    }
    for &(number, function) in functions.iter().filter(|(number, _)| *number < size as usize) {
        // SAFETY: the table has `size` entries, each null or the place of a function pointer that may be set.
        unsafe {
            let place = table.add(number).read();
            if !place.is_null() {
                place.write(function);
            }
        }
    }
    true
}

fn ranges() -> MutexGuard<'static, Option<Ranges>> {
    RANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ranges {
    fn next_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// The one copy of a text, for ever: records point at it.
    fn text(&mut self, text: &CStr) -> Text {
        if let Some(known) = self.texts.get(text) {
            return known.as_ptr();
        }
        let kept: &'static CStr = Box::leak(text.into());
        self.texts.insert(kept);
        kept.as_ptr()
    }
}

/// # Safety
/// `message` is null or a NUL-terminated string.
unsafe fn keep(message: *const c_char) -> Text {
    if message.is_null() {
        return message;
    }
    // SAFETY: not null, so by contract a string.
    let message = unsafe { CStr::from_ptr(message) };
    ranges().get_or_insert_default().text(message)
}

/// # Safety
/// `attributes` is null or valid, its message of the type that it says.
unsafe fn message(attributes: *const EventAttributes) -> Text {
    // SAFETY: by contract.
    match unsafe { attributes.as_ref() } {
        // SAFETY: by contract an ASCII message is a string.
        Some(given) if given.message_type == MESSAGE_ASCII => unsafe { keep(given.message) },
        // A registered string's handle is the text that `domain_register_string` gave.
        Some(given) if given.message_type == MESSAGE_REGISTERED => given.message,
        _ => std::ptr::null(),
    }
}

fn tell(flags: u32, id: u32, name: Text, domain: Text) {
    if activity::is_on(KIND_MARKER) {
        let marker = Marker { flags, id, timestamp_ns: realtime_ns(), name, domain };
        buffers::lay_down(records_host::of_marker(&marker));
    }
}

fn begin(flags: u32, name: Text, domain: Text) -> u32 {
    let id = ranges().get_or_insert_default().next_id();
    tell(flags, id, name, domain);
    id
}

fn place(domain: Text) -> (i32, usize) {
    // SAFETY: no preconditions.
    (unsafe { libc::gettid() }, domain.addr())
}

/// How deep the range lies, from 0.
fn push(name: Text, domain: Text) -> c_int {
    let id = begin(START, name, domain);
    let mut ranges = ranges();
    let open = ranges.get_or_insert_default().pushed.entry(place(domain)).or_default();
    open.push(id);
    open.len() as c_int - 1
}

/// How deep the range lay; below 0 if none was open.
fn pop(domain: Text) -> c_int {
    let mut ranges = ranges();
    let open = ranges.get_or_insert_default().pushed.entry(place(domain)).or_default();
    let Some(id) = open.pop() else { return -1 };
    let depth = open.len() as c_int;
    drop(ranges);
    tell(END, id, std::ptr::null(), domain);
    depth
}

/// No domain's name: the default domain.
const DEFAULT: Text = std::ptr::null();

unsafe extern "C" fn mark(name: *const c_char) {
    // SAFETY: NVTX passes a string.
    begin(INSTANTANEOUS, unsafe { keep(name) }, DEFAULT);
}

unsafe extern "C" fn mark_ex(attributes: *const EventAttributes) {
    // SAFETY: NVTX passes valid attributes.
    unsafe { domain_mark_ex(DEFAULT, attributes) };
}

unsafe extern "C" fn range_start(name: *const c_char) -> u64 {
    // SAFETY: NVTX passes a string.
    u64::from(begin(START, unsafe { keep(name) }, DEFAULT))
}

unsafe extern "C" fn range_start_ex(attributes: *const EventAttributes) -> u64 {
    // SAFETY: NVTX passes valid attributes.
    unsafe { domain_range_start_ex(DEFAULT, attributes) }
}

extern "C" fn range_end(id: u64) {
    domain_range_end(DEFAULT, id);
}

unsafe extern "C" fn range_push(name: *const c_char) -> c_int {
    // SAFETY: NVTX passes a string.
    push(unsafe { keep(name) }, DEFAULT)
}

unsafe extern "C" fn range_push_ex(attributes: *const EventAttributes) -> c_int {
    // SAFETY: NVTX passes valid attributes.
    push(unsafe { message(attributes) }, DEFAULT)
}

extern "C" fn range_pop() -> c_int {
    pop(DEFAULT)
}

unsafe extern "C" fn domain_mark_ex(domain: Text, attributes: *const EventAttributes) {
    // SAFETY: NVTX passes valid attributes.
    begin(INSTANTANEOUS, unsafe { message(attributes) }, domain);
}

unsafe extern "C" fn domain_range_start_ex(domain: Text, attributes: *const EventAttributes) -> u64 {
    // SAFETY: NVTX passes valid attributes.
    u64::from(begin(START, unsafe { message(attributes) }, domain))
}

extern "C" fn domain_range_end(domain: Text, id: u64) {
    tell(END, id as u32, std::ptr::null(), domain);
}

unsafe extern "C" fn domain_range_push_ex(domain: Text, attributes: *const EventAttributes) -> c_int {
    // SAFETY: NVTX passes valid attributes.
    push(unsafe { message(attributes) }, domain)
}

extern "C" fn domain_range_pop(domain: Text) -> c_int {
    pop(domain)
}

unsafe extern "C" fn domain_register_string(_domain: Text, string: *const c_char) -> Text {
    // SAFETY: NVTX passes a string.
    unsafe { keep(string) }
}

/// A domain's handle is its name; two of one name are one domain.
unsafe extern "C" fn domain_create(name: *const c_char) -> Text {
    // SAFETY: NVTX passes a string.
    unsafe { keep(name) }
}
