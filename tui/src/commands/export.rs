//! `gputap export`: a recording in the format of another tool.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gputap_export::{Exported, Format, Options, export, export_to_stream};
use gputap_recording::Recording;

use crate::cli::Export;
use crate::error::Result;
use crate::output::{print, remark};

/// Notes that are printed; the rest is counted.
const NOTES_MAX: usize = 20;

pub fn run(arguments: &Export) -> Result<ExitCode> {
    let recording = Recording::open(&arguments.recording)?;
    let out = arguments.output.clone().unwrap_or_else(|| PathBuf::from(arguments.to.default_name()));
    if out == Path::new("-") {
        return to_stdout(&recording, arguments);
    }
    let options = Options { overwrite: arguments.force };
    let exported = export(&recording, arguments.to, &out, &options)?;
    tell(&exported.notes);
    print(&in_words(&exported, &out, arguments.to))?;
    Ok(ExitCode::SUCCESS)
}

/// Somebody who closes the pipe has seen enough.
fn to_stdout(recording: &Recording, arguments: &Export) -> Result<ExitCode> {
    let out = std::io::BufWriter::new(std::io::stdout().lock());
    match export_to_stream(recording, arguments.to, &arguments.table, out, Path::new("standard output")) {
        Ok(exported) => tell(&exported.notes),
        Err(error) if error.is_closed_pipe() => {}
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(notes: &[String]) {
    notes.iter().take(NOTES_MAX).for_each(|note| remark(note));
    if notes.len() > NOTES_MAX {
        remark(&format!("and {} more such notes", notes.len() - NOTES_MAX));
    }
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
