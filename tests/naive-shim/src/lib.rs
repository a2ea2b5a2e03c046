//! The negative control: an injection library that is wrong on purpose, and hangs.
//!
//! Its callback (`MODULE_LOADED`, or what `NAIVE_CALLBACK` says) takes the guard, the same mutex that its timer thread
//! holds across `cuptiActivityFlushAll`, to compute the cubin's CRC. The callback runs inside the driver, under the driver's lock; the flush waits for
//! CUPTI's worker; the worker waits for the driver's lock. Only `LOCK` tells it from the positive control
//! (`locking-shim`), which runs the same `engine/`.

mod engine;

/// The lock of the callback is the flusher's.
const LOCK: engine::CallbackLock = engine::CallbackLock::Guard;

/// Called by the driver at `cuInit`. 1 on success, as NVIDIA's injection libraries return.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> i32 {
    engine::start(LOCK)
}
