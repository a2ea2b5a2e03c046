//! What the proofs on the fakes have in common: finding the built libraries, running children under a watchdog, and
//! telling a hung job from a slow one.
//!
//! Everything here waits on conditions with a deadline; a child that is not over by then is killed, with its stacks
//! written down first.

mod artifact;
pub mod deadlock;
mod isolated;
mod stacks;
pub mod storm;
mod tapped;
mod watchdog;

pub use artifact::{ArtifactError, artifact};
pub use isolated::{child_command, in_child, is_child, isolated};
pub use stacks::dump as dump_stacks;
pub use tapped::{Outcome, TapCounts, TappedJob, job_main};
pub use watchdog::{Finished, WatchdogError, Watched, run_under_watchdog};
