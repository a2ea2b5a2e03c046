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
        let partial = partial_name(path);
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

/// A folder that has its name only once all files in it are whole; given up, it is removed.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    partial: Option<PathBuf>,
}

impl Folder {
    /// # Errors
    /// There is something of this name that is no empty folder, or the folder cannot be made.
    pub fn create(path: &Path) -> Result<Folder, ExportError> {
        // Without a slash at its end.
        let path: PathBuf = path.components().collect();
        match path.read_dir() {
            Ok(entries) if entries.count() > 0 => return Err(ExportError::FolderNotEmpty { path }),
            Ok(_) => {}
            Err(_) => refuse_existing(&path, false)?,
        }
        let partial = partial_name(&path);
        // What an earlier export that was killed left is nobody's.
        let _ = std::fs::remove_dir_all(&partial);
        std::fs::create_dir(&partial).map_err(ExportError::file("make the folder", &partial))?;
        Ok(Folder { path, partial: Some(partial) })
    }

    /// Where the files are to be written.
    pub fn path(&self) -> &Path {
        self.partial.as_deref().unwrap_or(&self.path)
    }

    /// The same files by the names that they have from now on.
    ///
    /// # Errors
    /// The folder cannot be renamed; then it is gone.
    pub fn finish(mut self, files: &[PathBuf]) -> Result<Vec<PathBuf>, ExportError> {
        let renamed = std::fs::rename(self.path(), &self.path).map_err(ExportError::file("name", &self.path));
        if renamed.is_ok() {
            self.partial = None;
        }
        renamed.map(|()| files.iter().filter_map(|file| file.file_name()).map(|name| self.path.join(name)).collect())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let _ = std::fs::remove_dir_all(partial);
        }
    }
}

fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    PathBuf::from(name)
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
    fn a_folder_comes_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ranks/");
        let folder = Folder::create(&path).unwrap();
        std::fs::write(folder.path().join("0"), b"").unwrap();
        drop(folder);
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
        let folder = Folder::create(&path).unwrap();
        let file = folder.path().join("0");
        std::fs::write(&file, b"").unwrap();
        assert_eq!(folder.finish(&[file]).unwrap(), [dir.path().join("ranks/0")]);
        assert!(matches!(Folder::create(&path), Err(ExportError::FolderNotEmpty { .. })));
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
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
