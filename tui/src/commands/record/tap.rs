//! One tap that is being recorded, and what a person is told of it on the way.

use std::time::{Duration, Instant};

use gputap_reader::model::ledger::reason::OVERWRITTEN;
use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::session::Remark;

use crate::output::remark;
use crate::tap::{Attached, Source};
use crate::text::{self, table};

/// That records are being lost is said no more often than this.
const LOSS_EVERY: Duration = Duration::from_secs(3);
/// CUPTI's checksums of a process that has ended may take so long.
const CHECKSUMS_WITHIN: Duration = Duration::from_secs(10);
const KERNELS_IN_SUMMARY: usize = 10;

pub struct Tap {
    pub attached: Attached,
    /// What a person has been told about.
    told: Vec<String>,
    overwritten: u64,
    loss_told_at: Option<Instant>,
    ended_at: Option<Instant>,
}

impl Tap {
    pub fn new(attached: Attached) -> Tap {
        Tap { attached, told: Vec::new(), overwritten: 0, loss_told_at: None, ended_at: None }
    }

    /// Says what is not as it was asked for, each once, and what is being lost.
    pub fn tell(&mut self) {
        for Remark { about, words } in self.attached.remarks() {
            if !self.told.contains(&about) {
                remark(&format!("pid {}: {}", self.attached.pid(), text::clean(&words)));
                self.told.push(about);
            }
        }
        if self.loss_told_at.is_none_or(|at| at.elapsed() >= LOSS_EVERY) {
            self.tell_loss();
        }
    }

    fn tell_loss(&mut self) {
        let counts = self.attached.standing().counts;
        let overwritten = counts.lost.iter().find(|lost| lost.reason == OVERWRITTEN).map_or(0, |lost| lost.count);
        let new = overwritten.saturating_sub(std::mem::replace(&mut self.overwritten, overwritten));
        if new > 0 {
            self.loss_told_at = Some(Instant::now());
            remark(&format!(
                "pid {}: this recorder cannot keep up: {} records were overwritten before it read them, {} in all; \
                 fewer --kinds, or a larger GPUTAP_LANE_MB for the job, would help",
                self.attached.pid(),
                text::grouped(new),
                text::grouped(overwritten)
            ));
        }
    }

    /// The process has ended, all that it left has been read, and no checksum is to be waited for.
    pub fn is_done(&mut self) -> bool {
        if !self.attached.ended() {
            return false;
        }
        let since = *self.ended_at.get_or_insert_with(Instant::now);
        self.attached.pending_checksums() == 0 || since.elapsed() >= CHECKSUMS_WITHIN
    }

    /// What it was, in words. Notes that a person has read already are left out.
    pub fn summary(&self, snapshot: &Snapshot) -> String {
        let target = &snapshot.target;
        let mut words = format!("pid {} {}\n", target.pid, text::clean(&target.command));
        if !target.reason.is_empty() {
            words += &format!("the tap is {}: {}\n", target.state, text::clean(&target.reason));
        }
        if !snapshot.kernels.is_empty() {
            words += &table::kernels(&snapshot.kernels, KERNELS_IN_SUMMARY);
        }
        words += &table::others(snapshot);
        words += &(text::loss::line(&snapshot.counts) + "\n");
        for note in snapshot.notes.iter().filter(|note| !self.told.contains(note)) {
            words += &format!("note: {}\n", text::clean(note));
        }
        words
    }

    /// The same in a line.
    pub fn line(&self) -> String {
        let standing = self.attached.standing();
        format!("pid {}: {}\n", self.attached.pid(), text::loss::line(&standing.counts))
    }
}
