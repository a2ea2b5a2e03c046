//! Finding libcupti and the functions that we call in it.

mod calls;
mod places;

pub use calls::{ActivityCalls, Calls};

use calls::Symbols;
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
    /// What it lacks, a line each.
    pub notes: Vec<String>,
}

/// Why there is no CUPTI to use. The text says which libraries were tried.
#[derive(Debug)]
pub enum NoCupti {
    NotFound(String),
    TooOld(String),
    SymbolMissing(String),
    Failed(String),
}

/// Opens the first libcupti that can be used, in this order: `wanted` and no other if it is given; the one that the
/// process has mapped already; by name, 13, 12, 11; toolkit folders; the folders of pip's wheels.
pub fn open(wanted: Option<&Path>) -> Result<Cupti, NoCupti> {
    let candidates: Vec<PathBuf> = match wanted {
        Some(path) => vec![path.to_owned()],
        None => places::candidates(),
    };
    let mut tried = Vec::new();
    let mut useless = None;
    for path in candidates {
        // SAFETY: opening libcupti runs its initialisers, which is what we want of it; libraries of this name are
        // NVIDIA's, or what the user named.
        match unsafe { Library::new(&path) } {
            Ok(library) => match use_library(library, &path) {
                Ok(cupti) => return Ok(cupti),
                // The one that would have been chosen is the one to hear about.
                Err(error) => _ = useless.get_or_insert(error),
            },
            // A bare name that is nowhere is no news.
            Err(error) if path.is_absolute() || wanted.is_some() => tried.push(format!("{}: {error}", path.display())),
            Err(_) => {}
        }
    }
    let nowhere = || if tried.is_empty() { String::from("no libcupti.so anywhere") } else { tried.join("; ") };
    Err(useless.unwrap_or_else(|| NoCupti::NotFound(nowhere())))
}

fn use_library(library: Library, path: &Path) -> Result<Cupti, NoCupti> {
    // Never closed: CUPTI's own threads may run its code.
    let library: &'static Library = Box::leak(Box::new(library));
    let path = path_of(library).unwrap_or_else(|| path.display().to_string());
    let version = version_of(library).map_err(|e| NoCupti::Failed(format!("{path}: {e}")))?;
    let layouts = layout::for_version(version).map_err(|e| NoCupti::TooOld(format!("{path}: {e}")))?;
    let found = Calls::of(library).map_err(|symbol| NoCupti::SymbolMissing(format!("{path} has no {symbol}")))?;
    let (calls, mut notes) = found;
    if !layouts.exact {
        notes.push(format!("CUPTI {version} is newer than this gputap: records are read by the part that is known"));
    }
    Ok(Cupti { path, version, layouts, calls, notes })
}

/// Where the library lies: a bare name says nothing, and the process may have mapped another one besides.
fn path_of(library: &'static Library) -> Option<String> {
    let inside = library.find("cuptiGetVersion")?;
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
    let get_version = library.find("cuptiGetVersion").ok_or("no cuptiGetVersion")?;
    // SAFETY: the type is that of cuptiGetVersion in every version.
    let get_version = unsafe { std::mem::transmute::<*const std::ffi::c_void, abi::GetVersion>(get_version) };
    let mut version = 0;
    // SAFETY: `version` may be written.
    match unsafe { get_version(&mut version) } {
        CuptiResult::SUCCESS => Ok(version),
        failed => Err(format!("cuptiGetVersion gives error {} (13.3 and later need a driver)", failed.0)),
    }
}

impl calls::Symbols for Library {
    fn find(&self, name: &'static str) -> Option<*const std::ffi::c_void> {
        // SAFETY: looked at as an address only.
        unsafe { self.get::<*const std::ffi::c_void>(name) }.ok().map(|symbol| *symbol)
    }
}
