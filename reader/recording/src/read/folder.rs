//! What a folder holds: the segments in it and below it, by process.

use super::segment::{Broken, SegmentReader};
use super::stream::{Stream, of_json};
use crate::ReadError;
use crate::format::{EXTENSION, Kind};
use crate::process::Process;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How deep segments are looked for: recordings of several hosts may lie beside each other.
const DEPTH_MAX: usize = 6;

/// Something that could not be read; the rest could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub path: PathBuf,
    pub what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

/// One recorded process.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub process: Process,
    /// In the order of their numbers.
    segments: Vec<PathBuf>,
}

impl Recorded {
    /// Reads its events of `kinds` ([`gputap_ringbuf::event::EventKind::bit`]s), modules and statuses from the start.
    pub fn stream(&self, kinds: u64) -> Stream {
        Stream::new(self.segments.iter().cloned(), kinds)
    }

    pub fn segments(&self) -> &[PathBuf] {
        &self.segments
    }
}

/// A folder of recordings, of any number of processes and hosts.
#[derive(Clone, Debug)]
pub struct Recording {
    dir: PathBuf,
    processes: Vec<Recorded>,
    problems: Vec<Problem>,
}

impl Recording {
    /// Looks at the head of every segment in `dir` and below. Ordered by host, rank, then pid.
    ///
    /// # Errors
    /// `dir` cannot be read, or there is no segment in it.
    pub fn open(dir: &Path) -> Result<Recording, ReadError> {
        let mut paths = Vec::new();
        find(dir, DEPTH_MAX, &mut paths).map_err(ReadError::io(dir))?;
        let mut by_key: BTreeMap<_, (Process, Vec<(u32, PathBuf)>)> = BTreeMap::new();
        let mut problems = Vec::new();
        for path in paths {
            match look(&path) {
                Ok((number, process)) => {
                    by_key.entry(process.key()).or_insert_with(|| (process, Vec::new())).1.push((number, path));
                }
                Err(broken) => problems.push(Problem { path, what: broken.to_string() }),
            }
        }
        if by_key.is_empty() && problems.is_empty() {
            let is_old = dir.join("kernels.csv").exists();
            let path = dir.to_owned();
            return Err(if is_old { ReadError::Old { path } } else { ReadError::NoRecording { path } });
        }
        let mut processes: Vec<Recorded> = by_key.into_values().map(recorded).collect();
        processes.sort_by_key(|one| (one.process.host.clone(), one.process.rank, one.process.pid));
        Ok(Recording { dir: dir.to_owned(), processes, problems })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn processes(&self) -> &[Recorded] {
        &self.processes
    }

    /// Segments that are none.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

fn recorded((process, mut segments): (Process, Vec<(u32, PathBuf)>)) -> Recorded {
    segments.sort();
    Recorded { process, segments: segments.into_iter().map(|(_, path)| path).collect() }
}

fn look(path: &Path) -> Result<(u32, Process), Broken> {
    let mut reader = SegmentReader::open(path)?;
    let mut payload = Vec::new();
    match reader.next(|_| true, &mut payload)? {
        Some(frame) if frame.kind == Some(Kind::Process) => Ok((reader.number, of_json(&payload)?)),
        Some(_) => Err(Broken::Other { found: "it does not say whose it is".to_owned() }),
        None => Err(Broken::Cut),
    }
}

fn find(dir: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && depth > 0 {
            find(&path, depth - 1, paths)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == EXTENSION) {
            paths.push(path);
        }
    }
    Ok(())
}
