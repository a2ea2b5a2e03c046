//! What can go wrong with a recording's files, in words that say what to do.

use std::io;
use std::path::{Path, PathBuf};

/// Why a recording could not be begun or continued. What had been written before stays whole and readable.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("{path} exists and is not empty: name another folder with -o, or move this one away")]
    NotEmpty { path: PathBuf },
    #[error("{path} exists and is not a folder: name another with -o")]
    NotAFolder { path: PathBuf },
    #[error("{path} could not be created: {source}{}", advice(source))]
    Create { path: PathBuf, source: io::Error },
    #[error("{path} could not be written: {source}{}; what was recorded before is whole", advice(source))]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Segment(#[from] gputap_recording::WriteError),
}

impl RecordError {
    pub(super) fn create(path: &Path) -> impl FnOnce(io::Error) -> RecordError + '_ {
        move |source| RecordError::Create { path: path.to_owned(), source }
    }

    pub(super) fn write(path: &Path) -> impl FnOnce(io::Error) -> RecordError + '_ {
        move |source| RecordError::Write { path: path.to_owned(), source }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": free some room or record elsewhere with -o",
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => ": record elsewhere with -o",
        io::ErrorKind::FileTooLarge => ": the limit on file sizes (ulimit -f) is reached",
        _ => "",
    }
}
