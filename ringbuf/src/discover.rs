//! Finding taps: named objects in /dev/shm (ours and, through /proc/PID/root, those of other mount namespaces) and
//! memfds through /proc/PID/fd. Nothing that a segment says is ever used as a path.

use crate::{
    attach::{open_regular, peek},
    backing::{keeper, kept},
    process,
};
use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// A tap that was found; it may end at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// As we see it; as the process saw itself where it is dead or cannot be seen.
    pub pid: u32,
    /// `pid` is a number of our own pid namespace. Where it is not, the process is in one that we cannot look into, and
    /// whoever has that number here is somebody else.
    pub local: bool,
    pub segment: PathBuf,
    pub control: PathBuf,
    /// The process runs (and is not a later one with the same pid). Where it cannot be seen: its tap shows life.
    pub alive: bool,
    pub(crate) nonce: u64,
    /// CLOCK_MONOTONIC when the tap started; 0 where the header cannot be read.
    started_ns: u64,
    /// Device and inode: two names may lead to one tap, and no stranger's file can pass for it.
    file: (u64, u64),
}

/// Why there is no tap to attach to.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("there is no process {pid}")]
    NoProcess { pid: u32 },
    #[error(
        "process {pid} carries no tap. A tap has to be there from the start: run the job with `gputap record -- CMD` \
         or `gputap top -- CMD`, or set the variables that `gputap env` prints before starting it"
    )]
    NoTap { pid: u32 },
    #[error("process {pid} belongs to another user and cannot be looked into: run gputap as that user, or as root")]
    Permission { pid: u32 },
}

/// Every tap that can be seen, dead ones included, ordered by pid.
pub fn discover() -> Vec<Found> {
    let mut found = named_in(Path::new("/dev/shm"));
    let own_mounts = mounts_of(Path::new("/proc/self"));
    for pid in process::all_pids() {
        let folder = Path::new("/proc").join(pid.to_string());
        let mounts = mounts_of(&folder);
        if mounts.is_some() && mounts != own_mounts {
            found.extend(named_in(&folder.join("root/dev/shm")));
        }
        found.extend(memfds_of(pid, &folder));
    }
    let mut seen = HashSet::new();
    found.retain(|f| seen.insert(f.file));
    bury_predecessors(&mut found);
    found.sort_by_key(|f| (f.pid, f.nonce));
    found
}

/// The named object at `path`, wherever it is: one that was copied away, say. None where it is none.
pub fn at(path: &Path) -> Option<Found> {
    named(path)
}

/// The living tap of process `pid`.
pub fn find(pid: u32) -> Result<Found, FindError> {
    let folder = Path::new("/proc").join(pid.to_string());
    if !folder.exists() {
        return Err(FindError::NoProcess { pid });
    }
    let own = |f: &Found| f.pid == pid && f.local && f.alive;
    let memfds = || memfds_of(pid, &folder).into_iter().find(own);
    let newest = |found: Vec<Found>| found.into_iter().filter(own).max_by_key(|f| f.started_ns);
    // One of our own mounts that is made between two looks must not be found by a way that ends with its process.
    let elsewhere = mounts_of(&folder) != mounts_of(Path::new("/proc/self"));
    let named = || elsewhere.then(|| newest(named_in(&folder.join("root/dev/shm")))).flatten();
    let here = || newest(named_in(Path::new("/dev/shm")));
    if let Some(found) = here().or_else(named).or_else(memfds) {
        return Ok(found);
    }
    let denied =
        |path: &str| fs::read_dir(folder.join(path)).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
    if denied("fd") || denied("root/dev/shm") {
        Err(FindError::Permission { pid })
    } else {
        Err(FindError::NoTap { pid })
    }
}

/// The mount namespace; `None` where we may not look.
fn mounts_of(proc_pid: &Path) -> Option<PathBuf> {
    fs::read_link(proc_pid.join("ns/mnt")).ok()
}

/// Removes the named objects of dead processes of our own pid namespace; gives the segments removed. Never touches
/// those of other namespaces, whose processes we may be unable to see, nor what somebody has open or mapped.
pub fn sweep() -> Vec<PathBuf> {
    let own = process::this().pid_namespace;
    if own == 0 {
        return Vec::new(); // Without /proc nobody can be told from the dead.
    }
    // One whose maker died before its header was whole, or of another ABI, goes by its name.
    let ours = |f: &Found| {
        namespace_in_name(&f.segment) == Some(own)
            && peek(&f.segment).map_or(true, |(identity, _)| identity.pid_namespace == own)
    };
    let mut dead = named_in(Path::new("/dev/shm"));
    dead.retain(|f| !f.alive && ours(f));
    let mut claims: HashMap<PathBuf, File> = dead.iter().filter_map(|f| Some((f.segment.clone(), claim(f)?))).collect();
    dead.retain(|f| claims.contains_key(&f.segment));
    remove_mapped(&mut dead);
    dead.into_iter()
        .filter_map(|f| {
            let _claim = claims.remove(&f.segment)?;
            let _ = fs::remove_file(&f.control);
            fs::remove_file(&f.segment).ok().map(|()| f.segment)
        })
        .collect()
}

/// The segment's file with the lock that nobody else can have while a writer or reader has it open: those of other pid
/// namespaces too, whose maps we cannot look through. It is the file that was found dead, not one that took its name.
fn claim(found: &Found) -> Option<File> {
    let (file, metadata) = open_regular(&found.segment, false).ok()?;
    ((metadata.dev(), metadata.ino()) == found.file && kept::lock_unused(&file)).then_some(file)
}

/// Takes out what some process that we can see maps, under whatever name. Every process is looked at once, and none
/// where there is nothing to look for: this takes milliseconds a process.
fn remove_mapped(found: &mut Vec<Found>) {
    for pid in process::all_pids() {
        if found.is_empty() {
            return;
        }
        let Ok(maps) = fs::read_to_string(format!("/proc/{pid}/maps")) else { continue };
        // proc(5): address perms offset dev inode pathname
        let mapped: HashSet<(&str, &str)> = maps
            .lines()
            .filter_map(|line| {
                let mut fields = line.split_whitespace().skip(3);
                Some((fields.next()?, fields.next()?))
            })
            .collect();
        found.retain(|f| {
            let (device, inode) = f.file;
            let device = format!("{:02x}:{:02x}", libc::major(device), libc::minor(device));
            !mapped.contains(&(device.as_str(), inode.to_string().as_str()))
        });
    }
}

fn named_in(folder: &Path) -> Vec<Found> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<Found> = entries.flatten().filter_map(|e| named(&e.path())).collect();
    bury_predecessors(&mut found);
    found
}

/// A process has one living tap, its newest: exec leaves the segment of the program before it, under the same pid and
/// start time.
fn bury_predecessors(found: &mut [Found]) {
    let mut newest: HashMap<u32, u64> = HashMap::new();
    for f in found.iter().filter(|f| f.alive && f.local) {
        let started_ns = newest.entry(f.pid).or_default();
        *started_ns = f.started_ns.max(*started_ns);
    }
    for f in found.iter_mut().filter(|f| f.local && f.started_ns != 0) {
        f.alive &= newest.get(&f.pid).is_none_or(|newest_ns| f.started_ns == *newest_ns);
    }
}

/// `gputap-NAMESPACE-PID-NONCE.ring`, with its `.ctl` beside it.
fn named(path: &Path) -> Option<Found> {
    let (namespace, pid, nonce) = parts_of_name(path)?;
    let file = fs::symlink_metadata(path).ok().filter(|m| m.is_file())?;
    // The name is only a hint: who lives is decided by the header, where it can be read.
    let (namespace, located, started_ns) = match peek(path) {
        Ok((identity, _)) => {
            let located = process::locate(identity.pid, identity.pid_namespace, identity.start_ticks);
            (identity.pid_namespace, located, identity.started_ns)
        }
        Err(_) => (namespace, process::locate_any(pid, namespace), 0),
    };
    let local = located.is_some() || namespace == process::this().pid_namespace;
    let alive = located.is_some() || (!local && shows_life(path));
    let pid = located.unwrap_or(pid);
    if located.is_some() && !process::may_own(&Path::new("/proc").join(pid.to_string()), file.uid()) {
        return None; // Somebody's file that claims to be another user's process.
    }
    let (segment, control) = (path.to_owned(), path.with_extension("ctl"));
    Some(Found { pid, local, segment, control, alive, nonce, started_ns, file: (file.dev(), file.ino()) })
}

/// Whether the writer of a segment lives, in a pid namespace that we cannot see: it holds its lock. A job that has closed
/// all its descriptors, or is stopped, holds it as well, since its mapping is of the locked open file.
fn shows_life(segment: &Path) -> bool {
    open_regular(segment, false).is_ok_and(|(file, _)| kept::has_writer(&file))
}

impl Found {
    /// For a process that cannot be seen (not [`Found::local`]): whether its tap still shows life.
    pub fn still_shows_life(&self) -> bool {
        shows_life(&self.segment)
    }
}

/// Pid namespace, pid in it, and nonce.
fn parts_of_name(path: &Path) -> Option<(u64, u32, u64)> {
    let name = path.file_name()?.to_str()?;
    let mut parts = name.strip_prefix("gputap-")?.strip_suffix(".ring")?.split('-');
    let (namespace, pid, nonce) = (parts.next()?, parts.next()?, parts.next()?);
    Some((namespace.parse().ok()?, pid.parse().ok()?, u64::from_str_radix(nonce, 16).ok()?))
}

fn namespace_in_name(path: &Path) -> Option<u64> {
    parts_of_name(path).map(|(namespace, _, _)| namespace)
}

/// The newest memfd segment of a process, by the names of its descriptors: those of its keeper, which stay, or the job's.
fn memfds_of(pid: u32, folder: &Path) -> Option<Found> {
    // Of two ways to one tap the last is taken, the keeper's: it stays when the job closes its descriptors.
    [folder.join("fd")]
        .into_iter()
        .chain(keepers_of(folder).into_iter().map(|thread| thread.join("fd")))
        .filter_map(|descriptors| memfds_in(pid, &descriptors))
        .max_by_key(|found| found.started_ns)
}

/// The threads whose name says that they keep descriptors. Whether they do is looked at as with any other.
fn keepers_of(folder: &Path) -> Vec<PathBuf> {
    let threads = folder.join("task");
    // A look at a thread takes some 20 us. Most processes have only one (each is a link to the folder, beside the two
    // that every folder has), and of another user's we could not read the descriptors anyway.
    let denied = |e: io::Error| e.kind() == io::ErrorKind::PermissionDenied;
    if fs::metadata(&threads).is_ok_and(|m| m.nlink() <= 3) || fs::read_dir(folder.join("fd")).is_err_and(denied) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir(threads) else { return Vec::new() };
    let is_keeper = |thread: &PathBuf| {
        fs::read(thread.join("comm")).is_ok_and(|name| name.trim_ascii_end() == keeper::THREAD_NAME.as_bytes())
    };
    entries.flatten().map(|entry| entry.path()).filter(is_keeper).collect()
}

fn memfds_in(pid: u32, descriptors: &Path) -> Option<Found> {
    let (mut rings, mut controls) = (Vec::new(), HashMap::new());
    for entry in fs::read_dir(descriptors).ok()?.flatten() {
        let Ok(target) = fs::read_link(entry.path()) else { continue };
        let target = target.to_string_lossy().into_owned();
        let name = target.strip_prefix("/memfd:gputap-").and_then(|t| t.strip_suffix(" (deleted)"));
        let Some((nonce, what)) = name.and_then(|n| n.split_once('.')) else { continue };
        let Ok(nonce) = u64::from_str_radix(nonce, 16) else { continue };
        match what {
            "ring" => rings.push((nonce, entry.path())),
            "ctl" => _ = controls.insert(nonce, entry.path()),
            _ => {}
        }
    }
    let of_this_process = rings.into_iter().filter_map(|(nonce, segment)| {
        let control = controls.get(&nonce)?.clone();
        // A forked child has its parent's descriptors, a reader has those of what it reads: the tap is the writer's.
        let (identity, _) = peek(&segment).ok()?;
        let located = process::locate(identity.pid, identity.pid_namespace, identity.start_ticks)?;
        let file = fs::metadata(&segment).ok()?;
        let file = (file.dev(), file.ino());
        let started_ns = identity.started_ns;
        let (local, alive) = (true, true);
        (located == pid).then_some(Found { pid, local, segment, control, alive, nonce, started_ns, file })
    });
    of_this_process.max_by_key(|found| found.started_ns)
}
