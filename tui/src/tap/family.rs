//! The taps of a job that was started from here: of the process itself and of all that it starts. Or those of everybody.
//!
//! A process belongs to the job if it descends from the started one or carries the mark that the job's environment was
//! given. Each alone has gaps: an orphan descends from nobody, and a process that writes its own title may overwrite
//! its environment.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gputap_ringbuf::discover::{self, Found};
use gputap_ringbuf::process::is_running;

use crate::error::Result;

/// The variable that marks a job's processes.
pub const LAUNCH: &str = "GPUTAP_LAUNCH";
/// Generations between a started process and the one that uses the GPU.
const GENERATIONS_MAX: usize = 64;
/// Looking at every process of the host is not cheap where there are thousands.
const LOOK_EVERYWHERE: Duration = Duration::from_millis(500);

/// A segment that was just made may not be whole yet.
const MADE_WITHIN: Duration = Duration::from_secs(2);

pub struct Family {
    whose: Whose,
    /// Segments that were there before or have been seen.
    known: HashSet<PathBuf>,
    /// Seen and not opened yet, with the time of the first sight.
    candidates: VecDeque<(Found, Instant)>,
    /// In /dev/shm at the last look: a new name is worth looking everywhere at once, before its process ends.
    names: HashSet<OsString>,
    everywhere_at: Option<Instant>,
}

enum Whose {
    /// The process that was started, and the mark that its children carry.
    Job { root: u32, mark: String },
    /// Everybody's on this machine who lives.
    All,
}

impl Family {
    /// Of all processes of the machine, as they come and go.
    pub fn of_all() -> Family {
        let (known, names) = (HashSet::new(), HashSet::new());
        Family { whose: Whose::All, known, candidates: VecDeque::new(), names, everywhere_at: None }
    }

    /// To be made before the job starts, so that older segments, of a process with the same pid say, are known.
    pub fn before(mark: String) -> Family {
        let known = discover::discover().into_iter().map(|found| found.segment).collect();
        let whose = Whose::Job { root: 0, mark };
        Family { whose, known, candidates: VecDeque::new(), names: named_objects(), everywhere_at: None }
    }

    pub fn started(&mut self, pid: u32) {
        if let Whose::Job { root, .. } = &mut self.whose {
            *root = pid;
        }
    }

    /// 0 where no process was started.
    pub fn root(&self) -> u32 {
        match &self.whose {
            Whose::Job { root, .. } => *root,
            Whose::All => 0,
        }
    }

    /// It was started from here: what it leaves is ours to remove.
    pub fn is_a_job(&self) -> bool {
        matches!(self.whose, Whose::Job { .. })
    }

    /// Looks for taps that are new; once the job has ended (`gone`), for what it left behind.
    pub fn look(&mut self, now: Instant, gone: bool) {
        let mut found: Vec<Found> = discover::find(self.root()).into_iter().collect();
        let names = named_objects();
        let appeared = !names.is_subset(&self.names);
        self.names = names;
        if gone || appeared || self.everywhere_at.is_none_or(|at| now >= at) {
            self.everywhere_at = Some(now + LOOK_EVERYWHERE);
            found.extend(self.everywhere());
            self.known.retain(|path| path.exists());
        }
        found.retain(|found| self.known.insert(found.segment.clone()));
        self.candidates.extend(found.into_iter().map(|found| (found, now)));
    }

    /// Opens the next tap that can be opened, in the order in which they came. One that fails may be in the making and
    /// is tried again at the next call, for a while.
    pub fn open_next<T>(&mut self, now: Instant, mut open: impl FnMut(&Found) -> Result<T>) -> Option<Result<T>> {
        for _ in 0..self.candidates.len() {
            let (found, since) = self.candidates.pop_front()?;
            match open(&found) {
                Err(_) if found.alive && now < since + MADE_WITHIN => self.candidates.push_back((found, since)),
                opened => return Some(opened),
            }
        }
        None
    }

    /// Drops the candidates that have ended meanwhile.
    pub fn forget_the_dead(&mut self) {
        self.candidates.retain(|(found, _)| is_running(&Path::new("/proc").join(found.pid.to_string())));
    }

    fn everywhere(&self) -> Vec<Found> {
        discover::discover().into_iter().filter(|found| self.has(found)).collect()
    }

    /// Of a dead process only the pid is left to tell by; that of the root cannot have been given to another while we
    /// have not waited for it, and older segments are known.
    fn has(&self, found: &Found) -> bool {
        match &self.whose {
            Whose::All => found.alive,
            Whose::Job { root, mark } => {
                let is_of_it = || descends(found.pid, *root) || is_marked(found.pid, mark);
                found.local && (found.pid == *root || (found.alive && is_of_it()))
            }
        }
    }
}

fn descends(pid: u32, root: u32) -> bool {
    let parents = std::iter::successors(Some(pid), |&pid| parent_of(pid));
    parents.take(GENERATIONS_MAX).any(|pid| pid == root)
}

fn is_marked(pid: u32, mark: &str) -> bool {
    let marked = format!("{LAUNCH}={mark}");
    fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|variables| variables.split(|&byte| byte == 0).any(|variable| variable == marked.as_bytes()))
}

fn named_objects() -> HashSet<OsString> {
    let Ok(entries) = fs::read_dir("/dev/shm") else { return HashSet::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter(|name| name.as_encoded_bytes().starts_with(b"gputap-")).collect()
}

/// Field 4 of /proc/PID/stat, counted after the name, which may hold anything.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = stat.get(stat.rfind(')')? + 1..)?;
    fields.split_ascii_whitespace().nth(1)?.parse().ok().filter(|&parent| parent > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_descendants_from_strangers() {
        let own = std::process::id();
        let parent = parent_of(own).unwrap();
        assert!(descends(own, parent));
        assert!(!descends(parent, own));
        assert!(!is_marked(own, "none"));
    }
}
