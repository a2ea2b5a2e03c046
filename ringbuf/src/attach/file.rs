//! Files that a peer writes, opened and mapped with care.

use super::{
    AttachError,
    guard::{self, Watched},
};
use crate::{
    backing::kept,
    header::identity::{BadHeader, Identity},
    layout::{Layout, ident},
    sync::Ordering,
    words::{MappedWords, Words, heap_words},
};
use memmap2::{MmapOptions, MmapRaw};
use std::{
    fs::{File, Metadata, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    ptr::NonNull,
    sync::Arc,
};

/// Mapping of files that a peer writes.
pub struct MappedFile;

/// What a view of a mapped file keeps: the mapping, and the open file with the lock that keeps sweepers away.
pub(crate) struct Mapping {
    // In this order: a range is not watched any more when something else can be mapped there.
    watched: Watched,
    map: MmapRaw,
    file: File,
}

impl Mapping {
    /// A cut within a page raises no fault, and leaves zeros: so the size is looked at too, which costs a system call.
    pub fn is_cut(&self) -> bool {
        self.watched.is_cut() || self.file.metadata().is_ok_and(|now| now.len() < self.map.len() as u64)
    }
}

/// A file as words.
pub struct Mapped {
    pub words: MappedWords,
    /// Of the file, of which less may be mapped.
    pub size_bytes: u64,
    pub(crate) mapping: Arc<Mapping>,
}

/// A regular file, opened without ever waiting for anybody.
pub(crate) fn open_regular(path: &Path, write: bool) -> io::Result<(File, Metadata)> {
    // Neither a FIFO that nobody writes to nor a device that minds being opened may hold a reader up.
    let link = if path.starts_with("/proc") && path.parent().is_some_and(|p| p.ends_with("fd")) {
        0 // A descriptor under /proc is a link by nature.
    } else {
        libc::O_NOFOLLOW
    };
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | link;
    let file = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok((file, metadata))
}

/// Whose segment it is, by its first bytes alone: nothing is mapped, so nothing can fault, and nobody is told that it
/// is in use.
pub(crate) fn peek(path: &Path) -> Result<(Identity, Layout), AttachError> {
    let (file, metadata) = open_regular(path, false).map_err(|source| AttachError::of_file(path, source))?;
    let mut bytes = [0; ident::WORDS * 8];
    file.read_exact_at(&mut bytes, 0).map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof => AttachError::TooSmall { path: path.to_owned(), actual_bytes: metadata.len() },
        _ => AttachError::of_file(path, source),
    })?;
    let words = heap_words(ident::WORDS);
    for (i, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        words.store(i, u64::from_ne_bytes(*word), Ordering::Relaxed);
    }
    let header = |source: BadHeader| AttachError::Header { path: path.to_owned(), source };
    Identity::read(&words, metadata.len()).map_err(header)
}

impl MappedFile {
    /// The whole file, read-only.
    pub fn open(path: &Path, least_bytes: u64) -> Result<Mapped, AttachError> {
        Self::map(path, least_bytes, None)
    }

    /// `size_bytes` of the file, writable, as words.
    pub fn open_writable(path: &Path, size_bytes: usize) -> Result<MappedWords, AttachError> {
        Ok(Self::map(path, size_bytes as u64, Some(size_bytes))?.words)
    }

    /// Writable where only a part of `writable_bytes` is mapped, which the caller uses alone.
    fn map(path: &Path, least_bytes: u64, writable_bytes: Option<usize>) -> Result<Mapped, AttachError> {
        let writable = writable_bytes.is_some();
        let io_error = |source| AttachError::of_file(path, source);
        let (file, metadata) = open_regular(path, writable).map_err(io_error)?;
        let actual_bytes = metadata.len();
        if actual_bytes < least_bytes {
            return Err(AttachError::TooSmall { path: path.to_owned(), actual_bytes });
        }
        kept::lock_in_use(&file);
        let len_bytes = match writable_bytes {
            Some(part) => part,
            None => usize::try_from(actual_bytes).map_err(|_| io_error(io::Error::other("larger than memory")))?,
        };
        let mut options = MmapOptions::new();
        options.len(len_bytes);
        let map = if writable { options.map_raw(&file) } else { options.map_raw_read_only(&file) };
        let map = map.map_err(io_error)?;
        let base = NonNull::new(map.as_mut_ptr()).ok_or_else(|| io_error(io::Error::other("mapped at address 0")))?;
        let watched = guard::watch(base, len_bytes, writable)
            .ok_or_else(|| io_error(io::Error::other("this process has too many taps open")))?;
        let mapping = Arc::new(Mapping { watched, map, file });
        // SAFETY: mmap gives page-aligned memory of `len_bytes`, kept by the Arc; written to only where it is mapped
        // so. A file that is cut meanwhile is a fault, which `guard` answers in the processes that ask for it.
        let words = unsafe { MappedWords::new(base, len_bytes / 8, Some(mapping.clone())) };
        Ok(Mapped { words, size_bytes: actual_bytes, mapping })
    }
}
