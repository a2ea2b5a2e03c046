//! NVTX: what applications mark. An NVTX library, at its first call in a process, loads what NVTX_INJECTION64_PATH names
//! and hands it its table; CUPTI turns the calls into records. So that the variable need not name the libcupti that the
//! job will use, it names us, and we hand the table on.

use crate::{library, settings::Settings};
use libloading::Library;
use std::{env, ffi::c_int, ffi::c_void, panic::catch_unwind};

const VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// `NvtxGetExportTableFunc_t`: passed on, never called.
type GetExportTable = *const c_void;
type Initialize = unsafe extern "C" fn(GetExportTable) -> c_int;

/// Why markers cannot be had; `None` where they can.
pub fn is_missing() -> Option<&'static str> {
    let set = env::var_os(VARIABLE).is_some_and(|path| !path.is_empty());
    (!set).then_some("NVTX_INJECTION64_PATH was not set when it started: `gputap env` says to what, launching sets it")
}

/// Called once by the application's NVTX library. Gives 0 where CUPTI cannot take it: NVTX then stays off, as without us.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjectionNvtx2(get_export_table: GetExportTable) -> c_int {
    catch_unwind(|| hand_on(get_export_table)).unwrap_or(None).unwrap_or(0)
}

fn hand_on(get_export_table: GetExportTable) -> Option<c_int> {
    let settings = Settings::from_environment();
    let cupti = library::open(settings.cupti.as_deref()).ok()?;
    // SAFETY: this library is open already, and nothing is run.
    let library = unsafe { Library::new(&cupti.path) }.ok()?;
    // SAFETY: NVTX's interface gives the function of this name this type.
    let initialize = *unsafe { library.get::<Initialize>("InitializeInjectionNvtx2") }.ok()?;
    // Never closed: NVTX goes on calling it.
    std::mem::forget(library);
    // SAFETY: the table is what the application's NVTX library gave us, to be used as CUPTI would if it had been named.
    Some(unsafe { initialize(get_export_table) })
}
