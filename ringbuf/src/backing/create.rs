//! Making a segment and its control object.

use super::{
    keeper,
    kept::{KeptFile, high, lock_as_writer, lock_in_use},
    reserve::{ReserveError, Reserver},
    room,
};
use crate::{
    control::{CONTROL_BYTES, server::ControlServer},
    header::identity::{Backing, Identity},
    layout::{Layout, PAGE_BYTES, Sizes},
    process,
    words::MappedWords,
};
use shared_memory::{ShmemConf, ShmemError};
use std::{
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    ptr::NonNull,
};

/// Which backing the settings ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackingChoice {
    /// A POSIX object where half of /dev/shm's free room is enough, else a memfd.
    Auto,
    Only(Backing),
}

/// Why there is no segment.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    #[error("RLIMIT_FSIZE allows files of {limit_bytes} bytes, the smallest segment needs {needed_bytes}")]
    FileSizeLimit { limit_bytes: u64, needed_bytes: u64 },
    #[error("pages of this system have {page_bytes} bytes, more than the {PAGE_BYTES} that a segment is laid out for")]
    PageSize { page_bytes: u64 },
    #[error("/dev/shm is missing or cannot be written, and GPUTAP_BACKING asks for it: {source}")]
    Shm { source: ShmemError },
    #[error("what was just made in /dev/shm cannot be opened: {source}")]
    Reopen { source: io::Error },
    #[error("memfd: {source}")]
    Memfd { source: io::Error },
    #[error("the head of the segment could not be reserved: {0}")]
    Reserve(#[from] ReserveError),
}

/// A segment that nobody can read yet (its magic is missing), and what its maker does with it.
pub struct Created {
    pub words: MappedWords,
    pub layout: Layout,
    pub identity: Identity,
    pub reserver: Reserver,
    pub control: ControlServer<MappedWords>,
}

/// Below this share of /dev/shm, `auto` takes a memfd: one PyTorch run loads 172 MB of cubins.
const ENOUGH_SHM_BYTES: u64 = 512 << 20;
/// A tap never takes more than this of the machine's memory through a memfd.
const MEMFD_LIMIT_BYTES: u64 = 4 << 30;

/// Makes a segment of at most `sizes` (the cubin area shrinks to what RLIMIT_FSIZE allows) and its control object,
/// and reserves their fixed part. Both stay mapped for the life of the process.
pub fn create(sizes: Sizes, choice: BackingChoice) -> Result<Created, CreateError> {
    let page_bytes = room::page_bytes();
    if page_bytes > PAGE_BYTES as u64 {
        return Err(CreateError::PageSize { page_bytes });
    }
    let sizes = within_file_size_limit(sizes)?;
    let layout = Layout::new(sizes);
    let nonce = process::random();
    // At least half is left to others: the control object counts as well, and it may take a page of any size.
    let share_bytes = (room::free_bytes("/dev/shm").unwrap_or(0) / 2).saturating_sub(PAGE_BYTES as u64);
    let made = match choice {
        BackingChoice::Only(Backing::Shm) => named(layout, nonce, share_bytes)?,
        BackingChoice::Only(Backing::Memfd) => memfd(layout, nonce)?,
        BackingChoice::Auto if share_bytes >= ENOUGH_SHM_BYTES.min(layout.total_words as u64 * 8) => {
            match named(layout, nonce, share_bytes).and_then(|made| finish(made, layout, nonce)) {
                Ok(created) => return Ok(created),
                Err(_) => memfd(layout, nonce)?,
            }
        }
        BackingChoice::Auto => memfd(layout, nonce)?,
    };
    finish(made, layout, nonce)
}

struct Made {
    segment: Object,
    control: Object,
    backing: Backing,
    limit_bytes: u64,
}

/// Mapped for the life of the process.
struct Object {
    words: MappedWords,
    file: KeptFile,
    name: Option<UnlinkOnFailure>,
}

/// Takes a named object away again unless all of the segment came to be.
struct UnlinkOnFailure(String);

impl Drop for UnlinkOnFailure {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn finish(made: Made, layout: Layout, nonce: u64) -> Result<Created, CreateError> {
    let Made { segment, control, backing, limit_bytes } = made;
    leave_out_of_core_dumps(&segment.words);
    let in_dev_shm = backing == Backing::Shm;
    let descriptors = [segment.file.number(), control.file.number()];
    let mut control_reserver =
        Reserver::new(control.words.clone(), Some(control.file), in_dev_shm, CONTROL_BYTES as u64);
    control_reserver.reserve(0, CONTROL_BYTES as u64)?;
    let mut reserver = Reserver::new(segment.words.clone(), Some(segment.file), in_dev_shm, limit_bytes);
    reserver.reserve(0, layout.fixed_words as u64 * 8)?;
    if !in_dev_shm {
        // Readers find a memfd by its descriptor, which nothing here uses again.
        std::mem::forget(control_reserver);
        // From here on nothing fails: the thread keeps the memory for ever.
        reserver = reserver.held_as(keeper::start(descriptors));
    }
    std::mem::forget((segment.name, control.name));
    let pid = std::process::id();
    let identity = Identity::current(pid, backing, nonce, process::monotonic_ns());
    identity.write(&segment.words, &layout.sizes);
    let control = ControlServer::new(control.words, nonce, pid);
    Ok(Created { words: segment.words, layout, identity, reserver, control })
}

/// A core dump of the process would fill in every page that was never reserved: gigabytes of memory and of file.
fn leave_out_of_core_dumps(words: &MappedWords) {
    if let Some(at) = words.bytes_at(0, words.len() * 8) {
        // SAFETY: the range is the whole mapping; the advice changes no contents. Where it is refused, nothing is lost.
        unsafe { libc::madvise(at.as_ptr().cast(), words.len() * 8, libc::MADV_DONTDUMP) };
    }
}

/// Shrinks the cubin area until the file may be as large as it has to be.
fn within_file_size_limit(mut sizes: Sizes) -> Result<Sizes, CreateError> {
    let limit_bytes = room::file_size_limit_bytes();
    let needed_bytes = Layout::new(sizes).total_words as u64 * 8;
    let over_bytes = needed_bytes.saturating_sub(limit_bytes).next_multiple_of(PAGE_BYTES as u64);
    if over_bytes > sizes.cubin_bytes as u64 {
        return Err(CreateError::FileSizeLimit { limit_bytes, needed_bytes: needed_bytes - sizes.cubin_bytes as u64 });
    }
    sizes.cubin_bytes -= over_bytes as usize;
    Ok(sizes)
}

fn named(layout: Layout, nonce: u64, limit_bytes: u64) -> Result<Made, CreateError> {
    let namespace = process::this().pid_namespace;
    let name = |what: &str| format!("/gputap-{namespace}-{}-{nonce:016x}.{what}", std::process::id());
    let segment = named_object(&name("ring"), layout.total_words * 8)?;
    let control = named_object(&name("ctl"), CONTROL_BYTES)?;
    if let Some(UnlinkOnFailure(path)) = &segment.name {
        // The one thing that could cut it under the job is a user of the same name with a careless redirection; readers
        // only read. Where it cannot be had, the segment works as well.
        let _ = fs::set_permissions(path, Permissions::from_mode(0o400));
    }
    Ok(Made { segment, control, backing: Backing::Shm, limit_bytes })
}

fn named_object(name: &str, size_bytes: usize) -> Result<Object, CreateError> {
    // It maps what it makes: a page is enough, see `mapped_for_ever`.
    let made = ShmemConf::new().os_id(name).size(CONTROL_BYTES).create();
    let mut made = made.map_err(|source| CreateError::Shm { source })?;
    // From here on the name is ours to remove.
    made.set_owner(false);
    let path = format!("/dev/shm{name}");
    let name = Some(UnlinkOnFailure(path.clone()));
    let reopen = |source| CreateError::Reopen { source };
    let file = OpenOptions::new().read(true).write(true).open(&path).map_err(reopen)?;
    file.set_len(size_bytes as u64).map_err(reopen)?;
    let file = high(file);
    lock_in_use(&file);
    lock_as_writer(&file);
    let words = mapped_for_ever(&file, size_bytes).map_err(reopen)?;
    // What made it has a descriptor of the lowest number and a mapping of its own, and gives both up here.
    drop(made);
    Ok(Object { words, file: KeptFile::new(file).map_err(reopen)?, name })
}

/// Maps so that nothing can be accessed yet: the reserver opens what it has reserved. A job that locks its memory, before
/// (`mlockall(MCL_FUTURE)`) or later, has all filled in that can be accessed: it would be gigabytes that are sparse.
fn mapped_for_ever(file: &OwnedFd, size_bytes: usize) -> io::Result<MappedWords> {
    let null = std::ptr::null_mut();
    // SAFETY: a new mapping at an address of the kernel's choice.
    let base = unsafe { libc::mmap(null, size_bytes, libc::PROT_NONE, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // Of what a job may lock, it is to have as much left as before.
    // SAFETY: the mapping just made, all of it. Where it is not locked, or may not be unlocked, nothing changes.
    unsafe { libc::munlock(base, size_bytes) };
    let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
    // SAFETY: mmap gave page-aligned memory of `size_bytes`, and nothing unmaps it any more. Only what was reserved is
    // used, which is readable and writable by then.
    Ok(unsafe { MappedWords::new(base, size_bytes / 8, None) })
}

fn memfd(layout: Layout, nonce: u64) -> Result<Made, CreateError> {
    let make = || -> io::Result<Made> {
        let segment = memfd_object(&format!("gputap-{nonce:016x}.ring"), layout.total_words * 8)?;
        let control = memfd_object(&format!("gputap-{nonce:016x}.ctl"), CONTROL_BYTES)?;
        Ok(Made { segment, control, backing: Backing::Memfd, limit_bytes: MEMFD_LIMIT_BYTES })
    };
    make().map_err(|source| CreateError::Memfd { source })
}

fn memfd_object(name: &str, size_bytes: usize) -> io::Result<Object> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: `name` is NUL-terminated.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and ours.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.set_len(size_bytes as u64)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: no memory is passed.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let file = high(file);
    let words = mapped_for_ever(&file, size_bytes)?;
    Ok(Object { words, file: KeptFile::new(file)?, name: None })
}
