//! What is being recorded: one tap, those of a job, or all of the machine, into one folder.

use std::time::{Duration, Instant};

use gputap_reader::clock::Now;
use gputap_reader::recording::{Recording, Settings};
use gputap_ringbuf::discover::Found;

use super::Folder;
use super::tap::Tap;
use crate::error::Result;
use crate::output::remark;
use crate::tap::{Attached, Family, Source};

/// More tapped processes than this at a time are left out, with a word.
const TAPS_MAX: usize = 256;
const LOOK: Duration = Duration::from_millis(20);
/// Something may cease to be had later: another reader comes.
const TELL: Duration = Duration::from_millis(500);
/// Processes that are summed up in full; the others get a line.
const SUMMARIES_MAX: usize = 16;

pub struct Recordings {
    folder: Folder,
    recording: Recording,
    family: Option<Family>,
    /// What is asked of the taps that are still to be opened.
    kinds: u64,
    look_at: Option<Instant>,
    tell_at: Option<Instant>,
    /// Those whose processes live, or have not been read to their end.
    taps: Vec<Tap>,
    begun: bool,
    /// Of processes that have ended, told at the end.
    summaries: Vec<String>,
    triggers_told: u64,
    complete: bool,
    finished: bool,
    last_seconds: Option<u64>,
}

impl Recordings {
    pub fn of(folder: Folder, settings: Settings) -> Result<Recordings> {
        let last_seconds = settings.triggers.as_ref().map(|triggers| triggers.last_ns / 1_000_000_000);
        let recording = Recording::create(folder.path(), settings, Now::read())?;
        Ok(Recordings {
            folder,
            recording,
            family: None,
            kinds: 0,
            look_at: None,
            tell_at: None,
            taps: Vec::new(),
            begun: false,
            summaries: Vec::new(),
            triggers_told: 0,
            complete: true,
            finished: false,
            last_seconds,
        })
    }

    /// Takes the taps of `family` as they come.
    pub fn following(mut self, family: Family, kinds: u64) -> Recordings {
        (self.family, self.kinds) = (Some(family), kinds);
        self
    }

    pub fn add(&mut self, attached: Attached) -> Result<()> {
        self.taps.push(Tap::new(attached.record_into(&self.recording)?));
        self.begun = true;
        Ok(())
    }

    /// Gives whether there is more to take at once.
    pub fn step(&mut self) -> bool {
        if self.finished || self.recording.has_failed() {
            return false;
        }
        let now = Instant::now();
        if self.look_at.is_none_or(|at| now >= at) {
            self.look_at = Some(now + LOOK);
            self.look(now, false);
        }
        if self.tell_at.is_none_or(|at| now >= at) {
            self.tell_at = Some(now + TELL);
            self.taps.iter_mut().for_each(Tap::tell);
        }
        let mut more = false;
        let mut stepped: Result<()> = self.recording.step(Now::read()).map_err(Into::into);
        for tap in &mut self.taps {
            match tap.attached.step() {
                Ok(tap_has_more) => more |= tap_has_more,
                Err(error) => stepped = stepped.and(Err(error)),
            }
        }
        if let Err(error) = stepped {
            self.complete = false;
            remark(&format!("{error}: the recording ends here; what is recorded goes on"));
        }
        self.tell_trigger();
        self.finish_those_that_are_done();
        more
    }

    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Nothing more is to come: the processes have ended, the trigger has fired, or something could not be written.
    pub fn is_over(&self) -> bool {
        let ended = || self.family.is_none() && self.taps.iter().all(|tap| tap.attached.ended());
        !self.finished && (self.recording.has_failed() || self.recording.is_over() || ended())
    }

    /// Taps that were left by processes which had ended before they were seen.
    pub fn job_ended(&mut self) {
        if !self.finished {
            self.look(Instant::now(), true);
        }
    }

    /// Reads on until all checksums are there and, where `to_the_end`, everything that a job left has been read; for a
    /// bounded time.
    pub fn settle(&mut self, within: Duration, to_the_end: bool) {
        let deadline = Instant::now() + within;
        while !self.finished && !self.recording.has_failed() && Instant::now() < deadline {
            let more = self.step();
            let is_pending = |tap: &Tap| tap.attached.pending_checksums() > 0;
            let reads_on = |tap: &Tap| to_the_end && !tap.attached.ended();
            if !self.taps.iter().any(|tap| is_pending(tap) || reads_on(tap)) {
                return;
            }
            if !more {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// Completes the files and says what they hold. Gives false if anything is missing from them.
    pub fn finish(&mut self) -> bool {
        if std::mem::replace(&mut self.finished, true) {
            return self.complete;
        }
        for tap in std::mem::take(&mut self.taps) {
            self.finish_tap(tap);
        }
        if !self.begun {
            self.folder.remove_if_empty();
            remark("nothing was recorded: no process loaded the tap, so none of them used the GPU");
            return self.complete;
        }
        let finished = self.recording.finish(Now::read());
        self.summaries.drain(..).for_each(|summary| remark(&summary));
        if let (Some(seconds), 0) = (self.last_seconds, self.triggers_told) {
            remark(&format!("no trigger fired: the last {seconds} s are kept"));
        }
        match finished {
            Ok(written) => {
                self.complete &= written.complete;
                remark(&format!(
                    "recorded {} events and {} cubins, {} in all, into {}",
                    crate::text::count(written.events),
                    crate::text::count(written.cubins),
                    crate::text::bytes(written.bytes),
                    written.dir.display()
                ));
            }
            Err(error) => {
                self.complete = false;
                remark(&error.to_string());
            }
        }
        self.complete
    }

    /// Ends the leases: a job that goes on is recorded no more.
    pub fn let_go(&mut self) {
        self.taps.clear();
    }

    fn tell_trigger(&mut self) {
        let Some((count, firing)) = self.recording.last_firing() else { return };
        if std::mem::replace(&mut self.triggers_told, count) != count {
            remark(&format!("trigger: pid {}: {}", firing.pid, crate::text::clean(&firing.why)));
        }
    }

    fn finish_those_that_are_done(&mut self) {
        for at in (0..self.taps.len()).rev() {
            if self.taps[at].is_done() {
                let tap = self.taps.remove(at);
                self.finish_tap(tap);
            }
        }
    }

    fn finish_tap(&mut self, mut tap: Tap) {
        tap.tell();
        self.sum_up(&mut tap);
        self.complete &= !tap.attached.is_cut();
        if let Err(error) = tap.attached.finish() {
            self.complete = false;
            remark(&error.to_string());
        }
        if self.family.as_ref().is_some_and(Family::is_a_job) && !self.recording.has_failed() {
            tap.attached.discard();
        }
    }

    /// Of others' processes at once, which may come and go for days; of a job's at its end.
    fn sum_up(&mut self, tap: &mut Tap) {
        let are_others = self.family.as_ref().is_some_and(|family| !family.is_a_job());
        if are_others {
            return remark(&tap.line());
        }
        let is_one_more = self.summaries.len() >= SUMMARIES_MAX;
        let snapshot = tap.attached.snapshot();
        self.summaries.push(if is_one_more { tap.line() } else { tap.summary(&snapshot) });
    }

    fn look(&mut self, now: Instant, gone: bool) {
        let Some(family) = &mut self.family else { return };
        family.look(now, gone);
        let is_a_job = family.is_a_job();
        let (recording, taps, kinds) = (&self.recording, &mut self.taps, self.kinds);
        while let Some(opened) = family.open_next(now, |found| open(found, recording, taps, kinds)) {
            match opened {
                Ok(Some(tap)) => {
                    taps.push(tap);
                    self.begun = true;
                }
                Ok(None) => self.complete = false,
                Err(error) => {
                    // Whoever asks for all gets all that may be read.
                    self.complete &= !is_a_job && !recording.has_failed();
                    remark(&error.to_string());
                }
            }
        }
    }
}

fn open(found: &Found, recording: &Recording, taps: &[Tap], kinds: u64) -> Result<Option<Tap>> {
    if taps.len() >= TAPS_MAX {
        remark(&format!("pid {} is not recorded: {TAPS_MAX} processes are already", found.pid));
        return Ok(None);
    }
    let attached = Attached::open(found, kinds)?;
    Ok(Some(Tap::new(attached.record_into(recording)?)))
}
