//! A recording: what a session reads, in files that other people's tools open.
//!
//! ```text
//! DIR/kernels.csv  copies.csv  memsets.csv   one line an event, numbers only; other kinds have files
//!                                            of their own where there are any
//! DIR/names.jsonl                            one line a name: what name_id means
//! DIR/cubins/CRC32-SIZE.cubin                each distinct cubin once
//! DIR/index.json                             the cubins: sizes, loads, both checksums, functions
//! DIR/summary.json                           who was recorded, statistics, and where every record went
//! ```
//! Every file is text in whole lines, or replaced in one step: after kill -9 all is readable up to the last line.
//! `docs/format.md` describes the columns and fields.

mod archive;
mod cubin_list;
mod error;
mod events;
mod index;
mod lines;

pub use cubin_list::{CubinList, KernelFigures, ListError, ListedCubin};
pub use error::RecordError;

use crate::clock::Now;
use crate::model::snapshot::{ClockPoint, Snapshot};
use crate::session::{EventSink, Session, StoredCubin};
use crate::symbols::{demangle, escape};
use archive::{Archive, Kept};
use gputap_ringbuf::event::{BASIC_KINDS, Event, EventKind};
use index::{Clocks, Index, Summary, TapIdentity};
use lines::{LineFile, replace};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Grows when a column or field changes its meaning.
pub const FORMAT_VERSION: u32 = 2;
/// Kinds are numbered from 1 on.
const KINDS: usize = EventKind::ALL.len() + 1;
/// Summary and index are written again this often.
const KEEP_EVERY_NS: u64 = 2_000_000_000;

/// What a recording holds in the end.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Written {
    pub dir: PathBuf,
    /// Lines in the files of events.
    pub events: u64,
    /// Distinct cubins.
    pub cubins: u64,
    /// Of events, names and cubins together.
    pub bytes: u64,
    /// False where a file could not be written to its end: an error said so at the time.
    pub complete: bool,
}

/// Writes one recording. Its memory does not grow with the events.
#[derive(Debug)]
pub struct Recorder {
    dir: PathBuf,
    tap: TapIdentity,
    began: Now,
    clock_at_begin: Option<ClockPoint>,
    /// By the number of the kind.
    events: [Option<LineFile>; KINDS],
    names: LineFile,
    archive: Archive,
    index: Index,
    kept_ns: u64,
    has_failed: bool,
}

impl Recorder {
    /// Makes the folder `dir` with empty files. An existing folder must be empty.
    ///
    /// # Errors
    /// `dir` is not empty, not a folder, or cannot be written.
    pub fn create(dir: &Path, session: &Session, now: Now) -> Result<Recorder, RecordError> {
        make_empty_folder(dir)?;
        let mut events = [const { None }; KINDS];
        for kind in EventKind::in_mask(BASIC_KINDS) {
            events[kind as usize] = Some(file_of(dir, kind)?);
        }
        Ok(Recorder {
            tap: TapIdentity::of(&session.identity()),
            began: now,
            clock_at_begin: session.clock_point(),
            events,
            names: LineFile::create(dir.join("names.jsonl"), "")?,
            archive: Archive::create(dir.join("cubins"))?,
            index: Index::default(),
            kept_ns: now.monotonic_ns,
            has_failed: false,
            dir: dir.to_owned(),
        })
    }

    /// Writes summary and index again if it is time; `snapshot` is asked only then. To be called after each step.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn keep(&mut self, now: Now, snapshot: impl FnOnce() -> Snapshot) -> Result<(), RecordError> {
        if now.monotonic_ns.saturating_sub(self.kept_ns) < KEEP_EVERY_NS {
            return Ok(());
        }
        self.kept_ns = now.monotonic_ns;
        self.write_documents(&snapshot(), now, false)
    }

    /// Ends the recording: everything goes to the disk. Where a file failed before, the summary says that the recording
    /// is not complete.
    ///
    /// # Errors
    /// A file could not be written; the others were.
    pub fn finish(mut self, snapshot: &Snapshot, now: Now) -> Result<Written, RecordError> {
        let mut synced = vec![self.names.sync()];
        synced.extend(self.events.iter_mut().flatten().map(LineFile::sync));
        self.has_failed |= synced.iter().any(Result::is_err);
        let documents = self.write_documents(snapshot, now, true);
        synced.into_iter().chain([documents]).collect::<Result<(), _>>()?;
        let events = || self.events.iter().flatten();
        // The first line of each names the columns.
        let count = events().map(|file| file.written_lines().saturating_sub(1)).sum();
        let bytes = events().map(|file| file.written_bytes()).sum::<u64>();
        Ok(Written {
            events: count,
            cubins: self.archive.files() as u64,
            bytes: bytes + self.names.written_bytes() + self.archive.bytes(),
            complete: !self.has_failed,
            dir: self.dir,
        })
    }

    fn write_documents(&mut self, snapshot: &Snapshot, now: Now, is_last: bool) -> Result<(), RecordError> {
        self.index.refresh_loads(&snapshot.modules);
        if self.index.changed || is_last {
            replace(&self.dir.join("index.json"), &self.index.to_json(), is_last)?;
            self.index.changed = false;
        }
        let summary = Summary {
            format: "gputap recording",
            version: FORMAT_VERSION,
            complete: is_last && !self.has_failed,
            tap: &self.tap,
            began_realtime_ns: self.began.realtime_ns,
            written_realtime_ns: now.realtime_ns,
            clock: Clocks { begin: self.clock_at_begin.or(snapshot.clock.point), end: snapshot.clock.point },
            snapshot,
        };
        replace(&self.dir.join("summary.json"), &index::json(&summary), is_last)
    }

    /// Does `write` unless a file has failed: from then on there is nothing whole to add to.
    fn unless_failed(
        &mut self,
        write: impl FnOnce(&mut Recorder) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        if self.has_failed {
            return Ok(());
        }
        let result = write(self);
        self.has_failed = result.is_err();
        result
    }

    /// `shown`: as people read it.
    fn write_name(&mut self, slot: u32, shown: &str, mangled: &[u8]) -> Result<(), RecordError> {
        let text = std::str::from_utf8(mangled).ok();
        let hex = || mangled.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = NameLine {
            id: slot,
            name: shown,
            mangled: text,
            mangled_hex: if text.is_none() { Some(hex()) } else { None },
        };
        let json = serde_json::to_vec(&line).unwrap_or_default();
        self.names.line(|line| line.extend_from_slice(&json));
        if self.names.is_full() { self.names.flush() } else { Ok(()) }
    }

    fn write_event(&mut self, event: &Event) -> Result<(), RecordError> {
        let kind = event.kind();
        let file = match &mut self.events[kind as usize] {
            Some(file) => file,
            none => none.insert(file_of(&self.dir, kind)?),
        };
        file.line(|line| events::row(line, event));
        if file.is_full() { self.flush() } else { Ok(()) }
    }

    fn write_cubin(&mut self, cubin: &StoredCubin<'_>) -> Result<(), RecordError> {
        let file = match self.archive.add(cubin.crc32, cubin.bytes)? {
            Kept::File { name, .. } => Some(name),
            Kept::Full => None,
        };
        self.index.add(cubin, file);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        // Names first: no event in the files refers to a name that is not there.
        self.names.flush()?;
        self.events.iter_mut().flatten().try_for_each(LineFile::flush)
    }
}

/// As much of a text as of a name.
const TEXT_SHOWN_BYTES: usize = 8192;

#[derive(Serialize)]
struct NameLine<'a> {
    id: u32,
    name: &'a str,
    /// Absent where the bytes are not UTF-8; then `mangled_hex` has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    mangled: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mangled_hex: Option<String>,
}

/// After an error the recorder takes nothing more; [`Recorder::finish`] still ends what was written before.
impl EventSink for Recorder {
    fn name(&mut self, slot: u32, mangled: &[u8]) -> Result<(), RecordError> {
        self.unless_failed(|recorder| recorder.write_name(slot, &demangle(mangled), mangled))
    }

    fn text(&mut self, slot: u32, text: &[u8]) -> Result<(), RecordError> {
        let shown = escape::for_screen(&String::from_utf8_lossy(text), TEXT_SHOWN_BYTES);
        self.unless_failed(|recorder| recorder.write_name(slot, &shown, text))
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        self.unless_failed(|recorder| recorder.write_event(event))
    }

    fn cubin(&mut self, cubin: &StoredCubin<'_>) -> Result<(), RecordError> {
        self.unless_failed(|recorder| recorder.write_cubin(cubin))
    }

    fn cupti_crc(&mut self, slot: u32, crc: Result<u64, &str>) -> Result<(), RecordError> {
        self.index.set_cupti_crc(slot, crc);
        Ok(())
    }

    fn step_ends(&mut self) -> Result<(), RecordError> {
        self.unless_failed(Recorder::flush)
    }
}

fn file_of(dir: &Path, kind: EventKind) -> Result<LineFile, RecordError> {
    LineFile::create(dir.join(events::file_name(kind)), &events::header(kind))
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
