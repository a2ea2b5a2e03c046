//! A /dev/shm of the storm's own, where the kernel allows one: any tap that starts on the machine meanwhile sweeps what
//! the dead have left in the shared one, as it should, and the storm could not tell that from a loss.

use std::{ffi::CStr, fs, io, ptr::null};

const SHM: &CStr = c"/dev/shm";

/// Puts an empty tmpfs in the place of /dev/shm, for this process and its children alone. To be called while there is
/// one thread.
pub(super) fn take() -> io::Result<()> {
    // SAFETY: takes numbers; what it changes is this process' own.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        as_root_of_a_namespace_of_our_own()?;
    }
    // SAFETY: the strings are NUL-terminated, and what may be null is.
    checked(unsafe { libc::mount(null(), c"/".as_ptr(), null(), libc::MS_REC | libc::MS_PRIVATE, null()) })?;
    // SAFETY: as above.
    checked(unsafe { libc::mount(c"storm".as_ptr(), SHM.as_ptr(), c"tmpfs".as_ptr(), 0, c"mode=1777".as_ptr().cast()) })
}

fn as_root_of_a_namespace_of_our_own() -> io::Result<()> {
    // SAFETY: take nothing.
    let (uid, gid) = unsafe { (libc::getuid(), libc::getgid()) };
    // SAFETY: takes numbers; what it changes is this process' own.
    checked(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) })?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
