//! `gputap export`: a recording in the format of another tool.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gputap_export::{Exported, Format, Options, export};
use gputap_recording::Recording;

use crate::cli::Export;
use crate::error::Result;
use crate::output::{print, remark};

/// Notes that are printed; the rest is counted.
const NOTES_MAX: usize = 20;

pub fn run(arguments: &Export) -> Result<ExitCode> {
    let recording = Recording::open(&arguments.recording)?;
    let out = arguments.output.clone().unwrap_or_else(|| PathBuf::from(arguments.to.default_name()));
    let options = Options { overwrite: arguments.force };
    let exported = export(&recording, arguments.to, &out, &options)?;
    for note in exported.notes.iter().take(NOTES_MAX) {
        remark(note);
    }
    if exported.notes.len() > NOTES_MAX {
        remark(&format!("and {} more such notes", exported.notes.len() - NOTES_MAX));
    }
    print(&in_words(&exported, &out, arguments.to))?;
    Ok(ExitCode::SUCCESS)
}

fn in_words(exported: &Exported, out: &Path, format: Format) -> String {
    let mut words = format!("{}: {} events, {:.1} MB", out.display(), exported.events, exported.bytes as f64 / 1e6);
    if exported.files.len() > 1 {
        // Writing into a String does not fail.
        let _ = write!(words, " in {} files", exported.files.len());
    }
    if exported.flawed > 0 {
        let place = match format {
            Format::Perfetto | Format::Chrome => "left out",
            _ => "in no sum",
        };
        let _ = write!(words, "; {} have times that cannot be, {place}", exported.flawed);
    }
    words + "\n" + hint(format)
}

fn hint(format: Format) -> &'static str {
    match format {
        Format::Perfetto => "open it at https://ui.perfetto.dev\n",
        Format::Chrome => "for HolisticTraceAnalysis, chrome://tracing and ui.perfetto.dev\n",
        Format::Pprof => "open it with: go tool pprof -http=: FILE\n",
        Format::Parquet | Format::Csv | Format::Json => "",
    }
}
