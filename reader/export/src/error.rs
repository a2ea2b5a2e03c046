//! Why there is no export.

use crate::Format;
use gputap_recording::Recording;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error("{name:?} is no format of exports; there are {}", known())]
    UnknownFormat { name: String },
    #[error("{format} cannot be written to the standard output; csv, json and pprof can")]
    NoStream { format: &'static str },
    #[error("{name:?} is no table; there are {}", tables())]
    UnknownTable { name: String },
    #[error("{} is there already: give another name, or --force to replace it", path.display())]
    Exists { path: PathBuf },
    #[error("{} has nothing to export: no event was recorded{}", path.display(), problems(*broken))]
    Nothing { path: PathBuf, broken: usize },
    #[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
    File { action: &'static str, path: PathBuf, source: io::Error },
}

impl ExportError {
    /// Whoever read the output has seen enough.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, ExportError::File { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    pub(crate) fn nothing(recording: &Recording) -> ExportError {
        ExportError::Nothing { path: recording.dir().to_owned(), broken: recording.problems().len() }
    }

    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ExportError {
        move |source| ExportError::File { action, path: path.to_owned(), source }
    }
}

fn known() -> String {
    Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
}

fn tables() -> String {
    crate::table::NAMES.map(|(name, _)| name).join(", ")
}

fn problems(broken: usize) -> String {
    if broken == 0 { String::new() } else { format!(", or none of it can be read: {broken} problems") }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space or give a path on another disk with -o. No half file was left"
        }
        _ => "",
    }
}
