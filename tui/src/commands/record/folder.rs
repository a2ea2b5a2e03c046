//! The folder of a recording: looked at before the job starts, since a person wants to hear of a full folder or a
//! read-only disk now and not in an hour.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

pub struct Folder {
    path: PathBuf,
    made: bool,
}

impl Folder {
    /// Makes the folder, or takes an empty one.
    pub fn prepare(path: &Path) -> Result<Folder> {
        let error = |action| move |source| Error::File { action, path: path.to_owned(), source };
        let made = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(error("make the folder"))?;
                true
            }
            Err(source) => return Err(error("make the folder")(source)),
        };
        if fs::read_dir(path).map_err(error("list"))?.next().is_some() {
            return Err(Error::NotEmpty { path: path.to_owned() });
        }
        // Whether files can be made here is only known by making one.
        let probe = path.join(".gputap-probe");
        fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe)).map_err(error("write into"))?;
        Ok(Folder { path: path.to_owned(), made })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves no empty folder where there was none.
    pub fn remove_if_empty(&self) {
        if self.made {
            // Not empty, or gone: either way there is nothing to do.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_a_new_or_an_empty_folder_and_no_other() {
        let base = tempfile::tempdir().unwrap();
        let new = base.path().join("a/b");
        let folder = Folder::prepare(&new).unwrap();
        assert!(Folder::prepare(&new).is_ok(), "an empty one");
        fs::write(new.join("x"), b"").unwrap();
        assert!(matches!(Folder::prepare(&new), Err(Error::NotEmpty { .. })));
        folder.remove_if_empty();
        assert!(new.exists(), "what holds something stays");
        fs::remove_file(new.join("x")).unwrap();
        folder.remove_if_empty();
        assert!(!new.exists());
        assert!(matches!(Folder::prepare(Path::new("/proc/none")), Err(Error::File { .. })));
    }
}
