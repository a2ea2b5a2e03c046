//! Recordings in the formats of other tools.
//!
//! An export reads the recording once or twice, in memory that does not grow with its events, and writes beside the final
//! name until all is there: a full disk leaves no half file that looks whole.

#![forbid(unsafe_code)]

pub mod csv;
mod error;
mod folder;
pub mod json;
mod lines;
mod output;
pub mod parquet;
pub mod pprof;
pub mod table;

pub use error::ExportError;
pub use output::Output;

use gputap_recording::Recording;
use std::path::{Path, PathBuf};

/// What an export becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {}

impl Format {
    pub const ALL: &[Format] = &[];

    pub fn name(self) -> &'static str {
        match self {}
    }

    /// What the file is called where nobody says; of a format that makes several files, the folder.
    pub fn default_name(self) -> &'static str {
        match self {}
    }

    pub fn from_name(name: &str) -> Result<Format, ExportError> {
        let unknown = || ExportError::UnknownFormat { name: name.to_owned() };
        Format::ALL.iter().copied().find(|format| format.name() == name).ok_or_else(unknown)
    }
}

/// What may be chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Replace what has the output's name.
    pub overwrite: bool,
}

/// What was written, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    pub files: Vec<PathBuf>,
    pub bytes: u64,
    /// Events that were read.
    pub events: u64,
    /// Events whose times cannot be believed: an end of 0, a start of 0, an end before the start. They have no place on a
    /// line of time.
    pub flawed: u64,
    /// What could not be read, or is less than it could be, in words.
    pub notes: Vec<String>,
}

impl Exported {
    fn of(recording: &Recording) -> Exported {
        Exported { notes: recording.problems().iter().map(ToString::to_string).collect(), ..Exported::default() }
    }

    fn add(&mut self, walked: &table::Walked) {
        self.events += walked.events;
        self.flawed += walked.flawed;
        self.notes.extend(walked.problems.iter().map(ToString::to_string));
    }
}

/// Writes `recording` as `format` to `out`.
///
/// # Errors
/// `out` is there already, there is nothing to export, or a file could not be read or written; then `out` is not there.
pub fn export(
    _recording: &Recording,
    format: Format,
    _out: &Path,
    _options: &Options,
) -> Result<Exported, ExportError> {
    match format {}
}
