//! A file appears whole, under its final name, or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::OFlags;

use crate::{Error, Result};

/// Leaves `bytes` at `path`, trusting a file that is there only if it holds just these.
pub fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    if holds(path, bytes) {
        return Ok(());
    }
    let temporary = temporary_beside(path);
    let io_error = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    };
    let written = write_new(&temporary, bytes)
        .map_err(io_error("write", &temporary))
        .and_then(|()| fs::rename(&temporary, path).map_err(io_error("put in place", path)));
    if written.is_err() {
        // The first error is the one to tell; that the remains stay as well adds nothing to it.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn holds(path: &Path, bytes: &[u8]) -> bool {
    let open = OpenOptions::new().read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path);
    open.is_ok_and(|file| same(file, bytes).unwrap_or(false))
}

fn same(file: File, bytes: &[u8]) -> io::Result<bool> {
    let found = file.metadata()?;
    if !found.is_file() || found.len() != bytes.len() as u64 {
        return Ok(false);
    }
    let mut content = Vec::with_capacity(bytes.len());
    file.take(bytes.len() as u64 + 1).read_to_end(&mut content)?;
    Ok(content == bytes)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o500).open(path)?;
    file.write_all(bytes)
}

/// Unique among processes of this host by the pid; two pid namespaces that share a home and meet on the same pid and
/// number fail on `create_new`, which is an error and not a mixture.
fn temporary_beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // SYNC: a number for a name; it orders nothing.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.{number}.tmp", process::id()))
}
