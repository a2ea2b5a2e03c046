//! The injection that the real driver does at `cuInit`.

use std::ffi::CString;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

/// Runs `first` in the process's first call; later calls wait for it, except from the thread that runs it.
pub fn once(first: impl FnOnce()) {
    enum Phase {
        Never,
        By(ThreadId),
        Done,
    }
    static PHASE: (Mutex<Phase>, Condvar) = (Mutex::new(Phase::Never), Condvar::new());
    let me = std::thread::current().id();
    let mut phase = PHASE.0.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match *phase {
            Phase::Done => return,
            Phase::By(thread) if thread == me => return,
            Phase::By(_) => phase = PHASE.1.wait(phase).unwrap_or_else(PoisonError::into_inner),
            Phase::Never => break,
        }
    }
    *phase = Phase::By(me);
    drop(phase);
    first();
    *PHASE.0.lock().unwrap_or_else(PoisonError::into_inner) = Phase::Done;
    PHASE.1.notify_all();
}

/// Loads `CUDA_INJECTION64_PATH`, if set, and calls its `InitializeInjection`. A failure is said on stderr and is
/// otherwise without effect, as in the driver.
pub fn inject() {
    let Some(path) = std::env::var_os("CUDA_INJECTION64_PATH").filter(|p| !p.is_empty()) else { return };
    let Ok(c_path) = CString::new(path.as_encoded_bytes()) else { return };
    // SAFETY: a NUL-terminated path; what the library's constructors do is the business of who named it.
    let library = unsafe { libc::dlopen(c_path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        eprintln!("fake-cuda: cannot load the injection library {}: {}", path.display(), last_dl_error());
        return;
    }
    // SAFETY: an open library, never closed, and a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(library, c"InitializeInjection".as_ptr()) };
    if symbol.is_null() {
        eprintln!("fake-cuda: {} has no InitializeInjection", path.display());
        return;
    }
    // SAFETY: NVIDIA documents the symbol as `int InitializeInjection(void)`, and the library stays loaded.
    let initialize: extern "C" fn() -> i32 = unsafe { std::mem::transmute(symbol) };
    initialize();
}

fn last_dl_error() -> String {
    // SAFETY: dlerror returns null or a string that is valid until the next dl call of this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".into();
    }
    // SAFETY: not null, so a NUL-terminated string as above.
    unsafe { std::ffi::CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
