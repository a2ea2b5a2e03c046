//! What of a recording the report is about.

use crate::moment::Moment;

/// What to put into a report.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A kernel counts where it starts in this time, its whole duration with it; busy time is cut at both ends. So the
    /// reports of two neighbouring times add up to that of both.
    pub between: Option<[Moment; 2]>,
    /// A regular expression on readable names. With it the report is of kernels only, of those that match.
    pub filter: Option<String>,
    pub by: Option<By>,
}

/// What kernels are added up by, beside their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    Stream,
    Device,
    Rank,
    Graph,
    Cubin,
}
