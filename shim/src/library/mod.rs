//! Finding libcupti and the functions that we call in it.

mod places;

use gputap_cupti::{abi, constants::CuptiResult, layout};
use libloading::Library;
use std::path::{Path, PathBuf};

/// An opened libcupti: never closed.
pub struct Cupti {
    pub path: String,
    /// As `cuptiGetVersion` gives it.
    pub version: u32,
    pub layouts: layout::Layouts,
    pub calls: Calls,
}

/// The functions that the tap calls.
#[derive(Clone, Copy)]
pub struct Calls {
    pub subscribe: abi::Subscribe,
    pub unsubscribe: abi::Unsubscribe,
    pub finalize: abi::Finalize,
    pub enable_callback: abi::EnableCallback,
    pub register_callbacks: abi::ActivityRegisterCallbacks,
    pub enable: abi::ActivityEnable,
    pub disable: abi::ActivityDisable,
    pub flush_all: abi::ActivityFlushAll,
    pub next_record: abi::ActivityGetNextRecord,
    pub dropped_records: abi::ActivityGetNumDroppedRecords,
}

/// Why there is no CUPTI to use. The text says which libraries were tried.
#[derive(Debug)]
pub enum NoCupti {
    NotFound(String),
    TooOld(String),
    SymbolMissing(String),
    Failed(String),
}

/// Opens the first libcupti that can be opened, in this order: `wanted` and no other if it is given; the one that the
/// process has mapped already; by name, 13, 12, 11; toolkit folders; the folders of pip's wheels.
pub fn open(wanted: Option<&Path>) -> Result<Cupti, NoCupti> {
    let candidates: Vec<PathBuf> = match wanted {
        Some(path) => vec![path.to_owned()],
        None => places::candidates(),
    };
    let mut tried = Vec::new();
    for path in candidates {
        // SAFETY: opening libcupti runs its initialisers, which is what we want of it; libraries of this name are
        // NVIDIA's, or what the user named.
        match unsafe { Library::new(&path) } {
            Ok(library) => return use_library(library, &path),
            // A bare name that is nowhere is no news.
            Err(error) if path.is_absolute() || wanted.is_some() => tried.push(format!("{}: {error}", path.display())),
            Err(_) => {}
        }
    }
    Err(NoCupti::NotFound(if tried.is_empty() { String::from("no libcupti.so anywhere") } else { tried.join("; ") }))
}

fn use_library(library: Library, path: &Path) -> Result<Cupti, NoCupti> {
    // Never closed: CUPTI's own threads may run its code.
    let library: &'static Library = Box::leak(Box::new(library));
    let path = path_of(library).unwrap_or_else(|| path.display().to_string());
    let version = version_of(library).map_err(|e| NoCupti::Failed(format!("{path}: {e}")))?;
    let layouts = layout::for_version(version).map_err(|e| NoCupti::TooOld(format!("{path}: {e}")))?;
    let calls = Calls::of(library).map_err(|symbol| NoCupti::SymbolMissing(format!("{path} has no {symbol}")))?;
    Ok(Cupti { path, version, layouts, calls })
}

/// Where the library lies: a bare name says nothing, and the process may have mapped another one besides.
fn path_of(library: &'static Library) -> Option<String> {
    // SAFETY: looked at as an address only.
    let inside = unsafe { symbol::<*const std::ffi::c_void>(library, "cuptiGetVersion") }.ok()?;
    // SAFETY: zero is a valid Dl_info.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `found` may be written.
    if unsafe { libc::dladdr(inside, &mut found) } == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr gives a NUL-terminated name that stands while the library is open, which is for ever.
    Some(unsafe { std::ffi::CStr::from_ptr(found.dli_fname) }.to_string_lossy().into_owned())
}

fn version_of(library: &'static Library) -> Result<u32, String> {
    // SAFETY: the type is that of cuptiGetVersion in every version.
    let get_version = unsafe { symbol::<abi::GetVersion>(library, "cuptiGetVersion") }?;
    let mut version = 0;
    // SAFETY: `version` may be written.
    match unsafe { get_version(&mut version) } {
        CuptiResult::SUCCESS => Ok(version),
        failed => Err(format!("cuptiGetVersion gives error {} (13.3 and later need a driver)", failed.0)),
    }
}

/// # Safety
/// `T` is the type of the function called `name`.
unsafe fn symbol<T: Copy>(library: &'static Library, name: &'static str) -> Result<T, String> {
    // SAFETY: the caller's promise.
    unsafe { library.get::<T>(name) }.map(|s| *s).map_err(|_| String::from(name))
}

impl Calls {
    fn of(library: &'static Library) -> Result<Calls, String> {
        // SAFETY: the types are those of the functions of these names, the same from 11.8 to 13.5.
        unsafe {
            Ok(Calls {
                subscribe: symbol(library, "cuptiSubscribe")?,
                unsubscribe: symbol(library, "cuptiUnsubscribe")?,
                finalize: symbol(library, "cuptiFinalize")?,
                enable_callback: symbol(library, "cuptiEnableCallback")?,
                register_callbacks: symbol(library, "cuptiActivityRegisterCallbacks")?,
                enable: symbol(library, "cuptiActivityEnable")?,
                disable: symbol(library, "cuptiActivityDisable")?,
                flush_all: symbol(library, "cuptiActivityFlushAll")?,
                next_record: symbol(library, "cuptiActivityGetNextRecord")?,
                dropped_records: symbol(library, "cuptiActivityGetNumDroppedRecords")?,
            })
        }
    }
}
