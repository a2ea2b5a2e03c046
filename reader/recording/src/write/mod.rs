//! Writes one process' segments.

mod batches;
mod segment;
mod syncing;

use crate::WriteError;
use crate::format::{self, Kind};
use crate::process::{Module, Process, Status};
use batches::Batches;
use gputap_ringbuf::event::{Event, NO_NAME};
use segment::Segment;
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use syncing::Syncing;

/// When a segment is full and what is kept of the older ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A segment is ended at so many bytes,
    pub segment_bytes: u64,
    /// or after so long.
    pub segment_ns: u64,
    /// Of all segments of this process; the oldest are removed. 0: no limit.
    pub keep_bytes: u64,
    /// Segments that ended longer ago than this are removed, until [`Writer::keep_all`]. 0: none.
    pub keep_ns: u64,
    /// Events wait for no longer than this before they are written.
    pub block_ns: u64,
    /// What was written is on the disk after no longer than this.
    pub sync_ns: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            segment_bytes: 64 << 20,
            segment_ns: 60_000_000_000,
            keep_bytes: 0,
            keep_ns: 0,
            block_ns: 1_000_000_000,
            sync_ns: 5_000_000_000,
        }
    }
}

/// What was written, so far or in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    pub events: u64,
    /// Of all segments that are still there.
    pub bytes: u64,
    pub segments: u32,
    /// Segments that were removed to keep within the limits, and their events.
    pub removed_segments: u32,
    pub removed_events: u64,
}

/// A segment file, with what is in it so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    pub path: PathBuf,
    pub bytes: u64,
    pub events: u64,
}

struct Finished {
    file: SegmentFile,
    /// When the next one was begun. Times of events may be anything.
    ended_ns: u64,
    /// Its age does not matter any more.
    pinned: bool,
}

/// Writes the segments of one process into a folder of its own. After an error it writes nothing more.
pub struct Writer {
    dir: PathBuf,
    process: Process,
    limits: Limits,
    segment: Option<Segment>,
    next_number: u32,
    finished: VecDeque<Finished>,
    /// All names so far: each segment has those that it refers to.
    names: HashMap<u32, (u8, Box<[u8]>)>,
    in_segment: Ids,
    modules: HashMap<u32, Module>,
    batches: Batches,
    status: Option<Status>,
    syncing: Syncing,
    written: Written,
    now_ns: u64,
    block: Vec<u8>,
    payload: Vec<u8>,
}

/// Ids of names, a bit each: they are slots of a store, and asked for with each event.
#[derive(Default)]
struct Ids {
    words: Vec<u64>,
}

impl Ids {
    fn contains(&self, id: u32) -> bool {
        self.words.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    fn add(&mut self, id: u32) {
        let at = id as usize / 64;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (id % 64);
    }

    fn clear(&mut self) {
        self.words.clear();
    }
}

const KERNEL_NAME: u8 = 1;
const TEXT: u8 = 2;

impl Writer {
    /// Makes the folder `dir`, of this process alone, and its first segment. `now_ns` is CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The folder or the segment could not be made.
    pub fn create(dir: &Path, process: Process, limits: Limits, now_ns: u64) -> Result<Writer, WriteError> {
        std::fs::create_dir_all(dir).map_err(WriteError::of("make the folder", dir))?;
        let mut writer = Writer {
            dir: dir.to_owned(),
            process,
            limits,
            segment: None,
            next_number: 1,
            finished: VecDeque::new(),
            names: HashMap::new(),
            in_segment: Ids::default(),
            modules: HashMap::new(),
            batches: Batches::default(),
            status: None,
            syncing: Syncing::default(),
            written: Written::default(),
            now_ns,
            block: Vec::new(),
            payload: Vec::new(),
        };
        writer.begin_segment()?;
        Ok(writer)
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The mangled name of a kernel, before the first event that refers to it.
    pub fn name(&mut self, id: u32, mangled: &[u8]) {
        self.names.insert(id, (KERNEL_NAME, mangled.into()));
    }

    /// The name or text of an id, as it was given.
    pub fn name_of(&self, id: u32) -> Option<&[u8]> {
        self.names.get(&id).map(|(_, bytes)| &**bytes)
    }

    /// Any other text, of an NVTX range, say, before the first event that refers to it.
    pub fn text(&mut self, id: u32, text: &[u8]) {
        self.names.insert(id, (TEXT, text.into()));
    }

    /// # Errors
    /// A block could not be written.
    pub fn event(&mut self, event: &Event) -> Result<(), WriteError> {
        for id in event.names() {
            if id != NO_NAME && !self.in_segment.contains(id) && self.names.contains_key(&id) {
                self.in_segment.add(id);
                self.batches.names.push(id);
            }
        }
        self.written.events += 1;
        if self.batches.add(event) { self.write_batches() } else { Ok(()) }
    }

    /// A module was loaded, or more is known of it.
    ///
    /// # Errors
    /// The block could not be written.
    pub fn module(&mut self, module: Module) -> Result<(), WriteError> {
        if self.modules.get(&module.slot) == Some(&module) {
            return Ok(());
        }
        self.write_json(Kind::Module, &module)?;
        self.modules.insert(module.slot, module);
        Ok(())
    }

    /// Where every record went, so far; to be told every now and then.
    ///
    /// # Errors
    /// A block could not be written.
    pub fn status(&mut self, status: Status) -> Result<(), WriteError> {
        self.write_batches()?;
        self.write_json(Kind::Status, &status)?;
        self.status = Some(status);
        Ok(())
    }

    /// To be called often: writes events that have waited, ends a segment that is full, removes those that are too old.
    ///
    /// # Errors
    /// A file could not be written, removed, or brought to the disk.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), WriteError> {
        self.now_ns = now_ns;
        if self.batches.waits_since(now_ns, self.limits.block_ns) {
            self.write_batches()?;
        }
        if self.segment.as_ref().is_some_and(|segment| segment.is_full(&self.limits, now_ns)) {
            self.write_batches()?;
            self.begin_segment()?;
        }
        self.remove_old()?;
        if let Some(segment) = &mut self.segment {
            self.syncing.tick(segment, now_ns, self.limits.sync_ns)?;
        }
        Ok(())
    }

    /// From now on nothing is removed for its age: what was waited for has happened.
    pub fn keep_all(&mut self) {
        self.limits.keep_ns = 0;
    }

    /// What there is stays; of what comes, segments older than `keep_ns` are removed again.
    ///
    /// # Errors
    /// The segment of so far could not be written to its end.
    pub fn keep_last(&mut self, keep_ns: u64) -> Result<(), WriteError> {
        self.write_batches()?;
        if self.segment.as_ref().is_some_and(|segment| segment.events > 0) {
            self.begin_segment()?;
        }
        self.finished.iter_mut().for_each(|segment| segment.pinned = true);
        self.limits.keep_ns = keep_ns;
        Ok(())
    }

    /// Segments end at so many bytes from now on.
    pub fn set_segment_bytes(&mut self, bytes: u64) {
        self.limits.segment_bytes = bytes;
    }

    /// When its oldest segment ended; None where there is only the one that is being written.
    pub fn oldest_ended_ns(&self) -> Option<u64> {
        self.finished.front().map(|segment| segment.ended_ns)
    }

    /// Removes the oldest segment that has ended, however old it is.
    ///
    /// # Errors
    /// The file could not be removed.
    pub fn remove_oldest(&mut self) -> Result<(), WriteError> {
        self.remove(0)
    }

    /// All segments that are there, in order.
    pub fn segments(&self) -> Vec<SegmentFile> {
        let open = self.segment.as_ref().map(Segment::to_file);
        self.finished.iter().map(|segment| segment.file.clone()).chain(open).collect()
    }

    pub fn written(&self) -> Written {
        let open = self.segment.as_ref().map_or(0, Segment::bytes);
        Written {
            bytes: open + self.finished.iter().map(|segment| segment.file.bytes).sum::<u64>(),
            segments: self.finished.len() as u32 + u32::from(self.segment.is_some()),
            ..self.written
        }
    }

    /// Writes all that waits, with the last status, and brings it to the disk.
    ///
    /// # Errors
    /// As for the others; what was written before stays valid.
    pub fn finish(mut self, status: Status) -> Result<Written, WriteError> {
        self.status(status)?;
        let written = self.written();
        if let Some(segment) = self.segment.take() {
            segment.sync()?;
        }
        Ok(written)
    }

    fn begin_segment(&mut self) -> Result<(), WriteError> {
        self.end_segment()?;
        let number = self.next_number;
        self.next_number += 1;
        let path = self.dir.join(format!("{number:06}.{}", format::EXTENSION));
        self.segment = Some(Segment::create(&path, number, self.now_ns)?);
        self.in_segment.clear();
        let process = self.process.clone();
        self.write_json(Kind::Process, &process)?;
        let modules: Vec<Module> = self.modules.values().cloned().collect();
        modules.iter().try_for_each(|module| self.write_json(Kind::Module, module))?;
        match self.status.clone() {
            Some(status) => self.write_json(Kind::Status, &status),
            None => Ok(()),
        }
    }

    fn end_segment(&mut self) -> Result<(), WriteError> {
        let Some(segment) = self.segment.take() else { return Ok(()) };
        let finished = Finished { file: segment.to_file(), ended_ns: self.now_ns, pinned: false };
        self.syncing.hand_over(segment);
        self.finished.push_back(finished);
        Ok(())
    }

    /// The newest segment always stays.
    fn remove_old(&mut self) -> Result<(), WriteError> {
        while self.limits.keep_bytes > 0 && !self.finished.is_empty() && self.written().bytes > self.limits.keep_bytes {
            self.remove(0)?;
        }
        let (keep_ns, now_ns) = (self.limits.keep_ns, self.now_ns);
        let is_too_old = |segment: &Finished| !segment.pinned && segment.ended_ns.saturating_add(keep_ns) < now_ns;
        while keep_ns > 0
            && let Some(at) = self.finished.iter().position(is_too_old)
        {
            self.remove(at)?;
        }
        Ok(())
    }

    fn remove(&mut self, at: usize) -> Result<(), WriteError> {
        let Some(Finished { file, .. }) = self.finished.get(at) else { return Ok(()) };
        std::fs::remove_file(&file.path).map_err(WriteError::of("remove", &file.path))?;
        self.written.removed_segments += 1;
        self.written.removed_events += file.events;
        self.finished.remove(at);
        Ok(())
    }

    fn write_batches(&mut self) -> Result<(), WriteError> {
        self.write_names()?;
        for kind in gputap_ringbuf::event::EventKind::ALL {
            self.payload.clear();
            let Some((count, times)) = self.batches.take(*kind, &mut self.payload) else { continue };
            self.block.clear();
            format::seal(&mut self.block, Kind::Events, *kind as u16, count, times, &self.payload);
            if let Some(segment) = &mut self.segment {
                segment.append(&self.block)?;
                segment.has_events(u64::from(count));
            }
        }
        self.batches.begin_again();
        Ok(())
    }

    /// Names first: no event refers to a name that is not there.
    fn write_names(&mut self) -> Result<(), WriteError> {
        let ids = std::mem::take(&mut self.batches.names);
        let mut at = 0;
        while at < ids.len() {
            let begin = at;
            self.payload.clear();
            while at < ids.len() && self.payload.len() < format::BLOCK_MAX_BYTES / 4 {
                if let Some((kind, bytes)) = self.names.get(&ids[at]) {
                    self.payload.extend_from_slice(&ids[at].to_le_bytes());
                    self.payload.push(*kind);
                    self.payload.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
                    self.payload.extend_from_slice(bytes);
                }
                at += 1;
            }
            self.block.clear();
            format::seal(&mut self.block, Kind::Names, 0, (at - begin) as u32, [0; 2], &self.payload);
            self.append()?;
        }
        Ok(())
    }

    fn write_json(&mut self, kind: Kind, value: &impl Serialize) -> Result<(), WriteError> {
        // Plain data of ours always serializes.
        let json = serde_json::to_vec(value).unwrap_or_default();
        self.block.clear();
        format::seal(&mut self.block, kind, 0, 1, [0; 2], &json);
        self.append()
    }

    fn append(&mut self) -> Result<(), WriteError> {
        self.segment.as_mut().map_or(Ok(()), |segment| segment.append(&self.block))
    }
}
