//! What is being recorded: one tap, or all those of a job. The first goes into the folder itself, each further one into
//! a folder below it named by its pid.

use std::time::{Duration, Instant};

use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::recording::Written;
use gputap_reader::session::Remark;
use gputap_ringbuf::discover::Found;

use super::Folder;
use crate::error::Result;
use crate::output::remark;
use crate::tap::{Attached, Family, Source};
use crate::text::table;

/// A job with more tapped processes than this has its later ones left out, with a word.
const TAPS_MAX: usize = 256;
const LOOK: Duration = Duration::from_millis(20);
/// Something may cease to be had later: another reader comes.
const TELL: Duration = Duration::from_millis(500);
const KERNELS_IN_SUMMARY: usize = 10;

pub struct Recordings {
    folder: Folder,
    family: Option<Family>,
    /// What is asked of the taps that are still to be opened.
    kinds: u64,
    look_at: Option<Instant>,
    tell_at: Option<Instant>,
    taps: Vec<Tap>,
    complete: bool,
    finished: bool,
}

struct Tap {
    attached: Attached,
    /// What a person has been told about.
    told: Vec<String>,
}

impl Tap {
    fn new(attached: Attached) -> Tap {
        Tap { attached, told: Vec::new() }
    }

    /// Says what is not as it was asked for, each once.
    fn tell(&mut self) {
        for Remark { about, words } in self.attached.remarks() {
            if !self.told.contains(&about) {
                remark(&format!("pid {}: {}", self.attached.pid(), crate::text::clean(&words)));
                self.told.push(about);
            }
        }
    }
}

impl Recordings {
    pub fn of_one(folder: Folder, attached: Attached) -> Recordings {
        let taps = vec![Tap::new(attached)];
        Recordings {
            folder,
            family: None,
            kinds: 0,
            look_at: None,
            tell_at: None,
            taps,
            complete: true,
            finished: false,
        }
    }

    pub fn of_job(folder: Folder, family: Family, kinds: u64) -> Recordings {
        let (family, taps) = (Some(family), Vec::new());
        Recordings { folder, family, kinds, look_at: None, tell_at: None, taps, complete: true, finished: false }
    }

    /// Gives whether there is more to take at once.
    pub fn step(&mut self) -> bool {
        if self.finished {
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
        for tap in &mut self.taps {
            match tap.attached.step() {
                Ok(tap_has_more) => more |= tap_has_more,
                Err(error) => {
                    self.complete = false;
                    remark(&format!("{error}: the recording of pid {} ends here, the job goes on", tap.attached.pid()));
                }
            }
        }
        more
    }

    pub fn has_begun(&self) -> bool {
        !self.taps.is_empty()
    }

    /// Taps that were left by processes which had ended before they were seen.
    pub fn job_ended(&mut self) {
        if !self.finished {
            self.look(Instant::now(), true);
        }
    }

    pub fn ended(&self) -> bool {
        self.taps.iter().all(|tap| tap.attached.ended())
    }

    /// Reads on until all checksums are there and, where `to_the_end`, everything that a job left has been read; for a
    /// bounded time.
    pub fn settle(&mut self, within: Duration, to_the_end: bool) {
        let deadline = Instant::now() + within;
        while !self.finished && Instant::now() < deadline {
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
        if self.taps.is_empty() {
            self.folder.remove_if_empty();
            remark("nothing was recorded: no process of the job loaded the tap, so none of them used the GPU");
        }
        for tap in &mut self.taps {
            tap.tell();
            let snapshot = tap.attached.snapshot();
            match tap.attached.finish() {
                Ok(Some(written)) => {
                    self.complete &= !tap.attached.is_cut();
                    remark(&summary(&snapshot, &written, &tap.told));
                    if self.family.is_some() {
                        tap.attached.discard();
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    self.complete = false;
                    remark(&error.to_string());
                }
            }
        }
        self.complete
    }

    /// Ends the leases: a job that goes on is recorded no more.
    pub fn let_go(&mut self) {
        self.taps.clear();
    }

    fn look(&mut self, now: Instant, gone: bool) {
        let Some(family) = &mut self.family else { return };
        family.look(now, gone);
        let (folder, taps, kinds) = (&self.folder, &mut self.taps, self.kinds);
        while let Some(opened) = family.open_next(now, |found| open(found, folder, taps, kinds)) {
            match opened {
                Ok(Some(tap)) => taps.push(tap),
                Ok(None) => self.complete = false,
                Err(error) => {
                    self.complete = false;
                    remark(&error.to_string());
                }
            }
        }
    }
}

fn open(found: &Found, folder: &Folder, taps: &[Tap], kinds: u64) -> Result<Option<Tap>> {
    if taps.len() >= TAPS_MAX {
        remark(&format!("pid {} is not recorded: {TAPS_MAX} processes of the job are already", found.pid));
        return Ok(None);
    }
    let attached = Attached::open(found, kinds)?;
    let path = match taps.len() {
        0 => folder.path().to_owned(),
        _ => folder.path().join(format!("pid-{}", found.pid)),
    };
    Ok(Some(Tap::new(attached.record_into(&path)?)))
}

/// `told`: notes that a person has read already.
fn summary(snapshot: &Snapshot, written: &Written, told: &[String]) -> String {
    let target = &snapshot.target;
    let mut text = format!("pid {} {}\n", target.pid, crate::text::clean(&target.command));
    if !target.reason.is_empty() {
        text += &format!("the tap is {}: {}\n", target.state, crate::text::clean(&target.reason));
    }
    if !snapshot.kernels.is_empty() {
        text += &table::kernels(&snapshot.kernels, KERNELS_IN_SUMMARY);
    }
    text += &table::others(snapshot);
    text += &(crate::text::loss::line(&snapshot.counts) + "\n");
    for note in snapshot.notes.iter().filter(|note| !told.contains(note)) {
        text += &format!("note: {}\n", crate::text::clean(note));
    }
    text += &format!(
        "recorded {} events and {} cubins, {} in all, into {}\n",
        crate::text::count(written.events),
        crate::text::count(written.cubins),
        crate::text::bytes(written.bytes),
        written.dir.display()
    );
    text
}
