//! The rounds of the deadlock proof: a job that brings one sort of callback, again and again, under one injection
//! library.

use std::path::PathBuf;
use std::time::Duration;

use gputap_sim_job::JobSpec;

use crate::artifact::{ArtifactError, artifact};
use crate::tapped::{Outcome, TapCounts, TappedJob};

/// An injection library under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// Does a callback's work under the lock that it flushes under: must hang.
    Naive,
    /// Does it under a lock of its own: must not hang.
    Locking,
    /// The product: must not hang.
    Gputap,
}

impl Tap {
    pub fn name(self) -> &'static str {
        match self {
            Self::Naive => "naive",
            Self::Locking => "locking",
            Self::Gputap => "gputap",
        }
    }

    pub fn artifact(self) -> &'static str {
        match self {
            Self::Naive => "naive_shim",
            Self::Locking => "locking_shim",
            Self::Gputap => "gputap_shim",
        }
    }

    /// Flush every millisecond, and record without a reader.
    fn env(self, callback: Callback) -> Vec<(&'static str, String)> {
        match self {
            Self::Naive | Self::Locking => {
                vec![("NAIVE_FLUSH_US", "1000".into()), ("NAIVE_CALLBACK", callback.name().into())]
            }
            Self::Gputap => vec![("GPUTAP_FLUSH_MS", "1".into()), ("GPUTAP_START", "blackbox".into())],
        }
    }
}

/// The callback in which the controls take their lock, and which the job brings about all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callback {
    ModuleLoad,
    ModuleUnload,
    ContextCreate,
    ContextDestroy,
    Launch,
    Synchronize,
}

impl Callback {
    pub const ALL: [Self; 6] = [
        Self::ModuleLoad,
        Self::ModuleUnload,
        Self::ContextCreate,
        Self::ContextDestroy,
        Self::Launch,
        Self::Synchronize,
    ];

    /// As `NAIVE_CALLBACK` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ModuleLoad => "module_load",
            Self::ModuleUnload => "module_unload",
            Self::ContextCreate => "context_create",
            Self::ContextDestroy => "context_destroy",
            Self::Launch => "launch",
            Self::Synchronize => "synchronize",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|callback| callback.name() == name)
    }

    /// A job of `base`'s kind, with more of what brings this callback. Launches count only where they load a module.
    fn job(self, base: JobSpec) -> JobSpec {
        match self {
            Self::ModuleLoad | Self::ModuleUnload | Self::Launch => JobSpec { load_churn: true, ..base },
            Self::ContextCreate | Self::ContextDestroy => JobSpec { context_churn: true, ..base },
            Self::Synchronize => JobSpec { sync_every_steps: 1, ..base },
        }
    }
}

/// How the rounds are run.
#[derive(Clone, Debug)]
pub struct Rounds {
    pub callback: Callback,
    /// A program that hands over to [`crate::job_main`] on `--as-job`.
    pub program: PathBuf,
    pub rounds: usize,
    pub seconds: f64,
    pub threads: usize,
    pub stall: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum DeadlockError {
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error("a job cannot be started or watched: {0}")]
    Io(#[from] std::io::Error),
    #[error("round {round} under {tap}: {reason}; stderr:\n{stderr}")]
    Failed { tap: &'static str, round: usize, reason: String, stderr: String },
    #[error(
        "round {round} under {tap} proves nothing: the tap did not listen, record and flush ({counts:?}); stderr:\n{stderr}"
    )]
    NotTapped { tap: &'static str, round: usize, counts: TapCounts, stderr: String },
}

/// The hung rounds under a tap, and the stacks of the first.
#[derive(Debug, Default)]
pub struct Hangs {
    pub hung: usize,
    pub first_stacks: Option<String>,
    /// Of the rounds that ended: kernels that the jobs launched, modules that they loaded.
    pub kernels: u64,
    pub module_loads: u64,
    /// Of the same rounds: callbacks that the tap was given.
    pub callbacks: u64,
}

impl Rounds {
    /// Runs all rounds under `tap`. A round that ends without the tap having listened, recorded and flushed is an error.
    pub fn run(&self, tap: Tap) -> Result<Hangs, DeadlockError> {
        let mut hangs = Hangs::default();
        for round in 1..=self.rounds {
            let tap_name = tap.name();
            match self.job(tap, hangs.first_stacks.is_none())?.run()? {
                Outcome::Hung { stacks, .. } => {
                    hangs.hung += 1;
                    hangs.first_stacks = hangs.first_stacks.take().or(stacks);
                }
                Outcome::Finished { report, tap: counts, stderr } => {
                    if counts.callbacks == 0 || counts.flushes == 0 || counts.records_written == 0 {
                        return Err(DeadlockError::NotTapped { tap: tap_name, round, counts, stderr });
                    }
                    hangs.kernels += report.kernels;
                    hangs.module_loads += report.module_loads;
                    hangs.callbacks += counts.callbacks;
                }
                Outcome::Failed { reason, stderr } => {
                    return Err(DeadlockError::Failed { tap: tap_name, round, reason, stderr });
                }
            }
        }
        Ok(hangs)
    }

    fn job(&self, tap: Tap, stacks: bool) -> Result<TappedJob, DeadlockError> {
        Ok(TappedJob {
            program: self.program.clone(),
            spec: self.callback.job(JobSpec {
                libcuda: artifact("fake_cuda")?,
                threads: self.threads,
                seconds: self.seconds,
                layers: 1,
                modules: 4,
                module_bytes_max: 512 << 10,
                sync_every_steps: 4,
                heartbeat_ms: 50,
                ..JobSpec::default()
            }),
            shim: Some(artifact(tap.artifact())?),
            cupti: artifact("fake_cupti")?,
            env: tap.env(self.callback),
            stall: self.stall,
            stacks,
        })
    }
}
