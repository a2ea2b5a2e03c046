//! Which folders may hold the libraries, and what a folder must be to do so.

use std::env;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::geteuid;

use crate::{Error, Result};

const OTHERS: u32 = 0o077;

/// In the order in which they are tried. The XDG rules say to ignore a path that is not absolute.
pub fn candidates() -> Vec<PathBuf> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let mut found = Vec::new();
    found.extend(absolute("XDG_CACHE_HOME").map(|path| path.join("gputap")));
    found.extend(absolute("HOME").map(|path| path.join(".cache/gputap")));
    found.extend(absolute("XDG_RUNTIME_DIR").map(|path| path.join("gputap")));
    found.push(PathBuf::from(format!("/tmp/gputap-{}", geteuid().as_raw())));
    found
}

/// Makes `path` a folder that only this user can enter, or says why it is none.
pub fn make_private(path: &Path) -> Result<()> {
    let io_error = |action| move |source| Error::Io { action, path: path.to_owned(), source };
    match DirBuilder::new().recursive(false).mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error("make the folder"))?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => made.map_err(io_error("make the folder"))?,
    }
    // Not followed: in /tmp, a link of somebody else's would lead where they like.
    let found = fs::symlink_metadata(path).map_err(io_error("look at the folder"))?;
    if !found.is_dir() {
        return Err(Error::NotAFolder { path: path.to_owned() });
    }
    let user = geteuid().as_raw();
    if found.uid() != user {
        return Err(Error::ForeignOwner { path: path.to_owned(), owner: found.uid(), user });
    }
    if found.mode() & OTHERS != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(io_error("close to others"))?;
    }
    let mount = statvfs(path).map_err(|errno| io_error("ask for the mount")(errno.into()))?;
    if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(Error::NoExec { path: path.to_owned() });
    }
    Ok(())
}
