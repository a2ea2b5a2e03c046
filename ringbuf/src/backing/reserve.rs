//! Reserving pages before they are written: afterwards a write to them cannot fault, so it cannot raise SIGBUS.

use super::room;
use crate::words::MappedWords;
use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};

/// Why pages were not reserved. Nothing was changed; what was reserved before stays.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    #[error(
        "reserving {wanted_bytes} bytes more would take more than this tap's share of {limit_bytes} bytes of shared memory"
    )]
    OverBudget { wanted_bytes: u64, limit_bytes: u64 },
    #[error("the memory cgroup leaves {headroom_bytes} bytes, {wanted_bytes} were wanted")]
    Cgroup { wanted_bytes: u64, headroom_bytes: u64 },
    #[error("/dev/shm has {free_bytes} bytes left, {wanted_bytes} were wanted")]
    ShmFull { wanted_bytes: u64, free_bytes: u64 },
    #[error("the kernel did not reserve {wanted_bytes} bytes: {source}")]
    Kernel { wanted_bytes: u64, source: io::Error },
}

/// Reserves pages of one segment. Owned by the housekeeping thread.
pub struct Reserver {
    words: MappedWords,
    /// For kernels without MADV_POPULATE_WRITE (before 5.14); checked before use, since the job may have closed it.
    file: Option<KeptFile>,
    in_dev_shm: bool,
    limit_bytes: u64,
    reserved_bytes: u64,
}

/// A descriptor that may have been closed and reused behind our back.
pub struct KeptFile {
    file: OwnedFd,
    device: u64,
    inode: u64,
}

impl KeptFile {
    pub fn new(file: OwnedFd) -> io::Result<KeptFile> {
        let (device, inode) = device_and_inode(&file)?;
        Ok(KeptFile { file, device, inode })
    }

    fn still_ours(&self) -> bool {
        device_and_inode(&self.file).is_ok_and(|found| found == (self.device, self.inode))
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

impl Reserver {
    /// At most `limit_bytes` will be reserved in all.
    pub fn new(words: MappedWords, file: Option<KeptFile>, in_dev_shm: bool, limit_bytes: u64) -> Reserver {
        Reserver { words, file, in_dev_shm, limit_bytes, reserved_bytes: 0 }
    }

    pub fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Reserves `len_bytes` from `start_bytes`, both multiples of the page size.
    pub fn reserve(&mut self, start_bytes: u64, len_bytes: u64) -> Result<(), ReserveError> {
        let wanted_bytes = len_bytes;
        if len_bytes > self.limit_bytes.saturating_sub(self.reserved_bytes) {
            return Err(ReserveError::OverBudget { wanted_bytes, limit_bytes: self.limit_bytes });
        }
        let headroom_bytes = room::cgroup_headroom_bytes();
        if len_bytes > headroom_bytes {
            return Err(ReserveError::Cgroup { wanted_bytes, headroom_bytes });
        }
        let free_bytes = if self.in_dev_shm { room::free_bytes("/dev/shm").unwrap_or(0) } else { u64::MAX };
        if len_bytes > free_bytes {
            return Err(ReserveError::ShmFull { wanted_bytes, free_bytes });
        }
        self.populate(start_bytes, len_bytes).map_err(|source| ReserveError::Kernel { wanted_bytes, source })?;
        self.reserved_bytes += len_bytes;
        Ok(())
    }

    fn populate(&self, start_bytes: u64, len_bytes: u64) -> io::Result<()> {
        let outside = || io::Error::other("outside the segment");
        let at = self.words.bytes_at(start_bytes as usize, len_bytes as usize).ok_or_else(outside)?;
        // SAFETY: the range lies inside the mapping (bytes_at); populating changes no contents.
        let failed = unsafe { libc::madvise(at.as_ptr().cast(), len_bytes as usize, libc::MADV_POPULATE_WRITE) } != 0;
        if !failed {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match (&self.file, error.raw_os_error()) {
            (Some(file), Some(libc::EINVAL)) if file.still_ours() => allocate(file, start_bytes, len_bytes),
            _ => Err(error),
        }
    }
}

/// Gives the file its blocks; the first touch of each page then costs a fault, but cannot fail for lack of room.
fn allocate(file: &KeptFile, start_bytes: u64, len_bytes: u64) -> io::Result<()> {
    let (start, len) = (start_bytes as libc::off_t, len_bytes as libc::off_t);
    // SAFETY: no memory is passed; the range is inside the file's size, so it does not grow.
    match unsafe { libc::fallocate(file.file.as_raw_fd(), 0, start, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
