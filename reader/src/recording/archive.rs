//! The folder of cubins: each distinct one once, under a name made of its CRC-32 and size.

use super::error::RecordError;
use super::replace::replace;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Files in one recording's folder. More distinct cubins than this are a broken tap's.
const MAX_FILES: usize = 64 * 1024;
/// Different cubins under one CRC-32 and size. It takes intent to make even two.
const MAX_SUFFIX: u32 = 100;

#[derive(Debug)]
pub(super) struct Archive {
    folder: PathBuf,
    files: usize,
    bytes: u64,
}

/// Where a cubin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// The name of its file in the folder; `is_new` unless the very same bytes were there.
    File { name: String, is_new: bool },
    /// Not kept: the folder has as many files as it may.
    Full,
}

impl Archive {
    /// The folder is made for the first cubin.
    pub fn new(folder: PathBuf) -> Archive {
        Archive { folder, files: 0, bytes: 0 }
    }

    /// Stores a cubin. One with equal CRC and size is compared byte by byte; if it differs, the new one gets a suffix.
    pub fn add(&mut self, crc32: u32, cubin: &[u8]) -> Result<Kept, RecordError> {
        if self.files == 0 {
            fs::create_dir_all(&self.folder).map_err(RecordError::create(&self.folder))?;
        }
        for suffix in 1..=MAX_SUFFIX {
            let name = file_name(crc32, cubin.len(), suffix);
            let path = self.folder.join(&name);
            match holds(&path, cubin) {
                Ok(true) => return Ok(Kept::File { name, is_new: false }),
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if self.files >= MAX_FILES {
                        return Ok(Kept::Full);
                    }
                    replace(&path, false, |file| file.write_all(cubin))?;
                    self.files += 1;
                    self.bytes += cubin.len() as u64;
                    return Ok(Kept::File { name, is_new: true });
                }
                Err(error) => return Err(RecordError::write(&path)(error)),
            }
        }
        Ok(Kept::Full)
    }

    pub fn files(&self) -> usize {
        self.files
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn file_name(crc32: u32, size_bytes: usize, suffix: u32) -> String {
    match suffix {
        1 => format!("{crc32:08x}-{size_bytes}.cubin"),
        suffix => format!("{crc32:08x}-{size_bytes}-{suffix}.cubin"),
    }
}

/// Whether the file has exactly these bytes. Compared piece by piece: a cubin may be large.
fn holds(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let mut file = fs::File::open(path)?;
    if file.metadata()?.len() != bytes.len() as u64 {
        return Ok(false);
    }
    let mut piece = vec![0; 64 * 1024];
    for expected in bytes.chunks(piece.len()) {
        let piece = &mut piece[..expected.len()];
        file.read_exact(piece)?;
        if piece != expected {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_cubins_are_one_file_and_different_ones_with_the_same_key_are_two() {
        let root = tempfile::tempdir().expect("a folder");
        let mut archive = Archive::new(root.path().join("cubins"));
        let kept = |name: &str, is_new| Kept::File { name: name.to_owned(), is_new };
        assert_eq!(archive.add(0xab, b"one").expect("room"), kept("000000ab-3.cubin", true));
        assert_eq!(archive.add(0xab, b"one").expect("room"), kept("000000ab-3.cubin", false));
        assert_eq!(archive.add(0xab, b"two").expect("room"), kept("000000ab-3-2.cubin", true));
        assert_eq!(archive.add(0xab, b"two").expect("room"), kept("000000ab-3-2.cubin", false));
        assert_eq!(archive.add(0xab, b"").expect("room"), kept("000000ab-0.cubin", true));
        assert_eq!((archive.files(), archive.bytes()), (3, 6));
        assert_eq!(fs::read(root.path().join("cubins/000000ab-3-2.cubin")).expect("the file"), b"two");
    }
}
