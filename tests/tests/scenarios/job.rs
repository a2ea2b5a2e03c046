//! The simulated job in a child process under gputap, running until it is told to stop.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use gputap_reader::session::Session;
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::Found;
use gputap_sim_job::{ChildLine, JobReport, JobSpec};
use gputap_tests::{TapCounts, Watched, artifact};

use crate::reading::{self, LIMIT};

/// A job that has been started and has a tap.
pub struct Job {
    child: Watched,
    progress: Vec<u64>,
    report: Option<Box<JobReport>>,
    tap: TapCounts,
}

/// How a job ended that ended well.
#[derive(Debug)]
pub struct Ended {
    pub report: Box<JobReport>,
    pub tap: TapCounts,
    /// From the report, which a job writes when its work is done, to the end of the process.
    pub exit_took: Duration,
}

/// Two threads, some twenty kernels, six modules, at a pace that leaves the machine to others.
pub fn spec() -> JobSpec {
    JobSpec {
        libcuda: artifact("fake_cuda").expect("built"),
        threads: 2,
        kernels_per_second: 8_000,
        layers: 2,
        modules: 6,
        module_bytes_max: 128 << 10,
        sync_every_steps: 4,
        heartbeat_ms: 20,
        until_stdin_closes: true,
        ..JobSpec::default()
    }
}

/// Sets the variables that put gputap and the fake CUPTI into a job, and takes away what the tests' own environment
/// may have of them.
pub fn tap(command: &mut Command, shim: &str, env: &[(&str, &str)]) {
    let ours = |name: &str| ["GPUTAP_", "FAKE_", "CUDA_"].iter().any(|prefix| name.starts_with(prefix));
    std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)).for_each(|(name, _)| {
        command.env_remove(name);
    });
    command.env("CUDA_INJECTION64_PATH", artifact(shim).expect("built"));
    command.env("GPUTAP_CUPTI", artifact("fake_cupti").expect("built"));
    // On a machine that is busy with other tests a last flush may take longer than an exit waits for it.
    command.env("GPUTAP_EXIT_MS", "10000");
    command.envs(env.iter().copied());
}

/// For the exits whose last flush never comes back: what a user has.
pub const ORDINARY_PATIENCE: (&str, &str) = ("GPUTAP_EXIT_MS", "");

impl Job {
    pub fn start(spec: &JobSpec, env: &[(&str, &str)]) -> Self {
        Self::start_under(spec, env, None)
    }

    /// As [`Job::start`], under a limit on the size of files (RLIMIT_FSIZE).
    pub fn start_under(spec: &JobSpec, env: &[(&str, &str)], file_size_bytes: Option<u64>) -> Self {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_deadlock")));
        command.arg("--as-job").args(spec.to_words().expect("words"));
        tap(&mut command, "gputap_shim", env);
        if let Some(bytes) = file_size_bytes {
            let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
            // SAFETY: setrlimit may be called between fork and exec.
            unsafe {
                command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                })
            };
        }
        let child = Watched::spawn(&mut command).expect("the job starts");
        Self { child, progress: vec![0; spec.threads], report: None, tap: TapCounts::default() }
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// The job's tap, once it is there.
    pub fn found(&self) -> Found {
        reading::wait_for_tap(self.pid())
    }

    pub fn attached(&self) -> Attached {
        Attached::open(&self.found()).expect("a whole segment")
    }

    pub fn session(&self, kinds: u64) -> Session {
        reading::session(&self.found(), kinds)
    }

    /// Takes in the lines that are there until `deadline`; false once the job is over.
    fn listen(&mut self, deadline: Instant) -> bool {
        while let Some(line) = self.child.next_line(deadline) {
            match ChildLine::parse(&line) {
                ChildLine::Progress(counts) => self.progress = counts,
                ChildLine::Report(report) => self.report = Some(report),
                ChildLine::Other(line) => self.tap = TapCounts::from_line(&line).unwrap_or(self.tap),
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        !self.child.exited()
    }

    /// Waits until every thread of the job has got further by `calls` driver calls, as its heartbeat says.
    pub fn wait_for_progress(&mut self, calls: u64) {
        self.listen(Instant::now());
        let start = self.progress.clone();
        let deadline = Instant::now() + LIMIT;
        while self.progress.iter().zip(&start).any(|(now, then)| now - then < calls) {
            let runs = self.listen(Instant::now() + Duration::from_millis(20));
            assert!(runs, "the job ended");
            assert!(Instant::now() < deadline, "the job stands still: {:?}, was {start:?}", self.progress);
        }
    }

    /// Tells the job to stop, and waits for its end, which must be a good one.
    pub fn end(mut self) -> Ended {
        self.child.stdin = None;
        let deadline = Instant::now() + LIMIT;
        while self.report.is_none() && self.listen(Instant::now() + Duration::from_millis(5)) {
            assert!(Instant::now() < deadline, "the job does not stop:\n{}", self.child.stacks());
        }
        let reported = Instant::now();
        while self.listen(Instant::now() + Duration::from_millis(5)) {
            assert!(Instant::now() < deadline, "the job does not exit:\n{}", self.child.stacks());
        }
        let exit_took = reported.elapsed();
        let (status, stderr) = self.child.end().expect("reaped");
        assert!(status.success(), "the job ended with {status}:\n{stderr}");
        let report = self.report.unwrap_or_else(|| panic!("the job made no report:\n{stderr}"));
        Ended { report, tap: self.tap, exit_took }
    }

    /// Kills the job with SIGKILL and reaps it.
    pub fn kill(self) {
        let (status, _) = self.child.end().expect("killed and reaped");
        assert!(!status.success());
    }
}

/// All that a job put on the GPU, by its own count.
pub fn generated(report: &JobReport) -> u64 {
    let copies = [report.host_to_device, report.device_to_host, report.device_to_device];
    report.kernels + report.memsets.count + copies.iter().map(|copy| copy.count).sum::<u64>()
}
