//! Reserving pages before they are written: afterwards a write to them cannot fault, so it cannot raise SIGBUS.

use super::{keeper::Held, kept::KeptFile, room};
use crate::{layout::PAGE_BYTES, words::MappedWords};
use std::{io, ptr::NonNull};

/// Why pages were not reserved. Nothing was changed; what was reserved before stays.
#[derive(Debug, thiserror::Error)]
pub enum ReserveError {
    #[error(
        "reserving {wanted_bytes} bytes more would take more than this tap may have: {limit_bytes} bytes, half of what /dev/shm had free, or what a memfd may take"
    )]
    OverBudget { wanted_bytes: u64, limit_bytes: u64 },
    #[error("the memory cgroup leaves {headroom_bytes} bytes, {wanted_bytes} were wanted")]
    Cgroup { wanted_bytes: u64, headroom_bytes: u64 },
    #[error("/dev/shm has {free_bytes} bytes left, {wanted_bytes} were wanted, {kept_bytes} are left to others")]
    ShmFull { wanted_bytes: u64, free_bytes: u64, kept_bytes: u64 },
    #[error("the kernel did not reserve {wanted_bytes} bytes: {source}")]
    Kernel { wanted_bytes: u64, source: io::Error },
    #[error("{start_bytes} and {len_bytes} are not multiples of {PAGE_BYTES}: a defect of the caller")]
    Unaligned { start_bytes: u64, len_bytes: u64 },
}

/// A quarter of /dev/shm stays free for those who cannot do without it (NCCL), whatever the taps' budgets add up to.
const KEPT_SHARE: u64 = 4;

/// Reserves pages of one segment. Owned by the housekeeping thread.
pub struct Reserver {
    words: MappedWords,
    /// For kernels without MADV_POPULATE_WRITE (before 5.14); checked before use, since the job may have closed it.
    file: Option<KeptFile>,
    in_dev_shm: bool,
    limit_bytes: u64,
    /// Room in /dev/shm that is not taken: several taps that start together each see the same free half.
    kept_bytes: u64,
    reserved_bytes: u64,
    populate_advice: libc::c_int,
    held: Held,
}

impl Reserver {
    /// At most `limit_bytes` will be reserved in all.
    pub fn new(words: MappedWords, file: Option<KeptFile>, in_dev_shm: bool, limit_bytes: u64) -> Reserver {
        let populate_advice = libc::MADV_POPULATE_WRITE;
        let size_bytes = if in_dev_shm { room::size_bytes("/dev/shm").unwrap_or(0) } else { 0 };
        let kept_bytes = limit_bytes.min(size_bytes / KEPT_SHARE);
        let held = Held::ByName;
        Reserver { words, file, in_dev_shm, limit_bytes, kept_bytes, reserved_bytes: 0, populate_advice, held }
    }

    pub(super) fn held_as(self, held: Held) -> Reserver {
        Reserver { held, ..self }
    }

    /// What becomes of the segment's descriptors when the job closes all of its own.
    pub fn held(&self) -> Held {
        self.held
    }

    pub fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Reserves `len_bytes` from `start_bytes`, both multiples of [`PAGE_BYTES`] (the largest pages that a kernel of
    /// ours may have), or up to the end of the mapping.
    pub fn reserve(&mut self, start_bytes: u64, len_bytes: u64) -> Result<(), ReserveError> {
        let is_whole = |bytes: u64| bytes.is_multiple_of(PAGE_BYTES as u64);
        let to_the_end = start_bytes.checked_add(len_bytes) == Some(self.words.len() as u64 * 8);
        if !is_whole(start_bytes) || !(is_whole(len_bytes) || to_the_end) {
            return Err(ReserveError::Unaligned { start_bytes, len_bytes });
        }
        let wanted_bytes = len_bytes;
        if len_bytes > self.limit_bytes.saturating_sub(self.reserved_bytes) {
            return Err(ReserveError::OverBudget { wanted_bytes, limit_bytes: self.limit_bytes });
        }
        let headroom_bytes = room::cgroup_headroom_bytes();
        if len_bytes > headroom_bytes {
            return Err(ReserveError::Cgroup { wanted_bytes, headroom_bytes });
        }
        let free_bytes = if self.in_dev_shm { room::free_bytes("/dev/shm").unwrap_or(0) } else { u64::MAX };
        if len_bytes > free_bytes.saturating_sub(self.kept_bytes) {
            return Err(ReserveError::ShmFull { wanted_bytes, free_bytes, kept_bytes: self.kept_bytes });
        }
        self.populate(start_bytes, len_bytes).map_err(|source| ReserveError::Kernel { wanted_bytes, source })?;
        self.reserved_bytes += len_bytes;
        Ok(())
    }

    fn populate(&self, start_bytes: u64, len_bytes: u64) -> io::Result<()> {
        let outside = || io::Error::other("outside the segment");
        let at = self.words.bytes_at(start_bytes as usize, len_bytes as usize).ok_or_else(outside)?;
        set_access(at, len_bytes, libc::PROT_READ | libc::PROT_WRITE)?;
        let filled = self.fill_in(at, start_bytes, len_bytes);
        if filled.is_err() {
            let _ = set_access(at, len_bytes, libc::PROT_NONE);
        }
        filled
    }

    fn fill_in(&self, at: NonNull<u8>, start_bytes: u64, len_bytes: u64) -> io::Result<()> {
        // SAFETY: the range lies inside the mapping (bytes_at); populating changes no contents.
        let failed = unsafe { libc::madvise(at.as_ptr().cast(), len_bytes as usize, self.populate_advice) } != 0;
        if !failed {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match (&self.file, error.raw_os_error()) {
            (Some(file), Some(libc::EINVAL)) if file.still_ours() => allocate(file, start_bytes, len_bytes),
            // What a fault for which there is no room is to the advice.
            (_, Some(libc::EFAULT)) => Err(give_back(at, len_bytes, io::Error::from_raw_os_error(libc::ENOSPC))),
            _ => Err(give_back(at, len_bytes, error)),
        }
    }
}

/// What is not reserved can be accessed by nobody, and so is not filled in where a job locks its memory.
fn set_access(at: NonNull<u8>, len_bytes: u64, access: libc::c_int) -> io::Result<()> {
    // SAFETY: the range lies inside the mapping, and nobody uses it before it is reserved.
    match unsafe { libc::mprotect(at.as_ptr().cast(), len_bytes as usize, access) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Populating that fails keeps the pages it came to: room that others may need, and that nobody would use.
fn give_back(at: NonNull<u8>, len_bytes: u64, error: io::Error) -> io::Error {
    // SAFETY: the range lies inside the mapping and was not reserved, so nobody has written to it: it is zeros before
    // and after.
    unsafe { libc::madvise(at.as_ptr().cast(), len_bytes as usize, libc::MADV_REMOVE) };
    error
}

/// Gives the file its blocks; the first touch of each page then costs a fault, but cannot fail for lack of room.
fn allocate(file: &KeptFile, start_bytes: u64, len_bytes: u64) -> io::Result<()> {
    let (start, len) = (start_bytes as libc::off_t, len_bytes as libc::off_t);
    // SAFETY: no memory is passed; the range is inside the file's size, so it does not grow.
    match unsafe { libc::fallocate(file.number(), 0, start, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::create::{BackingChoice, create};
    use super::*;
    use crate::{header::identity::Backing, layout::Sizes};
    use std::os::{fd::AsRawFd, unix::fs::MetadataExt};

    /// As on a kernel before 5.14, which answers EINVAL to an advice that it does not know.
    fn without_populate(backing: Backing) -> Reserver {
        let sizes = Sizes { lanes: 1, ..Sizes::STATUS_ONLY };
        let created = create(sizes, BackingChoice::Only(backing)).unwrap();
        let start = created.layout.fixed_words as u64 * 8;
        let mut reserver = created.reserver;
        reserver.populate_advice = 9999;
        reserver.reserve(start, PAGE).unwrap();
        reserver
    }
    const PAGE: u64 = PAGE_BYTES as u64;

    #[test]
    fn kernels_without_populate_reserve_through_the_descriptor() {
        without_populate(Backing::Memfd);
        without_populate(Backing::Shm);
        remove_named();
    }

    fn remove_named() {
        for name in std::fs::read_dir("/dev/shm").unwrap().flatten() {
            if name.file_name().to_string_lossy().contains(&format!("-{}-", std::process::id())) {
                let _ = std::fs::remove_file(name.path());
            }
        }
    }

    #[test]
    fn a_quarter_of_dev_shm_is_left_to_others() {
        let mut reserver = without_populate(Backing::Shm);
        let (size_bytes, reserved) = (room::size_bytes("/dev/shm").unwrap(), reserver.reserved_bytes());
        assert!(reserver.kept_bytes > 0 && reserver.kept_bytes <= size_bytes / 4);
        // As if others had filled it meanwhile.
        reserver.kept_bytes = size_bytes;
        let start_bytes = reserver.words.len() as u64 * 8 - PAGE;
        assert!(matches!(reserver.reserve(start_bytes, PAGE), Err(ReserveError::ShmFull { .. })));
        assert_eq!(reserver.reserved_bytes(), reserved);
        remove_named();
    }

    #[test]
    fn a_descriptor_that_the_job_closed_and_reused_is_left_alone() {
        let mut reserver = without_populate(Backing::Memfd);
        let fd = reserver.file.as_ref().unwrap().number();
        let other = tempfile();
        // SAFETY: no memory is passed; what `fd` was is given up, as a job that closes everything does.
        assert_eq!(unsafe { libc::dup2(other.as_raw_fd(), fd) }, fd);
        assert!(matches!(reserver.reserve(2 * PAGE, PAGE), Err(ReserveError::Kernel { .. })));
        assert_eq!(other.metadata().unwrap().blocks(), 0);
        drop(reserver);
        // SAFETY: no memory is passed.
        assert!(unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0, "what the job put there was closed");
    }

    #[test]
    fn only_whole_pages_are_reserved() {
        let mut reserver = without_populate(Backing::Memfd);
        let unaligned = |result| matches!(result, Err(ReserveError::Unaligned { .. }));
        assert!(unaligned(reserver.reserve(PAGE / 2, PAGE)) && unaligned(reserver.reserve(0, PAGE + PAGE / 2)));
    }

    /// An empty file that has room to be allocated.
    fn tempfile() -> std::fs::File {
        let path = std::env::temp_dir().join(format!("gputap-reserve-{}", std::process::id()));
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file.set_len(16 * PAGE).unwrap();
        file
    }
}
