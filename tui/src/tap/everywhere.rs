//! All taps of this host that may be read: those that are there, and those that come.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gputap_reader::model::snapshot::{Snapshot, Target};
use gputap_reader::model::timeline::{Stretch, Timeline};
use gputap_ringbuf::discover::{self, Found};

use super::{Peer, Several, Source, Standing};
use crate::error::Result;

/// Looking at every process of the host is not cheap where there are thousands.
const LOOK: Duration = Duration::from_secs(1);
/// A tap that cannot be opened may be in the making: it is tried at so many looks.
const TRIES: u32 = 3;

pub struct Everywhere<F> {
    taps: Several,
    attach: F,
    /// Segments that are followed, or were tried often enough.
    known: HashSet<PathBuf>,
    tried: Vec<(PathBuf, u32)>,
    look_at: Option<Instant>,
    trouble: Option<String>,
}

impl<F> Everywhere<F>
where
    F: FnMut(&Found) -> Result<Box<dyn Source>>,
{
    /// `attach` opens a tap.
    pub fn new(attach: F) -> Everywhere<F> {
        Everywhere {
            taps: Several::default(),
            attach,
            known: HashSet::new(),
            tried: Vec::new(),
            look_at: None,
            trouble: None,
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        if self.look_at.is_some_and(|at| now < at) {
            return;
        }
        self.look_at = Some(now + LOOK);
        let found = discover::discover();
        self.known.retain(|path| path.exists());
        for found in found.iter().filter(|found| found.alive) {
            if self.known.contains(&found.segment) {
                continue;
            }
            match (self.attach)(found) {
                Ok(tap) => {
                    self.known.insert(found.segment.clone());
                    if !self.taps.follow(tap, Standing::of_pid(found.pid)) {
                        self.trouble = Some("there are more taps than are followed".into());
                    }
                }
                Err(error) => {
                    self.trouble = Some(format!("a tap is not followed: {error}"));
                    self.try_again(&found.segment);
                }
            }
        }
    }

    fn try_again(&mut self, segment: &PathBuf) {
        let tries = match self.tried.iter_mut().find(|(path, _)| path == segment) {
            Some((_, tries)) => {
                *tries += 1;
                *tries
            }
            None => {
                self.tried.push((segment.clone(), 1));
                1
            }
        };
        if tries >= TRIES {
            self.tried.retain(|(path, _)| path != segment);
            self.known.insert(segment.clone());
        }
    }
}

impl<F> Source for Everywhere<F>
where
    F: FnMut(&Found) -> Result<Box<dyn Source>>,
{
    fn step(&mut self) -> Result<bool> {
        self.look();
        self.taps.step()
    }

    fn snapshot(&mut self) -> Snapshot {
        if self.taps.is_empty() {
            let command = "waiting for a process with a tap".to_owned();
            let target = Target { command, alive: true, state: "waiting".into(), ..Target::default() };
            return Snapshot { target, notes: self.trouble.iter().cloned().collect(), ..Snapshot::default() };
        }
        let mut snapshot = self.taps.snapshot();
        snapshot.notes.extend(self.trouble.clone());
        snapshot
    }

    /// There may always come another one.
    fn ended(&self) -> bool {
        false
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
