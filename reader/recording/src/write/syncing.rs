//! Brings what was written to the disk, on a thread of its own: a disk may take seconds, and the ring does not wait.

use super::segment::Segment;
use crate::WriteError;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Files that may wait; beyond them a turn is left out.
const WAITING_MAX: usize = 16;

type Failure = Arc<Mutex<Option<(PathBuf, io::Error)>>>;

#[derive(Default)]
pub struct Syncing {
    thread: Option<SyncSender<(PathBuf, File)>>,
    failure: Failure,
    synced: (u64, u64),
}

impl Syncing {
    /// Asks for a sync if it is time and something was written since.
    pub fn tick(&mut self, segment: &Segment, now_ns: u64, every_ns: u64) -> Result<(), WriteError> {
        if let Some((path, source)) = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(WriteError { action: "bring to the disk", path, source });
        }
        let (at_ns, bytes) = self.synced;
        if now_ns.saturating_sub(at_ns) >= every_ns && segment.bytes() != bytes {
            self.synced = (now_ns, segment.bytes());
            if let Ok(file) = segment.file() {
                self.send(segment.path().to_owned(), file);
            }
        }
        Ok(())
    }

    /// A segment that has ended.
    pub fn hand_over(&mut self, segment: Segment) {
        if let Ok(file) = segment.file() {
            self.send(segment.path().to_owned(), file);
        }
        self.synced.1 = 0;
    }

    fn send(&mut self, path: PathBuf, file: File) {
        let failure = Arc::clone(&self.failure);
        let thread = self.thread.get_or_insert_with(|| start(failure));
        if let Err(TrySendError::Disconnected(_)) = thread.try_send((path, file)) {
            self.thread = None;
        }
    }
}

fn start(failure: Failure) -> SyncSender<(PathBuf, File)> {
    let (sender, receiver) = sync_channel::<(PathBuf, File)>(WAITING_MAX);
    let body = move || {
        for (path, file) in receiver {
            if let Err(error) = file.sync_data() {
                *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some((path, error));
            }
        }
    };
    // Without a thread the kernel brings it to the disk in its own time.
    let _ = std::thread::Builder::new().name("gputap-sync".into()).spawn(body);
    sender
}
