//! Replacing a file in one step.

use super::error::RecordError;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// A reader sees the old file or the new one, never a half.
pub(super) fn replace(
    path: &Path,
    sync: bool,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), RecordError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = || {
        let mut file = BufWriter::new(File::create(&partial)?);
        write(&mut file)?;
        let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        if sync {
            file.sync_data()?;
        }
        std::fs::rename(&partial, path)
    };
    written().map_err(|error| {
        let _ = std::fs::remove_file(&partial);
        RecordError::write(path)(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    #[test]
    fn replacing_leaves_no_partial_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("index.json");
        replace(&path, false, |file| file.write_all(b"1")).expect("room");
        replace(&path, true, |file| file.write_all(b"22")).expect("room");
        assert_eq!(fs::read(&path).expect("the file"), b"22");
        replace(&path, false, |_| Err(std::io::ErrorKind::StorageFull.into())).expect_err("no room");
        assert_eq!(fs::read(&path).expect("the old file"), b"22");
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
        let missing = folder.path().join("no/index.json");
        assert!(matches!(replace(&missing, false, |_| Ok(())), Err(RecordError::Write { .. })));
    }
}
