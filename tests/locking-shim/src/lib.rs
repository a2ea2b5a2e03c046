//! The positive control: like `naive-shim` in everything but one word, and never hangs.
//!
//! Its callback takes a lock too, but one that no thread holds across a CUPTI call. It shows that the
//! fakes do not hang because of a lock, or because of which library is loaded, but because of the cycle.

#[path = "../../naive-shim/src/engine/mod.rs"]
mod engine;

/// The lock of the callback is its own.
const LOCK: engine::CallbackLock = engine::CallbackLock::Own;

/// Called by the driver at `cuInit`. 1 on success, as NVIDIA's injection libraries return.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> i32 {
    engine::start(LOCK)
}
