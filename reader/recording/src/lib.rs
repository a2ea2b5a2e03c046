//! A recording: a folder of segment files, each readable by itself, and the cubins beside them.
//!
//! ```text
//! DIR/pid-PID-NONCE/000001.gtap   segments of one process, rotated by size and time
//! DIR/cubins/CRC32-SIZE.cubin     each distinct cubin once
//! DIR/index.json                  for people: who was recorded, and what there is
//! ```
//! A segment is a head and blocks, each with a checksum: after kill -9, a full disk or a cut-off copy all is readable up to
//! the last whole block. Nothing outside the segments is needed to read them. `docs/format.md` has every byte.
//!
//! [`Writer`] writes one process' segments, [`Recording`] reads a folder's; neither's memory grows with the events.

mod error;
pub mod format;
mod process;
mod read;
mod write;

pub use error::{ReadError, WriteError};
pub use process::{Clock, Device, Loss, Module, Process, Status};
pub use read::{Block, Name, Names, Problem, Recorded, Recording, Stream};
pub use write::{Limits, SegmentFile, Writer, Written};
