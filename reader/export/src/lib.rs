//! Recordings in the formats of other tools.
//!
//! An export reads the recording once or twice, in memory that does not grow with its events, and writes beside the final
//! name until all is there: a full disk leaves no half file that looks whole.

#![forbid(unsafe_code)]

mod chrome;
pub mod csv;
mod error;
mod flows;
mod folder;
pub mod json;
mod lines;
mod output;
pub mod parquet;
mod perfetto;
pub mod pprof;
mod readable;
mod reorder;
mod sorted;
pub mod table;
mod times;
mod words;

pub use error::ExportError;
pub use output::Output;

use gputap_recording::{Block, Recorded, Recording};
use gputap_ringbuf::event::ALL_KINDS;
use std::path::{Path, PathBuf};

/// What an export becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's protobuf.
    Perfetto,
    /// Chrome's JSON, as torch.profiler writes it.
    Chrome,
    /// A folder of Parquet files, one a table.
    Parquet,
    /// A profile of GPU time, packed.
    Pprof,
    /// A folder of CSV files, one a table.
    Csv,
    /// A folder of files of JSON lines, one a table.
    Json,
}

impl Format {
    pub const ALL: &[Format] =
        &[Format::Perfetto, Format::Chrome, Format::Parquet, Format::Pprof, Format::Csv, Format::Json];

    pub fn name(self) -> &'static str {
        match self {
            Format::Perfetto => "perfetto",
            Format::Chrome => "chrome",
            Format::Parquet => "parquet",
            Format::Pprof => "pprof",
            Format::Csv => "csv",
            Format::Json => "json",
        }
    }

    /// What the file is called where nobody says; of a format that makes several files, the folder.
    pub fn default_name(self) -> &'static str {
        match self {
            Format::Perfetto => "gputap.perfetto-trace",
            Format::Chrome => "gputap-chrome",
            Format::Parquet => "gputap-parquet",
            Format::Pprof => "gputap.pb.gz",
            Format::Csv => "gputap-csv",
            Format::Json => "gputap-json",
        }
    }

    /// # Errors
    /// There is no such format.
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
pub fn export(recording: &Recording, format: Format, out: &Path, options: &Options) -> Result<Exported, ExportError> {
    if recording.processes().iter().all(has_no_event) {
        return Err(ExportError::nothing(recording));
    }
    let wanted = table::ALL_TABLES;
    match format {
        Format::Perfetto => perfetto::export(recording, out, options),
        Format::Chrome => chrome::export(recording, out, options),
        Format::Parquet => parquet::to_folder(recording, wanted, out, options),
        Format::Pprof => pprof::to_file(recording, out, options),
        Format::Csv => csv::to_folder(recording, wanted, out, options),
        Format::Json => json::to_folder(recording, wanted, out, options),
    }
}

/// Writes one `table` of `recording`, or its profile, to `out`, which errors call `as_path`.
///
/// # Errors
/// The format takes a file or a folder, there is no such table, or `out` takes no more
/// ([`ExportError::is_closed_pipe`]).
pub fn export_to_stream(
    recording: &Recording,
    format: Format,
    table: &str,
    out: impl std::io::Write,
    as_path: &Path,
) -> Result<Exported, ExportError> {
    match format {
        Format::Csv => csv::to_stream(recording, table, out, as_path),
        Format::Json => json::to_stream(recording, table, out, as_path),
        Format::Pprof => pprof::to_stream(recording, out, as_path),
        Format::Perfetto | Format::Chrome | Format::Parquet => Err(ExportError::NoStream { format: format.name() }),
    }
}

fn has_no_event(recorded: &Recorded) -> bool {
    let mut stream = recorded.stream(ALL_KINDS);
    std::iter::from_fn(|| stream.next_block().map(|block| matches!(block, Block::Events(_)))).all(|is_event| !is_event)
}
