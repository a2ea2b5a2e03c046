//! A thread that asks for CUPTI's checksums, so that draining the lanes never waits for them.

use super::parent::{CrcError, CuptiCrc, Library};
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, channel, sync_channel};

/// Cubins handed over and not answered, at most: it bounds the memory, for a cubin has tens of MB.
const QUEUE: usize = 4;

/// An answer. The library is the one that gave it, if one is in use.
#[derive(Debug)]
pub struct Done {
    pub slot: u32,
    pub crc: Result<u64, CrcError>,
    pub library: Option<Library>,
}

struct Job {
    slot: u32,
    cubin: Vec<u8>,
}

/// Handle of the thread. Dropping it lets the thread end after the cubin it is at, without waiting for it.
#[derive(Debug)]
pub struct CrcWorker {
    jobs: SyncSender<Job>,
    done: Receiver<Done>,
    outstanding: usize,
}

impl CrcWorker {
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(mut crc: CuptiCrc) -> io::Result<CrcWorker> {
        let (jobs, todo) = sync_channel::<Job>(QUEUE);
        let (results, done) = channel();
        // The thread that starts the child must live as long as it: the child dies with its parent thread.
        std::thread::Builder::new().name("gputap-crc".to_owned()).spawn(move || {
            while let Ok(Job { slot, cubin }) = todo.recv() {
                let answer = crc.crc(&cubin);
                let library = crc.library().cloned();
                if results.send(Done { slot, crc: answer, library }).is_err() {
                    return;
                }
            }
        })?;
        Ok(CrcWorker { jobs, done, outstanding: 0 })
    }

    /// Whether another cubin may be handed over now.
    pub fn has_room(&self) -> bool {
        self.outstanding < QUEUE
    }

    /// Hands a cubin over; false where there is no room.
    pub fn submit(&mut self, slot: u32, cubin: Vec<u8>) -> bool {
        let taken = self.has_room() && self.jobs.try_send(Job { slot, cubin }).is_ok();
        self.outstanding += usize::from(taken);
        taken
    }

    /// The next answer, without waiting.
    pub fn next_done(&mut self) -> Option<Done> {
        match self.done.try_recv() {
            Ok(done) => {
                self.outstanding = self.outstanding.saturating_sub(1);
                Some(done)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.outstanding = 0;
                None
            }
        }
    }

    /// Cubins handed over and not answered.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }
}
