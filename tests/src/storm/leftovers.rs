//! What a storm may not leave: processes, descriptors, objects in shared memory.

use std::{
    collections::HashSet,
    fs, io,
    path::PathBuf,
    time::{Duration, Instant},
};

use gputap_ringbuf::discover;

use super::DEADLINE;

/// What there was before, and which objects are the storm's own.
pub struct Leftovers {
    descriptors: Vec<PathBuf>,
    objects: HashSet<String>,
    writers: HashSet<u32>,
}

impl Leftovers {
    pub fn before() -> io::Result<Leftovers> {
        // The children of killed writers become ours: none may escape the count.
        // SAFETY: no memory is passed.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
        Ok(Leftovers { descriptors: descriptors()?, objects: objects().collect(), writers: HashSet::new() })
    }

    pub fn is_of(&mut self, writer: u32) {
        self.writers.insert(writer);
    }

    /// Between rounds, when no child should be left: waits for those of killed writers, and sweeps what they left.
    pub fn sweep(&self) -> bool {
        let all_gone = reap_all();
        discover::sweep();
        all_gone
    }

    /// How much is left after a last sweep.
    pub fn after(&self) -> io::Result<u64> {
        let processes = u64::from(!self.sweep());
        // Somebody else may be sweeping at this instant, and hold what we could not.
        let deadline = Instant::now() + DEADLINE;
        while self.objects_left().next().is_some() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
            self.sweep();
        }
        let objects: Vec<String> = self.objects_left().collect();
        objects.iter().for_each(|name| eprintln!("storm: /dev/shm/{name} was left"));
        let mut descriptors = descriptors()?;
        self.descriptors.iter().for_each(|before| {
            let same = descriptors.iter().position(|now| now == before);
            same.map(|i| descriptors.swap_remove(i));
        });
        descriptors.iter().for_each(|path| eprintln!("storm: a descriptor of {} was left", path.display()));
        Ok(processes + objects.len() as u64 + descriptors.len() as u64)
    }

    fn objects_left(&self) -> impl Iterator<Item = String> {
        objects().filter(|name| {
            let pid = name.split('-').nth(2).and_then(|pid| pid.parse().ok());
            pid.is_some_and(|pid| self.writers.contains(&pid)) && !self.objects.contains(name)
        })
    }
}

fn objects() -> impl Iterator<Item = String> {
    let names = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name.starts_with("gputap-"))
}

/// What the descriptors of this process lead to, but for the one that this takes.
fn descriptors() -> io::Result<Vec<PathBuf>> {
    let links: Vec<PathBuf> = fs::read_dir("/proc/self/fd")?.flatten().map(|entry| entry.path()).collect();
    Ok(links.iter().filter_map(|link| fs::read_link(link).ok()).collect())
}

/// Reaps every child there is; false if one does not end.
fn reap_all() -> bool {
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline {
        // SAFETY: no status is asked for.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => std::thread::sleep(Duration::from_millis(1)),
            -1 => return true,
            _ => {}
        }
    }
    false
}
