//! libgputap_shim.so: what the CUDA driver loads into the tapped process (CUDA_INJECTION64_PATH).
//!
//! # Guarantees
//! - Callbacks wait for nothing (see the crate gputap-callbacks, which cannot name anything in here).
//! - All other CUPTI calls are made by one thread, the timer, which owns the only `timer::guard::Guard`. There is no lock
//!   around CUPTI for anybody to wait for.
//! - A failure of ours leaves the application as if untapped, and is a state with a reason that readers can see.
//!
//! Read `start.rs` first, then `timer/`.

mod driver;
mod exit;
mod library;
mod nvtx;
mod settings;
mod start;
mod timer;

use std::{
    ffi::c_int,
    panic::{self, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
};

static STARTED: AtomicBool = AtomicBool::new(false);

/// Called once by the driver, inside the application's `cuInit`. Always gives 1: whatever happens to us, the
/// application goes on.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    if STARTED.swap(true, Ordering::AcqRel) {
        return 1;
    }
    // This library has a Rust runtime of its own: the hook is ours alone. Panics are counted, not printed.
    let _ = catch_unwind(|| {
        panic::set_hook(Box::new(|_| {}));
        start::start();
    });
    1
}
