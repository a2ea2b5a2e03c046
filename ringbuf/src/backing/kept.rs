//! Descriptors of ours in a process that is not ours: high numbers, looked at before use, and a lock that says to
//! sweepers that somebody has the segment open.

use std::{
    fs::File,
    io,
    mem::ManuallyDrop,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

/// A descriptor that may have been closed and reused behind our back.
pub struct KeptFile {
    file: ManuallyDrop<OwnedFd>,
    device: u64,
    inode: u64,
}

impl KeptFile {
    pub fn new(file: OwnedFd) -> io::Result<KeptFile> {
        let (device, inode) = device_and_inode(&file)?;
        Ok(KeptFile { file: ManuallyDrop::new(file), device, inode })
    }

    pub(super) fn still_ours(&self) -> bool {
        device_and_inode(&self.file).is_ok_and(|found| found == (self.device, self.inode))
    }

    pub(super) fn number(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl Drop for KeptFile {
    fn drop(&mut self) {
        if self.still_ours() {
            // SAFETY: dropped once, here; nothing uses it afterwards.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

fn device_and_inode(file: &OwnedFd) -> io::Result<(u64, u64)> {
    // SAFETY: zero is a valid stat, and the call fills it.
    let mut s: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `s` may be written; a descriptor that is not open any more is an error, not a fault.
    if unsafe { libc::fstat(file.as_raw_fd(), &mut s) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((s.st_dev, s.st_ino))
}

/// Moves a descriptor out of the range of numbers that jobs use and count on.
pub(super) fn high(file: File) -> OwnedFd {
    const LEAST: [libc::c_int; 3] = [1000, 500, 200];
    for least in LEAST {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least) };
        if fd >= 0 {
            // SAFETY: the descriptor is new and ours.
            return unsafe { OwnedFd::from_raw_fd(fd) };
        }
    }
    file.into()
}

/// Says, for as long as this open file lives in any process, that the file is in use; a mapping of it counts, so a job
/// that closes its descriptors changes nothing. Never waits: where it is being swept this very moment, or the file
/// system has no such locks, the file stays unlocked.
pub(crate) fn lock_in_use(file: &impl AsRawFd) {
    // SAFETY: no memory is passed.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) };
}

/// Says that the process behind this open file writes the segment, to those who cannot see its pid.
pub(super) fn lock_as_writer(file: &impl AsRawFd) {
    let lock = first_byte(libc::F_WRLCK);
    // SAFETY: the lock is a whole one, which this command only reads.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) };
}

/// Whether some process has the file open as its writer, wherever it is: a lock of an open file ends with it.
pub(crate) fn has_writer(file: &impl AsRawFd) -> bool {
    let mut lock = first_byte(libc::F_RDLCK);
    // SAFETY: the lock is a whole one, and may be written.
    let failed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) } != 0;
    !failed && lock.l_type != libc::F_UNLCK as libc::c_short
}

fn first_byte(kind: libc::c_int) -> libc::flock {
    // SAFETY: zero is a valid flock; its pid has to be 0 for locks of open files.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_len = 1;
    lock
}

/// Whether nobody uses the file; if so, nobody can say so until this open file is closed.
pub(crate) fn lock_unused(file: &impl AsRawFd) -> bool {
    // SAFETY: no memory is passed.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        thread,
        time::{Duration, Instant},
    };

    #[test]
    fn what_the_job_put_in_our_place_is_not_closed() {
        let path = std::env::temp_dir();
        let kept = KeptFile::new(high(File::open(&path).unwrap())).unwrap();
        let other = File::open("/dev/null").unwrap();
        // SAFETY: no memory is passed; what the number was is given up, as a job that closes everything does.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), kept.number()) }, kept.number());
        let number = kept.number();
        assert!(!kept.still_ours());
        drop(kept);
        // SAFETY: the descriptor is open, and nobody else's.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
        // SAFETY: no memory is passed.
        assert_eq!(unsafe { libc::fcntl(number, libc::F_GETFD) }, -1, "it was ours to close");
    }

    #[test]
    fn a_file_in_use_cannot_be_claimed() {
        let folder = std::env::temp_dir();
        let open = || File::open(&folder).unwrap();
        // A folder of a test of ours alone: others lock no folder.
        let (user, sweeper) = (open(), open());
        lock_in_use(&user);
        assert!(!lock_unused(&sweeper));
        drop(user);
        // A keeper that a test beside this one starts has a copy of every descriptor until it has closed it.
        let deadline = Instant::now() + Duration::from_secs(20);
        while !lock_unused(&sweeper) {
            assert!(Instant::now() < deadline, "still locked");
            thread::yield_now();
        }
    }
}
