//! A recording: what sessions read, in a folder of segments that survive a kill, and the cubins beside them.
//!
//! ```text
//! DIR/pid-PID-NONCE/000001.gtap   the events of one process (gputap_recording)
//! DIR/cubins/CRC32-SIZE.cubin     each distinct cubin once, over all processes
//! DIR/index.json                  who was recorded, how much, where every record went, and what is in the cubins
//! ```
//! A [`Recording`] is the folder, a [`Recorder`] one process of it. `docs/format.md` describes every byte and field.

mod archive;
mod cubin_list;
mod error;
mod filter;
mod index;
mod replace;
mod row;
mod shared;
mod trigger;
mod wall;
mod whose;

pub use cubin_list::{CubinList, KernelFigures, ListError, ListedCubin};
pub use error::RecordError;
pub use filter::Filter;
pub use trigger::{Firing, Trigger, Triggers, parse_duration_ns};

use crate::clock::Now;
use crate::session::{EventSink, Session, StoredCubin};
use gputap_ringbuf::event::Event;
use serde::Serialize;
use shared::Shared;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The status of a process is written again this often.
const STATUS_EVERY_NS: u64 = 2_000_000_000;

/// What is kept of what is read.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Of the whole folder, index aside; the oldest segments are removed.
    pub max_bytes: Option<u64>,
    /// Kernels that are written; all others' events are counted and left out.
    pub filter: Option<Filter>,
    /// What to wait for.
    pub triggers: Option<Triggers>,
}

/// What a recording holds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Written {
    pub dir: PathBuf,
    /// Segments that are there, and the events in them.
    pub segments: u64,
    pub events: u64,
    /// Distinct cubins.
    pub cubins: u64,
    /// Of segments and cubins together.
    pub bytes: u64,
    /// False where something could not be written to its end: an error said so at the time.
    pub complete: bool,
}

/// The folder of a recording, of any number of processes. Clones are the same folder.
#[derive(Clone)]
pub struct Recording {
    shared: Rc<RefCell<Shared>>,
}

impl Recording {
    /// Makes the folder `dir`. An existing folder must be empty. Files come with the first process.
    ///
    /// # Errors
    /// `dir` is not empty, not a folder, or cannot be written.
    pub fn create(dir: &Path, settings: Settings, now: Now) -> Result<Recording, RecordError> {
        make_empty_folder(dir)?;
        Ok(Recording { shared: Rc::new(RefCell::new(Shared::new(dir.to_owned(), settings, now))) })
    }

    /// One more process.
    ///
    /// # Errors
    /// The index could not be written.
    pub fn recorder(&self, session: &Session, now: Now) -> Result<Recorder, RecordError> {
        let mut shared = self.shared.borrow_mut();
        let row = shared.add(whose::of(session), session.standing(now));
        shared.adapt();
        shared.unless_failed(|shared| shared.write_index(now, false))?;
        drop(shared);
        Ok(Recorder { shared: Rc::clone(&self.shared), row, status_due_ns: now.monotonic_ns, has_ended: false })
    }

    /// Goes on with what is due whether or not there are events: segments that are full, triggers, the index.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn step(&self, now: Now) -> Result<(), RecordError> {
        self.shared.borrow_mut().unless_failed(|shared| {
            shared.turn(now)?;
            if shared.is_index_due(now) { shared.write_index(now, false) } else { Ok(()) }
        })
    }

    /// Ends the recording: everything goes to the disk.
    ///
    /// # Errors
    /// A file could not be written. What failed before is not told again, but [`Written::complete`] is false.
    pub fn finish(&self, now: Now) -> Result<Written, RecordError> {
        self.shared.borrow_mut().finish(now)
    }

    /// What there is so far.
    pub fn written(&self) -> Written {
        self.shared.borrow().written()
    }

    /// Something could not be written: nothing more is.
    pub fn has_failed(&self) -> bool {
        self.shared.borrow().has_failed()
    }

    /// It was to end after a trigger, and one has fired.
    pub fn is_over(&self) -> bool {
        self.shared.borrow().alarm.as_ref().is_some_and(|alarm| alarm.is_over)
    }

    /// The trigger that fired last, and how many have.
    pub fn last_firing(&self) -> Option<(u64, Firing)> {
        let shared = self.shared.borrow();
        let alarm = shared.alarm.as_ref()?;
        Some((alarm.count, alarm.firings.last()?.clone()))
    }
}

/// Writes one process of a recording. Its memory does not grow with the events.
pub struct Recorder {
    shared: Rc<RefCell<Shared>>,
    row: usize,
    status_due_ns: u64,
    has_ended: bool,
}

impl Recorder {
    /// To be called before each step of the session: what is known of the process may be more than at the last.
    pub fn look(&self, session: &Session) {
        let mut shared = self.shared.borrow_mut();
        let row = shared.row(self.row);
        if !row.has_begun() {
            whose::of_its_cupti(&mut row.process, session);
        }
    }

    /// To be called after each step: writes what is due.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn keep(&mut self, now: Now, session: &Session) -> Result<(), RecordError> {
        let mut shared = self.shared.borrow_mut();
        let (row, status_due_ns) = (self.row, &mut self.status_due_ns);
        if session.has_ended() && !std::mem::replace(&mut self.has_ended, true) {
            shared.process_ended(row, !session.was_killed());
        }
        shared.unless_failed(|shared| {
            if shared.row(row).may_begin() {
                shared.begin(row)?;
            }
            if now.monotonic_ns >= *status_due_ns {
                *status_due_ns = now.monotonic_ns.saturating_add(STATUS_EVERY_NS);
                shared.loads(row, &session.loads())?;
                shared.row(row).status(now.monotonic_ns, session.standing(now))?;
            }
            shared.turn(now)?;
            if shared.is_index_due(now) { shared.write_index(now, false) } else { Ok(()) }
        })
    }

    /// Ends the segments of this process.
    ///
    /// # Errors
    /// A file could not be written; what failed before is not told again.
    pub fn finish(self, now: Now, session: &Session) -> Result<(), RecordError> {
        let mut shared = self.shared.borrow_mut();
        let row = self.row;
        let has_failed = shared.has_failed();
        let loads = session.loads();
        shared.unless_failed(|shared| {
            // Also a process that did nothing is one that was recorded.
            shared.begin(row)?;
            shared.loads(row, &loads)
        })?;
        let standing = session.standing(now);
        if has_failed {
            return Ok(shared.row(row).finish(now.monotonic_ns, Some(standing), true)?);
        }
        shared.unless_failed(|shared| {
            shared.row(row).finish(now.monotonic_ns, Some(standing), false)?;
            shared.adapt();
            Ok(())
        })
    }
}

/// After an error nothing more is taken; [`Recording::finish`] still ends what was written before.
impl EventSink for Recorder {
    fn name(&mut self, slot: u32, mangled: &[u8]) -> Result<(), RecordError> {
        let row = self.row;
        self.shared.borrow_mut().unless_failed(|shared| {
            shared.row(row).name(slot, mangled);
            Ok(())
        })
    }

    fn text(&mut self, slot: u32, text: &[u8]) -> Result<(), RecordError> {
        let row = self.row;
        self.shared.borrow_mut().unless_failed(|shared| {
            shared.row(row).text(slot, text);
            Ok(())
        })
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        let row = self.row;
        self.shared.borrow_mut().unless_failed(|shared| shared.event(row, event))
    }

    fn cubin(&mut self, cubin: &StoredCubin<'_>) -> Result<(), RecordError> {
        let row = self.row;
        self.shared.borrow_mut().unless_failed(|shared| shared.cubin(row, cubin))
    }

    fn cupti_crc(&mut self, slot: u32, crc: Result<u64, &str>) -> Result<(), RecordError> {
        let row = self.row;
        self.shared.borrow_mut().unless_failed(|shared| shared.cupti_crc(row, slot, crc))
    }

    fn step_ends(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}

fn make_empty_folder(dir: &Path) -> Result<(), RecordError> {
    match fs::metadata(dir) {
        Ok(meta) if !meta.is_dir() => return Err(RecordError::NotAFolder { path: dir.to_owned() }),
        Ok(_) => {
            let mut entries = fs::read_dir(dir).map_err(RecordError::create(dir))?;
            return match entries.next() {
                Some(_) => Err(RecordError::NotEmpty { path: dir.to_owned() }),
                None => Ok(()),
            };
        }
        Err(_) => {}
    }
    fs::create_dir_all(dir).map_err(RecordError::create(dir))
}
