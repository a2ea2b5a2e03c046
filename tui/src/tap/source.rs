//! Where snapshots come from.

use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::model::timeline::{Stretch, Timeline};

use super::{Peer, Playback, Standing};
use crate::error::Result;

/// A tap that is attached, one that a job just started is still to open, several of them, or a recording. Nothing here
/// waits.
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

    /// How busy each stream of the process that the snapshots are of was; up to now where `end_ns` is 0.
    fn timeline(&mut self, _stretch: Stretch) -> Timeline {
        Timeline::default()
    }

    /// How long a step of it takes, where its work repeats itself.
    fn step_ns(&mut self) -> Option<u64> {
        None
    }

    /// All processes that are followed, each in figures. Not cheap: once a second, while somebody looks at them.
    fn peers(&mut self) -> Vec<Peer> {
        let snapshot = self.snapshot();
        let standing = Standing::of_pid(snapshot.target.pid);
        vec![Peer { is_shown: true, ..Peer::new(0, standing, &snapshot, self.step_ns()) }]
    }

    /// How many are followed.
    fn peer_count(&self) -> usize {
        1
    }

    /// From now on the snapshots are of this one of the [`Peer`]s.
    fn look_at(&mut self, _key: u64) {}

    /// Where a recording is; None of what is live.
    fn playback(&mut self) -> Option<&mut Playback> {
        None
    }
}
