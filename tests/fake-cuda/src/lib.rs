//! A `libcuda.so.1` without a GPU: the part of the driver API that a training job and a tap use.
//!
//! What it reproduces of the real driver, because a tap's correctness hangs on it:
//! - the first `cuInit` loads the library named in `CUDA_INJECTION64_PATH` and calls its `InitializeInjection`, once;
//! - one **driver lock**, not recursive, is held while a module loads, CUPTI's module callbacks included, and taken
//!   shortly by every other call that changes driver state;
//! - under `CUDA_MODULE_LOADING=LAZY` (the default) `cuModuleLoadData` only registers the image and the first launch
//!   of one of its functions loads it, inside that launch;
//! - the cubin shown to CUPTI is a copy that is overwritten with other bytes, but stays mapped, once the callback is
//!   over;
//! - kernel names live as long as the process.
//!
//! The GPU is a timeline per stream: a launch starts when the stream is free and ends after the duration that the
//! cubin's `.nv.info.NAME` section names (`elf.rs`); nothing is computed and no memory is copied. A launch waits
//! while its stream is more than `FAKE_CUDA_QUEUE_MS` (default 20) behind, as a full launch queue makes it do.
//! Device time is CLOCK_REALTIME in nanoseconds.
//!
//! A CUPTI plugs in through `fake_cuda_register_hooks` (`hook_abi.rs`). The driver knows nothing of who listens.

mod api_context;
mod api_copy;
mod api_device;
mod api_launch;
mod api_module;
mod driver_lock;
mod elf;
pub mod hook_abi;
mod hooks;
mod inject;
mod load_area;
mod names;
mod result;
mod slab;
mod state;
mod timeline;
