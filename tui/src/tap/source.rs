//! Where snapshots come from.

use gputap_reader::model::snapshot::Snapshot;

use crate::error::Result;

/// A tap that is attached, or one that a job just started is still to open. Nothing here waits.
pub trait Source {
    /// Takes what is there, a bounded amount of it, and gives whether there is more: then the next call is due at once,
    /// otherwise in about 10 ms.
    fn step(&mut self) -> Result<bool>;

    fn snapshot(&mut self) -> Snapshot;

    /// The target has ended and all that it left has been read.
    fn ended(&self) -> bool;

    /// Checksums that another process still computes.
    fn pending_checksums(&self) -> usize;

    /// Ends what is recorded of it on the side, if anything is.
    fn finish(&mut self) -> Result<()>;

    /// Removes what a process that has ended left in shared memory: for whoever started it and has seen it all.
    fn discard(&mut self);
}
