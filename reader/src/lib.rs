//! Everything that reads a tap: find the tapped processes, attach, drain, count, check, name and file what they did.
//!
//! What this crate guarantees:
//! - Whatever a tapped process writes, however broken or hostile, costs at most its own figures: no panic, no hang, no
//!   unbounded memory, and no path or library that a segment names is ever opened.
//! - Loss is exact: `attempted = delivered + lost by reason + pending` in every [`model::snapshot::Snapshot`].
//! - NVIDIA's code runs in a child process only ([`crc`]); whatever it does costs one field, with a reason.
//! - The time is handed in ([`clock::Now`]) and nothing here sleeps: the caller paces.
//!
//! The path of the data: [`session`] attaches and drains, [`model`] counts, [`symbols`] names, [`crc`] checks,
//! [`recording`] files. [`list`] and [`doctor`] answer questions without attaching.
#![deny(unsafe_code)]

pub mod clock;
pub mod crc;
pub mod doctor;
pub mod list;
pub mod model;
pub mod process;
pub mod recording;
pub mod session;
pub mod symbols;

pub use gputap_ringbuf::event;
