//! Taps to look at: one that is there, those of a job that was just started, one of several to choose, or a recording.

mod attached;
mod choose;
mod everywhere;
mod family;
mod launched;
mod peer;
mod replay;
mod several;
mod source;

pub use attached::Attached;
pub use choose::{Choice, Choices, choose, choose_several};
pub use everywhere::Everywhere;
pub use family::{Family, LAUNCH};
pub use launched::Launched;
pub use peer::{Peer, Standing};
pub use replay::{Playback, Replay};
pub use several::Several;
pub use source::Source;
