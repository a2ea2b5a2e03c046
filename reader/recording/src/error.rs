//! What can go wrong with files, with the path and what was being done.

use std::io;
use std::path::{Path, PathBuf};

/// A segment could not be written. What was written before stays valid.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
pub struct WriteError {
    pub action: &'static str,
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

impl WriteError {
    pub(crate) fn of(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> WriteError {
        move |source| WriteError { action, path: path.to_owned(), source }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; what was written before is whole, free some space or record with --max-size"
        }
        io::ErrorKind::FileTooLarge => {
            "; what was written before is whole, the limit on file sizes (ulimit -f) is reached"
        }
        _ => "",
    }
}

/// A folder cannot be read as a recording.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} holds no recording: there is no segment (*.gtap) in it", path.display())]
    NoRecording { path: PathBuf },
    #[error("{} is a recording of format 2, which was CSV; this gputap reads format {}", path.display(), crate::format::VERSION)]
    Old { path: PathBuf },
}

impl ReadError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> ReadError {
        move |source| ReadError::Io { path: path.to_owned(), source }
    }
}
