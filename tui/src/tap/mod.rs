//! Taps to look at: one that is there, those of a job that was just started, or one of several to choose.

mod attached;
mod choose;
mod family;
mod launched;
mod source;

pub use attached::Attached;
pub use choose::{Choice, choose};
pub use family::{Family, LAUNCH};
pub use launched::Launched;
pub use source::Source;
