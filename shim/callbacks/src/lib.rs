//! What runs inside CUPTI's callbacks, on the application's and CUPTI's own threads.
//!
//! # Guarantee
//! Nothing here waits: no lock, no system call, no allocation, no thread-local, no printing, and no CUPTI call but the
//! two that read a completed buffer ([`records::RecordApi`]). The crate does not depend on the one that holds the
//! timer thread and its guard, so this code cannot even name them. With all that callback code has, this compiles:
//! ```
//! use gputap_callbacks::tapped::Tapped;
//! unsafe fn in_a_callback(tapped: &'static Tapped, buffer: *mut u8) {
//!     let _ = unsafe { tapped.records.records(buffer, 8) }.count();
//! }
//! ```
//! and the same with the guard named, or with another CUPTI call, does not:
//! ```compile_fail,E0433
//! use gputap_callbacks::tapped::Tapped;
//! unsafe fn in_a_callback(tapped: &'static Tapped, buffer: *mut u8) {
//!     let _ = unsafe { tapped.records.records(buffer, 8) }.count();
//! }
//! fn guard_of(timer: &gputap_shim::timer::Guard) {}
//! ```
//! ```compile_fail,E0599
//! use gputap_callbacks::tapped::Tapped;
//! unsafe fn in_a_callback(tapped: &'static Tapped, buffer: *mut u8) {
//!     let _ = unsafe { tapped.records.flush_all(0) };
//! }
//! ```
//!
//! - [`door`]: the three `extern "C"` functions that CUPTI calls. Panics stop here; a forked child goes no further.
//! - [`module`]: a loaded module's cubin goes into the store.
//! - [`launch`]: a launch is counted or written, where that is asked for.
//! - [`completed`]: a completed buffer's records become compact events in the thread's lane: [`events`] says which,
//!   [`times`], [`clock`] and [`correlation`] how their times and ids are made good.
//! - [`pool`]: the buffers that CUPTI fills. [`names`]: kernel names, stored once. [`thread`]: who is calling.

pub mod clock;
pub mod completed;
pub mod correlation;
pub mod details;
pub mod door;
pub mod events;
pub mod fork;
pub mod launch;
pub mod module;
pub mod names;
pub mod pool;
pub mod records;
pub mod tapped;
pub mod thread;
pub mod times;
