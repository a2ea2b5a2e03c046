//! Why there is no report, and what to do.

use gputap_recording::ReadError;

#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("nothing of {dir} can be read: {problems}")]
    Unreadable { dir: String, problems: String },
    #[error("--filter: {text:?} is no regular expression: {why}")]
    Regex { text: String, why: String },
    #[error("--filter: no kernel matches {text:?}; there are {kernels} kernels, such as {example}")]
    NothingMatches { text: String, kernels: usize, example: String },
    #[error(
        "{text:?} is no time: give seconds since the start of the recording (12.5), a time of day in UTC (12:03:04) or an \
         RFC 3339 time (2026-12-01T12:03:04+01:00)"
    )]
    Moment { text: String },
    #[error("--between: {second:?} is not after {first:?}")]
    Reversed { first: String, second: String },
    #[error("--between: nothing was recorded in that time; the recording is {span_s:.3} s long and began at {began}")]
    NothingBetween { span_s: f64, began: String },
    #[error("--between: the recording does not say when it began, on any clock")]
    NoClock,
}
