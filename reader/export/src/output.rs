//! A file that has its name only once it is whole.

use crate::ExportError;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 20;

/// Writes to `NAME.partial`, which [`Output::finish`] renames; dropped before, it is removed.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    partial: PathBuf,
    file: Option<BufWriter<File>>,
    bytes: u64,
}

impl Output {
    /// # Errors
    /// There is something of this name and `overwrite` is false, or the file cannot be made.
    pub fn create(path: &Path, overwrite: bool) -> Result<Output, ExportError> {
        refuse_existing(path, overwrite)?;
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let partial = PathBuf::from(name);
        let file = File::create(&partial).map_err(ExportError::file("make", &partial))?;
        let file = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
        Ok(Output { path: path.to_owned(), partial, file, bytes: 0 })
    }

    /// Makes what was written the file of its name; how many bytes it has.
    ///
    /// # Errors
    /// The last bytes could not be written, or the file could not be renamed: then it is gone.
    pub fn finish(mut self) -> Result<u64, ExportError> {
        let Some(mut file) = self.file.take() else { return Ok(self.bytes) };
        let flushed = file.flush();
        drop(file);
        let renamed = flushed
            .map_err(ExportError::file("write", &self.path))
            .and_then(|()| std::fs::rename(&self.partial, &self.path).map_err(ExportError::file("name", &self.path)));
        if renamed.is_err() {
            let _ = std::fs::remove_file(&self.partial);
        }
        renamed.map(|()| self.bytes)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says of a failed write which file it was.
    pub fn wrote<T>(&self, result: io::Result<T>) -> Result<T, ExportError> {
        result.map_err(ExportError::file("write", &self.path))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // What is buffered is not wanted any more.
            let _ = file.into_parts();
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

/// A dangling link is something, too.
pub(crate) fn refuse_existing(path: &Path, overwrite: bool) -> Result<(), ExportError> {
    match path.symlink_metadata() {
        Ok(_) if !overwrite => Err(ExportError::Exists { path: path.to_owned() }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_its_name_only_once_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mut output = Output::create(&path, false).unwrap();
        output.write_all(b"whole").unwrap();
        assert!(!path.exists());
        assert_eq!(output.finish().unwrap(), 5);
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn leaves_nothing_when_it_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let mut output = Output::create(&dir.path().join("out"), false).unwrap();
        output.write_all(b"half").unwrap();
        drop(output);
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_is_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        std::fs::write(&path, b"old").unwrap();
        assert!(matches!(Output::create(&path, false), Err(ExportError::Exists { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        Output::create(&path, true).unwrap().finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    #[test]
    fn a_full_disk_leaves_no_file_and_says_so() {
        if !Path::new("/dev/full").exists() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        // The kernel says "no space" for every write to this device.
        std::os::unix::fs::symlink("/dev/full", dir.path().join("out.partial")).unwrap();
        let mut output = Output::create(&path, false).unwrap();
        output.write_all(&[0; 64]).unwrap();
        let error = output.finish().unwrap_err().to_string();
        assert!(error.contains("No half file"), "{error}");
        assert!(!path.exists() && !dir.path().join("out.partial").exists());
    }
}
