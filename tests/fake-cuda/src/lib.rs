//! A `libcuda.so.1` without a GPU: the part of the driver API that a training job and a tap use.
//!
//! What it reproduces of the real driver, because a tap's correctness hangs on it:
//! - the first `cuInit` loads the library named in `CUDA_INJECTION64_PATH` and calls its `InitializeInjection`, once;
//! - one **driver lock**, not recursive, is held while a module loads or unloads and while a context is made or
//!   destroyed, CUPTI's callbacks included, and when CUPTI is told that a wait is over; every other call that changes
//!   driver state takes it shortly;
//! - under `CUDA_MODULE_LOADING=LAZY` (the default) `cuModuleLoadData` only registers the image and the first launch
//!   of one of its functions loads it, inside that launch, which holds the driver lock from begin to end;
//! - what a context had is unloaded with it, by `cuCtxDestroy` and by a reset of the device;
//! - the cubin shown to CUPTI is a copy that is overwritten with other bytes, but stays mapped, once the callback is
//!   over;
//! - kernel names live as long as the process.
//!
//! The GPU is a timeline per stream: a launch starts when the stream is free and ends after the duration that the
//! cubin's `.nv.info.NAME` section names (`elf.rs`); nothing is computed and no memory is copied. A launch waits
//! while its stream is more than `FAKE_CUDA_QUEUE_MS` (default 20) behind, as a full launch queue makes it do.
//! Device time is CLOCK_REALTIME in nanoseconds.
//!
//! Settings, read once from the environment: `FAKE_CUDA_QUEUE_MS`, `FAKE_CUDA_DEVICES` (1 to 8, default 1),
//! `FAKE_CUDA_DRIVER_VERSION` (what `cuDriverGetVersion` says, default 13000), `FAKE_CUDA_FIRST_CORRELATION` (the first
//! correlation id, default 1; 4294967290 wraps after six calls).
//!
//! A CUPTI plugs in through `fake_cuda_register_hooks` (`hook_abi.rs`). The driver knows nothing of who listens.

mod api_context;
mod api_copy;
mod api_device;
mod api_graph;
mod api_launch;
mod api_memory;
mod api_module;
mod api_runtime;
mod api_synchronize;
mod driver_lock;
mod elf;
mod graphs;
pub mod hook_abi;
mod hooks;
mod inject;
mod load_area;
mod memory;
mod names;
mod result;
mod settings;
mod slab;
mod state;
mod timeline;
