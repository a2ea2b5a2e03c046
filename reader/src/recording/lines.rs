//! A file that only grows by whole lines.

use super::error::RecordError;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes gathered before they go to the file, at the latest at the end of a step.
const BUFFER_BYTES: usize = 256 * 1024;

/// Lines on their way to a file. Whatever ends the process, the file ends with a whole line, save that a kill in the
/// middle of a write may cut the last one.
#[derive(Debug)]
pub(super) struct LineFile {
    path: PathBuf,
    file: File,
    pending: Vec<u8>,
    pending_lines: u64,
    written_bytes: u64,
    written_lines: u64,
    failed: bool,
}

impl LineFile {
    /// Makes the file, which must not exist, with `header` as its first line unless that is empty.
    pub fn create(path: PathBuf, header: &str) -> Result<LineFile, RecordError> {
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(RecordError::create(&path))?;
        let pending = Vec::with_capacity(BUFFER_BYTES + 4096);
        let mut lines =
            LineFile { path, file, pending, pending_lines: 0, written_bytes: 0, written_lines: 0, failed: false };
        if !header.is_empty() {
            lines.line(|line| line.extend_from_slice(header.as_bytes()));
        }
        lines.flush()?;
        Ok(lines)
    }

    /// Adds what `write` writes as one line, which stays pending until [`LineFile::flush`].
    pub fn line(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.pending);
        self.pending.push(b'\n');
        self.pending_lines += 1;
    }

    /// Enough is pending: a flush is due.
    pub fn is_full(&self) -> bool {
        self.pending.len() >= BUFFER_BYTES
    }

    /// Hands the pending lines to the system. After an error the file is cut back to its last whole line, and takes
    /// no more.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        if self.failed {
            self.pending.clear();
            return Ok(());
        }
        let result = self.file.write_all(&self.pending);
        match result {
            Ok(()) => {
                self.written_bytes += self.pending.len() as u64;
                self.written_lines += self.pending_lines;
            }
            Err(_) => self.keep_whole_lines(),
        }
        self.pending.clear();
        self.pending_lines = 0;
        result.map_err(RecordError::write(&self.path))
    }

    /// Of a write that failed in the middle only whole lines stay: cutting works on a full disk too.
    fn keep_whole_lines(&mut self) {
        self.failed = true;
        let len = self.file.metadata().map_or(self.written_bytes, |meta| meta.len());
        let partial = usize::try_from(len.saturating_sub(self.written_bytes)).unwrap_or(0).min(self.pending.len());
        let whole = self.pending[..partial].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        self.written_bytes += whole as u64;
        self.written_lines += self.pending[..whole].iter().filter(|&&b| b == b'\n').count() as u64;
        let _ = self.file.set_len(self.written_bytes);
    }

    pub fn sync(&mut self) -> Result<(), RecordError> {
        self.flush()?;
        self.file.sync_data().map_err(RecordError::write(&self.path))
    }

    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    pub fn written_lines(&self) -> u64 {
        self.written_lines
    }
}

/// Replaces a file in one step: a reader sees the old one or the new one, never a half.
pub(super) fn replace(path: &Path, bytes: &[u8], sync: bool) -> Result<(), RecordError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let write = || {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        if sync {
            file.sync_data()?;
        }
        std::fs::rename(&partial, path)
    };
    write().map_err(|error| {
        let _ = std::fs::remove_file(&partial);
        RecordError::write(path)(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn lines_arrive_whole_and_an_existing_file_is_not_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lines.csv");
        let mut lines = LineFile::create(path.clone(), "a,b").expect("a new file");
        lines.line(|line| line.extend_from_slice(b"1,2"));
        assert_eq!(fs::read(&path).expect("the file"), b"a,b\n");
        lines.flush().expect("room");
        assert_eq!(fs::read(&path).expect("the file"), b"a,b\n1,2\n");
        assert!(matches!(LineFile::create(path, ""), Err(RecordError::Create { .. })));
    }

    #[test]
    fn a_full_disk_is_an_error_once_and_never_a_panic() {
        let mut lines = LineFile {
            path: "/dev/full".into(),
            file: OpenOptions::new().write(true).open("/dev/full").expect("/dev/full"),
            pending: Vec::new(),
            pending_lines: 0,
            written_bytes: 0,
            written_lines: 0,
            failed: false,
        };
        lines.line(|line| line.extend_from_slice(b"1,2"));
        let error = lines.flush().expect_err("no room").to_string();
        assert!(error.contains("/dev/full") && error.contains("free some room"), "{error}");
        lines.line(|line| line.extend_from_slice(b"3,4"));
        lines.flush().expect("said once");
    }

    #[test]
    fn replacing_leaves_no_partial_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("summary.json");
        replace(&path, b"1", false).expect("room");
        replace(&path, b"22", true).expect("room");
        assert_eq!(fs::read(&path).expect("the file"), b"22");
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
        let missing = folder.path().join("no/summary.json");
        assert!(matches!(replace(&missing, b"1", false), Err(RecordError::Write { .. })));
    }
}
