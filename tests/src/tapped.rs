//! The simulated job in a child process, under a tap, watched for standstill.
//!
//! A job **hangs** when a thread of it that has begun and not ended makes no progress for the stall limit while its
//! process lives, or when the process does not begin, synchronize or exit within a fixed limit. It is never judged by
//! how long it takes as a whole.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use fake_cupti::counters::{COUNTERS_SYMBOL, Counters};
use gputap_sim_job::{ChildLine, JobReport, JobSpec, Progress};

use crate::watchdog::Watched;

/// For opening the libraries and making the modules, and for the end of the process.
const START_AND_EXIT_LIMIT: Duration = Duration::from_secs(30);
const COUNTERS_WORD: &str = "counters ";

/// What the fake CUPTI did for the tap, from its own counters: whether there was a tap at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapCounts {
    pub module_callbacks: u64,
    pub flushes: u64,
    pub records_written: u64,
    pub records_delivered: u64,
    pub records_dropped: u64,
    /// Of every sort.
    pub callbacks: u64,
}

impl TapCounts {
    /// Reads the line that [`job_main`] writes after the job's report.
    pub fn from_line(line: &str) -> Option<Self> {
        let mut numbers = line.strip_prefix(COUNTERS_WORD)?.split(' ').map(|n| n.parse().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Some(Self {
            module_callbacks: next(),
            flushes: next(),
            records_written: next(),
            records_delivered: next(),
            records_dropped: next(),
            callbacks: next(),
        })
    }
}

/// How a job ended.
#[derive(Debug)]
pub enum Outcome {
    Finished { report: Box<JobReport>, tap: TapCounts, stderr: String },
    Hung { progress: Vec<u64>, stacks: Option<String>, stderr: String },
    Failed { reason: String, stderr: String },
}

/// A job to be run in a child process.
pub struct TappedJob {
    /// A program whose `main` hands over to [`job_main`] when it is given `--as-job` and words.
    pub program: PathBuf,
    pub spec: JobSpec,
    /// The injection library, if the job is to be tapped.
    pub shim: Option<PathBuf>,
    pub cupti: PathBuf,
    pub env: Vec<(&'static str, String)>,
    /// How long a thread may make no progress.
    pub stall: Duration,
    /// Whether the stacks of a hung job are wanted.
    pub stacks: bool,
}

impl TappedJob {
    /// Starts the job and waits for its end or its standstill.
    pub fn run(&self) -> std::io::Result<Outcome> {
        let words = self.spec.to_words().map_err(std::io::Error::other)?;
        let mut command = Command::new(&self.program);
        command.arg("--as-job").args(words);
        command.env_remove("CUDA_INJECTION64_PATH").env("GPUTAP_CUPTI", &self.cupti);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        if let Some(shim) = &self.shim {
            command.env("CUDA_INJECTION64_PATH", shim);
        }
        Watch::new(Watched::spawn(&mut command)?, self).watch()
    }
}

struct Watch<'a> {
    job: &'a TappedJob,
    child: Watched,
    progress: Vec<u64>,
    /// When each thread's count last changed.
    moved: Vec<Instant>,
    report: Option<Box<JobReport>>,
    tap: TapCounts,
}

impl<'a> Watch<'a> {
    fn new(child: Watched, job: &'a TappedJob) -> Self {
        let now = Instant::now();
        let threads = job.spec.threads;
        let moved = vec![now; threads];
        Self { job, child, progress: vec![0; threads], moved, report: None, tap: TapCounts::default() }
    }

    fn watch(mut self) -> std::io::Result<Outcome> {
        loop {
            let deadline = self.deadline();
            match self.child.next_line(deadline) {
                Some(line) => self.take(ChildLine::parse(&line)),
                None if self.child.exited() => return self.exited(),
                None => return self.hung(),
            }
            if Instant::now() >= self.deadline() && !self.child.exited() {
                return self.hung();
            }
        }
    }

    /// When the job counts as hung if nothing moves until then.
    fn deadline(&self) -> Instant {
        let limit = |count: u64| match count {
            0 | Progress::DONE => START_AND_EXIT_LIMIT,
            _ => self.job.stall,
        };
        let ends = self.progress.iter().zip(&self.moved).map(|(&count, &moved)| (count, moved + limit(count)));
        // A thread that is done waits for the others; only when all are does the end of the process count.
        let all_done = self.progress.iter().all(|&count| count == Progress::DONE);
        let ends: Vec<_> = ends.filter(|(count, _)| all_done || *count != Progress::DONE).map(|(_, end)| end).collect();
        let end = if all_done { ends.iter().max() } else { ends.iter().min() };
        end.copied().unwrap_or_else(Instant::now)
    }

    fn take(&mut self, line: ChildLine) {
        match line {
            ChildLine::Progress(counts) => {
                for ((seen, moved), count) in self.progress.iter_mut().zip(&mut self.moved).zip(counts) {
                    if *seen != count {
                        (*seen, *moved) = (count, Instant::now());
                    }
                }
            }
            ChildLine::Report(report) => {
                self.report = Some(report);
                self.progress.fill(Progress::DONE);
                self.moved.fill(Instant::now());
            }
            ChildLine::Other(line) => {
                if let Some(counts) = TapCounts::from_line(&line) {
                    self.tap = counts;
                }
            }
        }
    }

    fn exited(self) -> std::io::Result<Outcome> {
        let (status, stderr) = self.child.end()?;
        Ok(match self.report {
            Some(report) if status.success() => Outcome::Finished { report, tap: self.tap, stderr },
            Some(_) => Outcome::Failed { reason: format!("after its report the job ended with {status}"), stderr },
            None => Outcome::Failed { reason: format!("the job ended with {status} and without a report"), stderr },
        })
    }

    fn hung(self) -> std::io::Result<Outcome> {
        let stacks = self.job.stacks.then(|| self.child.stacks());
        let (_, stderr) = self.child.end()?;
        Ok(Outcome::Hung { progress: self.progress, stacks, stderr })
    }
}

/// The rest of `main` in the child: runs the job and says what CUPTI did.
pub fn job_main(words: impl IntoIterator<Item = String>) -> ExitCode {
    let code = gputap_sim_job::child(words);
    if let Some(c) = cupti_counters() {
        let line = format!(
            "{COUNTERS_WORD}{} {} {} {} {} {}\n",
            c.module_callbacks, c.flushes, c.records_written, c.records_delivered, c.records_dropped, c.callbacks
        );
        // Who reads may be gone.
        let _ = std::io::stdout().lock().write_all(line.as_bytes());
    }
    code
}

/// The counters of the fake CUPTI that the tap loaded into this process, if it did.
fn cupti_counters() -> Option<Counters> {
    use libloading::os::unix::{Library, RTLD_NOW};
    // SAFETY: RTLD_NOLOAD runs no code, it only looks for a library that is mapped already.
    let library = unsafe { Library::open(Some("libcupti.so.13"), RTLD_NOW | libc::RTLD_NOLOAD) }.ok()?;
    // SAFETY: under this name a fake CUPTI exports exactly this function, and only a fake one has the name.
    let fill = unsafe { library.get::<unsafe extern "C" fn(*mut Counters)>(COUNTERS_SYMBOL) }.ok()?;
    let mut counters = Counters::default();
    // SAFETY: the place may be written, and the library is loaded.
    unsafe { fill(&raw mut counters) };
    Some(counters)
}
