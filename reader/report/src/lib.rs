//! What a recording says in sum ([`Report`]), and how two recordings differ ([`Diff`]).
//!
//! Events are read once, each counted as it comes: memory does not grow with them, only with distinct kernels, streams and
//! devices, of each of which there is a limit. Sums and counts are exact. Percentiles come from histograms and are within
//! [`PERCENTILE_ERROR`] of the true value. Busy time is the exact union of what ran ([`busy`] says how late a record may
//! come for that). A record whose times cannot be believed is counted, as a call and as a flaw, and is in no sum of times.

#![forbid(unsafe_code)]

pub mod busy;
mod clocks;
mod csv;
mod cubins;
mod diff;
mod error;
mod gather;
mod groups;
mod kernel_names;
mod moment;
mod ranks;
mod report;
mod select;
mod sum;
mod tally;

pub use csv::csv;
pub use diff::{Change, Diff, Gate, Recompiled};
pub use error::ReportError;
pub use gputap_recording::Loss;
pub use moment::Moment;
pub use report::*;
pub use select::{By, Options};

/// A percentile is off by at most this share of itself.
pub const PERCENTILE_ERROR: f64 = 0.01;
