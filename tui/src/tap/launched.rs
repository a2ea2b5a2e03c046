//! The tap of a job that was started from here, which may take its time to use the GPU, or never do.

use std::time::{Duration, Instant};

use gputap_reader::model::snapshot::{Snapshot, Target};
use gputap_reader::process::{Liveness, liveness, start_time_ticks};
use gputap_ringbuf::discover::Found;

use super::{Family, Source};
use crate::error::Result;

/// Before the job has its tap, at most this often.
const LOOK: Duration = Duration::from_millis(25);

pub struct Launched<F> {
    family: Family,
    start_ticks: u64,
    started: Instant,
    command: String,
    /// What to call the job, whatever its command is.
    title: Option<String>,
    attach: F,
    tap: Option<Box<dyn Source>>,
    look_at: Instant,
    job_gone: bool,
}

impl<F> Launched<F>
where
    F: FnMut(&Found) -> Result<Box<dyn Source>>,
{
    /// `family` knows the process that was started; `attach` opens its tap.
    pub fn new(family: Family, command: String, now: Instant, attach: F) -> Launched<F> {
        // A child that has ended but was not waited for still has its stat file.
        let start_ticks = start_time_ticks(family.root()).unwrap_or(0);
        Launched {
            family,
            start_ticks,
            started: now,
            command,
            title: None,
            attach,
            tap: None,
            look_at: now,
            job_gone: false,
        }
    }

    pub fn titled(mut self, title: &str) -> Launched<F> {
        self.title = Some(title.to_owned());
        self
    }

    fn look(&mut self) -> Result<()> {
        let now = Instant::now();
        if now < self.look_at {
            return Ok(());
        }
        self.look_at = now + LOOK;
        // Asked before the look: what a process leaves is there once it is gone.
        self.job_gone = liveness(self.family.root(), self.start_ticks) == Liveness::Gone;
        self.family.look(now, self.job_gone);
        if self.tap.is_some() {
            // The last picture of one that has ended gives way to a living one only.
            self.family.forget_the_dead();
        }
        if let Some(opened) = self.family.open_next(now, &mut self.attach) {
            let before = self.tap.replace(opened?);
            before.map_or(Ok(()), |mut tap| tap.finish())?;
        }
        Ok(())
    }

    /// A job may run several programs in turn; each one's tap is taken when the one before has ended.
    fn has_living_tap(&self) -> bool {
        self.tap.as_ref().is_some_and(|tap| !tap.ended())
    }
}

impl<F> Source for Launched<F>
where
    F: FnMut(&Found) -> Result<Box<dyn Source>>,
{
    fn step(&mut self) -> Result<bool> {
        if !self.job_gone && !self.has_living_tap() {
            self.look()?;
        }
        match &mut self.tap {
            Some(tap) => tap.step(),
            None => Ok(false),
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        if let Some(tap) = &mut self.tap {
            let mut snapshot = tap.snapshot();
            match &self.title {
                Some(title) => snapshot.target.command.clone_from(title),
                None if snapshot.target.command.is_empty() => snapshot.target.command.clone_from(&self.command),
                None => {}
            }
            return snapshot;
        }
        let target = Target {
            pid: self.family.root(),
            command: self.command.clone(),
            alive: !self.job_gone,
            state: "waiting".into(),
            uptime_ns: self.started.elapsed().as_nanos().try_into().unwrap_or(u64::MAX),
            ..Target::default()
        };
        Snapshot { target, ..Snapshot::default() }
    }

    fn ended(&self) -> bool {
        self.job_gone && !self.has_living_tap()
    }

    fn pending_checksums(&self) -> usize {
        self.tap.as_ref().map_or(0, |tap| tap.pending_checksums())
    }

    fn finish(&mut self) -> Result<()> {
        self.tap.as_mut().map_or(Ok(()), |tap| tap.finish())
    }

    fn discard(&mut self) {
        if let Some(tap) = &mut self.tap {
            tap.discard();
        }
    }
}
