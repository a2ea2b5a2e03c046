//! The two checksums of a cubin.
//!
//! - [`crc32`], over every byte, is the identity in the archive, together with the size.
//! - CUPTI's own, which its PC-sampling records carry as `cubinCrc`. Only NVIDIA's library can compute it, so it is
//!   asked for in a **child process** of the reader ([`CuptiCrc`]): the child loads a libcupti of the reader's own
//!   choosing ([`candidates()`]), answers one cubin at a time, and may be missing, hang or crash: that costs this one
//!   field, with a reason. A libcupti that a tapped process names is never loaded, not even there.
//!
//! ```text
//!   session ─ cubin ─► CrcWorker (thread) ─ length, bytes ─► child: cuptiGetCubinCrc
//!           ◄─ value or reason ──┘        ◄─ reply ──────┘   (killed at its deadline, restarted a few times)
//! ```

pub mod candidates;
#[allow(unsafe_code, reason = "calls libcupti; the only unsafe code of this crate, and it runs in the child only")]
mod child;
mod parent;
mod protocol;
mod worker;

pub use candidates::{Candidate, candidates};
pub use child::cupti_crc_child_main;
pub use parent::{CrcError, CuptiCrc, Deadlines, Library, Program, probe};
pub use worker::{CrcWorker, Done};

use std::ffi::OsString;
use std::path::PathBuf;

/// The hidden argument that makes the binary the child: `gputap __cupti-crc LIBCUPTI`.
pub const CHILD_ARGUMENT: &str = "__cupti-crc";

/// CRC-32 (zlib's polynomial) of all bytes.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The library that this process was started to load, if its arguments are `PROGRAM __cupti-crc LIBCUPTI`.
pub fn child_request(arguments: impl IntoIterator<Item = OsString>) -> Option<PathBuf> {
    let mut arguments = arguments.into_iter().skip(1);
    let is_child = arguments.next()? == CHILD_ARGUMENT;
    arguments.next().filter(|_| is_child).map(PathBuf::from)
}
