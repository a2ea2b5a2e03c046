//! A folder that has its name only once it is whole.

use crate::ExportError;
use crate::output::refuse_existing;
use std::path::{Path, PathBuf};

/// Made as `NAME.partial`, which [`Folder::finish`] renames; dropped before, it is removed. A folder that is there already
/// and may be written to keeps what else is in it.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    partial: Option<PathBuf>,
}

impl Folder {
    pub fn create(path: &Path, overwrite: bool) -> Result<Folder, ExportError> {
        // Without a slash at its end, which would make the partial one a folder inside.
        let path: &Path = &path.components().collect::<PathBuf>();
        refuse_existing(path, overwrite)?;
        if path.is_dir() {
            return Ok(Folder { path: path.to_owned(), partial: None });
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let partial = PathBuf::from(name);
        std::fs::create_dir(&partial).map_err(ExportError::file("make", &partial))?;
        Ok(Folder { path: path.to_owned(), partial: Some(partial) })
    }

    /// Where to write.
    pub fn root(&self) -> &Path {
        self.partial.as_deref().unwrap_or(&self.path)
    }

    /// Gives the folder its name; the paths of `files` as they are then.
    pub fn finish(mut self, files: &[PathBuf]) -> Result<Vec<PathBuf>, ExportError> {
        let root = self.root().to_owned();
        if let Some(partial) = &self.partial {
            std::fs::rename(partial, &self.path).map_err(ExportError::file("name", &self.path))?;
            self.partial = None;
        }
        let inside = |file: &PathBuf| file.strip_prefix(&root).map_or(file.clone(), |inside| self.path.join(inside));
        Ok(files.iter().map(inside).collect())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            let _ = std::fs::remove_dir_all(partial);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_its_name_only_once_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let folder = Folder::create(&path, false).unwrap();
        let file = folder.root().join("a");
        std::fs::write(&file, "a").unwrap();
        assert!(!path.exists());
        assert_eq!(folder.finish(&[file]).unwrap(), [path.join("a")]);
        assert_eq!(std::fs::read(path.join("a")).unwrap(), b"a");
        assert_eq!(dir.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn leaves_nothing_when_it_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::create(&dir.path().join("out"), false).unwrap();
        std::fs::write(folder.root().join("a"), "a").unwrap();
        drop(folder);
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn what_else_is_in_it_stays() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("old"), "old").unwrap();
        assert!(matches!(Folder::create(dir.path(), false), Err(ExportError::Exists { .. })));
        let folder = Folder::create(dir.path(), true).unwrap();
        std::fs::write(folder.root().join("a"), "a").unwrap();
        drop(folder);
        assert_eq!(dir.path().read_dir().unwrap().count(), 2);
    }
}
