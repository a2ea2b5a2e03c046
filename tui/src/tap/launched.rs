//! The taps of a job that was started from here, which may take its time to use the GPU, or never do: one, or one of
//! each process that uses it.

use std::time::{Duration, Instant};

use gputap_reader::model::snapshot::{Snapshot, Target};
use gputap_reader::model::timeline::{Stretch, Timeline};
use gputap_reader::process::{Liveness, liveness, start_time_ticks};
use gputap_ringbuf::discover::Found;

use super::{Family, Peer, Several, Source, Standing};
use crate::error::Result;

/// Before the job has its first tap, or the next one after those that have ended, at most this often.
const LOOK: Duration = Duration::from_millis(25);
/// For more of them.
const LOOK_FOR_MORE: Duration = Duration::from_millis(200);

pub struct Launched<F> {
    family: Family,
    start_ticks: u64,
    started: Instant,
    command: String,
    /// What to call the job, whatever its command is.
    title: Option<String>,
    attach: F,
    taps: Several,
    /// Why one of several taps could not be followed.
    trouble: Option<String>,
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
            taps: Several::default(),
            trouble: None,
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
        self.look_at = now + if self.has_living_tap() { LOOK_FOR_MORE } else { LOOK };
        // Asked before the look: what a process leaves is there once it is gone.
        self.job_gone = liveness(self.family.root(), self.start_ticks) == Liveness::Gone;
        self.family.look(now, self.job_gone);
        if !self.taps.is_empty() {
            // The last picture of one that has ended gives way to a living one only.
            self.family.forget_the_dead();
        }
        while let Some(opened) = self.open_next(now) {
            match opened {
                Ok((tap, standing)) => {
                    if !self.taps.follow(tap, standing) {
                        self.trouble = Some("the job has more processes with a tap than are followed".into());
                    }
                }
                Err(error) if self.taps.is_empty() => return Err(error),
                Err(error) => self.trouble = Some(format!("a process of the job is not followed: {error}")),
            }
        }
        Ok(())
    }

    fn open_next(&mut self, now: Instant) -> Option<Result<(Box<dyn Source>, Standing)>> {
        let attach = &mut self.attach;
        self.family.open_next(now, |found| Ok((attach(found)?, Standing::of_pid(found.pid))))
    }

    fn has_living_tap(&self) -> bool {
        !self.taps.all_ended()
    }
}

impl<F> Source for Launched<F>
where
    F: FnMut(&Found) -> Result<Box<dyn Source>>,
{
    fn step(&mut self) -> Result<bool> {
        if !self.job_gone {
            self.look()?;
        }
        self.taps.step()
    }

    fn snapshot(&mut self) -> Snapshot {
        if !self.taps.is_empty() {
            let mut snapshot = self.taps.snapshot();
            match &self.title {
                Some(title) => snapshot.target.command.clone_from(title),
                None if snapshot.target.command.is_empty() => snapshot.target.command.clone_from(&self.command),
                None => {}
            }
            snapshot.notes.extend(self.trouble.clone());
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
        self.taps.pending_checksums()
    }

    fn finish(&mut self) -> Result<()> {
        self.taps.finish()
    }

    fn discard(&mut self) {
        self.taps.discard();
    }

    fn timeline(&mut self, stretch: Stretch) -> Timeline {
        self.taps.timeline(stretch)
    }

    fn step_ns(&mut self) -> Option<u64> {
        self.taps.step_ns()
    }

    fn peers(&mut self) -> Vec<Peer> {
        self.taps.peers()
    }

    fn peer_count(&self) -> usize {
        self.taps.peer_count()
    }

    fn look_at(&mut self, key: u64) {
        self.taps.look_at(key);
    }
}
