//! What the processes of a recording have in common: the folder, its cubins, its index, and its limits.

use super::archive::{Archive, Kept};
use super::error::RecordError;
use super::index::{Index, IndexFile, TriggersEntry};
use super::replace::replace;
use super::row::Row;
use super::trigger::{Alarm, Turn};
use super::wall::utc;
use super::{Settings, Written};
use crate::clock::Now;
use crate::session::{Standing, StoredCubin};
use gputap_recording::{Limits, format};
use gputap_ringbuf::event::Event;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

/// The index is written again no more often than this,
const INDEX_EVERY_NS: u64 = 2_000_000_000;
/// and takes no more than one part of so many of the time.
const INDEX_SHARE: u64 = 50;
/// Between two looks at full segments while events pour in.
const EVENTS_PER_TURN: u32 = 4096;
const SEGMENT_MIN_BYTES: u64 = 16 << 10;
/// Segments of a recording that is limited in size are so small that this many make it up.
const SEGMENTS_OF_A_LIMIT: u64 = 16;

pub(super) struct Shared {
    pub dir: PathBuf,
    settings: Settings,
    began: Now,
    now: Now,
    archive: Archive,
    index: Index,
    index_due_ns: u64,
    rows: Vec<Row>,
    pub alarm: Option<Alarm>,
    /// What ended the recording: from then on nothing is written.
    failure: Option<String>,
    events_until_turn: u32,
}

impl Shared {
    pub fn new(dir: PathBuf, settings: Settings, now: Now) -> Shared {
        Shared {
            archive: Archive::new(dir.join("cubins")),
            dir,
            alarm: settings.triggers.clone().map(Alarm::new),
            settings,
            began: now,
            now,
            index: Index::default(),
            index_due_ns: 0,
            rows: Vec::new(),
            failure: None,
            events_until_turn: EVENTS_PER_TURN,
        }
    }

    pub fn add(&mut self, process: gputap_recording::Process, standing: Standing) -> usize {
        self.rows.push(Row::new(&self.dir, process, self.settings.filter.as_ref(), standing));
        self.rows.len() - 1
    }

    pub fn row(&mut self, row: usize) -> &mut Row {
        &mut self.rows[row]
    }

    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Does `write`, unless something failed before: then nothing whole is left to add to.
    pub fn unless_failed(
        &mut self,
        write: impl FnOnce(&mut Shared) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        if self.has_failed() {
            return Ok(());
        }
        let result = write(self);
        if let Err(error) = &result {
            self.failure = Some(error.to_string());
        }
        result
    }

    pub fn begin(&mut self, row: usize) -> Result<&mut Row, RecordError> {
        if !self.rows[row].has_begun() {
            let limits = self.limits();
            self.rows[row].begin(limits, self.now.monotonic_ns)?;
        }
        Ok(&mut self.rows[row])
    }

    pub fn event(&mut self, row: usize, event: &Event) -> Result<(), RecordError> {
        self.begin(row)?.event(event)?;
        if let Some(alarm) = &mut self.alarm {
            let rows = &self.rows;
            alarm.event(row, event, self.now, |kernel| rows[row].kernel_name(kernel.name_id));
        }
        self.events_until_turn -= 1;
        if self.events_until_turn == 0 { self.turn(self.now) } else { Ok(()) }
    }

    pub fn cubin(&mut self, row: usize, cubin: &StoredCubin<'_>) -> Result<(), RecordError> {
        let file = match self.archive.add(cubin.crc32, cubin.bytes)? {
            Kept::File { name, .. } => Some(name),
            Kept::Full => None,
        };
        self.index.add(row, &self.rows[row].process, cubin, file.clone());
        Ok(self.rows[row].cubin(cubin, file)?)
    }

    pub fn cupti_crc(&mut self, row: usize, slot: u32, crc: Result<u64, &str>) -> Result<(), RecordError> {
        self.index.set_cupti_crc((row, slot), crc);
        match crc {
            Ok(crc) => Ok(self.rows[row].cupti_crc(slot, crc)?),
            Err(_) => Ok(()),
        }
    }

    pub fn loads(&mut self, row: usize, loads: &[(u32, u64)]) -> Result<(), RecordError> {
        for &(slot, loads) in loads {
            self.index.set_loads((row, slot), loads);
            self.rows[row].loads(slot, loads)?;
        }
        Ok(())
    }

    /// Ends segments that are full, removes those that are too old or too many, and looks at the triggers.
    pub fn turn(&mut self, now: Now) -> Result<(), RecordError> {
        (self.now, self.events_until_turn) = (now, EVENTS_PER_TURN);
        let keep_ns = self.alarm.as_ref().map_or(0, Alarm::keep_ns);
        for row in &mut self.rows {
            row.turn(now.monotonic_ns, keep_ns)?;
        }
        self.look_at_triggers()?;
        self.keep_within_size()
    }

    /// A process has ended; `in_order` as its tap said.
    pub fn process_ended(&mut self, row: usize, in_order: bool) {
        if let Some(alarm) = &mut self.alarm {
            alarm.ended(row, in_order);
        }
    }

    fn look_at_triggers(&mut self) -> Result<(), RecordError> {
        let Some(alarm) = &mut self.alarm else { return Ok(()) };
        let turn = alarm.look(self.now, |row| self.rows[row].process.pid);
        let last_ns = alarm.settings().last_ns;
        match turn {
            Turn::Nothing => {}
            Turn::Open => {
                let firing = alarm.firings.last();
                let words =
                    firing.map(|one| format!("kept from {} on: pid {}: {}", utc(one.realtime_ns), one.pid, one.why));
                self.rows.iter_mut().for_each(Row::keep_all);
                for row in self.rows.iter_mut().filter(|row| !row.has_ended()) {
                    row.remark(words.clone().unwrap_or_default());
                }
            }
            Turn::Close => {
                self.rows.iter_mut().try_for_each(|row| row.keep_last(last_ns))?;
            }
        }
        Ok(())
    }

    /// Of all processes the oldest segment goes first, so all keep about the same time.
    fn keep_within_size(&mut self) -> Result<(), RecordError> {
        let Some(budget_bytes) = self.budget_bytes() else { return Ok(()) };
        let mut bytes: u64 = self.rows.iter().map(|row| row.written().bytes).sum();
        while bytes > budget_bytes {
            let oldest =
                self.rows.iter_mut().filter_map(|row| Some((row.oldest_ended_ns()?, row))).min_by_key(|(at, _)| *at);
            let Some((_, row)) = oldest else { break };
            let before = row.written().bytes;
            row.remove_oldest()?;
            bytes -= before - row.written().bytes;
        }
        Ok(())
    }

    /// For segments. The cubins cannot be removed, and some room is left for what is written between two looks; a
    /// quarter is always the segments'.
    fn budget_bytes(&self) -> Option<u64> {
        let max_bytes = self.settings.max_bytes?;
        let room = max_bytes - max_bytes / SEGMENTS_OF_A_LIMIT;
        Some(room.saturating_sub(self.archive.bytes()).max(max_bytes / 4))
    }

    fn limits(&self) -> Limits {
        let limits = Limits::default();
        let segment_bytes = match self.budget_bytes() {
            Some(bytes) => {
                let living = self.rows.iter().filter(|row| !row.has_ended()).count().max(1) as u64;
                (bytes / SEGMENTS_OF_A_LIMIT / living).clamp(SEGMENT_MIN_BYTES, limits.segment_bytes)
            }
            None => limits.segment_bytes,
        };
        match &self.alarm {
            Some(alarm) => Limits {
                segment_bytes,
                segment_ns: alarm.settings().last_ns / 6,
                block_ns: limits.block_ns.min(alarm.settings().last_ns / 6),
                keep_ns: alarm.keep_ns(),
                ..limits
            },
            None => Limits { segment_bytes, ..limits },
        }
    }

    /// Segments get smaller as processes come.
    pub fn adapt(&mut self) {
        let bytes = self.limits().segment_bytes;
        self.rows.iter_mut().filter_map(Row::writer).for_each(|writer| writer.set_segment_bytes(bytes));
    }

    /// Before there is a process there is nothing to say.
    pub fn is_index_due(&self, now: Now) -> bool {
        !self.rows.is_empty() && now.monotonic_ns >= self.index_due_ns
    }

    pub fn write_index(&mut self, now: Now, is_last: bool) -> Result<(), RecordError> {
        let began = Instant::now();
        let notes: Vec<Vec<String>> = self.rows.iter().map(Row::all_notes).collect();
        let document = IndexFile {
            format: "gputap recording",
            version: format::VERSION,
            complete: is_last && !self.has_failed() && self.rows.iter().all(Row::is_complete),
            began: utc(self.began.realtime_ns),
            written: utc(now.realtime_ns),
            began_realtime_ns: self.began.realtime_ns,
            written_realtime_ns: now.realtime_ns,
            max_size_bytes: self.settings.max_bytes,
            filter: self.settings.filter.as_ref().map(super::Filter::as_str),
            triggers: self.alarm.as_ref().map(|alarm| TriggersEntry {
                last_ns: alarm.settings().last_ns,
                after_ns: alarm.settings().after_ns,
                count: alarm.count,
                fired: &alarm.firings,
            }),
            failure: self.failure.as_deref(),
            processes: self.rows.iter().zip(&notes).map(|(row, notes)| row.entry(&self.dir, notes)).collect(),
            cubins: self.index.entries(),
        };
        let written = replace(&self.dir.join("index.json"), is_last, |file| {
            serde_json::to_writer_pretty(&mut *file, &document)?;
            file.write_all(b"\n")
        });
        let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.index_due_ns = now.monotonic_ns.saturating_add(INDEX_EVERY_NS.max(took_ns.saturating_mul(INDEX_SHARE)));
        written
    }

    pub fn finish(&mut self, now: Now) -> Result<Written, RecordError> {
        let has_failed = self.has_failed();
        let finished = self.rows.iter_mut().map(|row| row.finish(now.monotonic_ns, None, has_failed));
        let finished: Result<Vec<()>, _> = finished.collect();
        if let Err(error) = &finished {
            self.failure.get_or_insert(error.to_string());
        }
        let index = self.write_index(now, true);
        // What failed before has been said then.
        if !has_failed {
            finished?;
            index?;
        }
        Ok(self.written())
    }

    pub fn written(&self) -> Written {
        let each = || self.rows.iter().map(Row::written);
        Written {
            dir: self.dir.clone(),
            segments: each().map(|written| u64::from(written.segments)).sum(),
            events: each().map(|written| written.events.saturating_sub(written.removed_events)).sum(),
            cubins: self.archive.files() as u64,
            bytes: each().map(|written| written.bytes).sum::<u64>() + self.archive.bytes(),
            complete: !self.has_failed() && self.rows.iter().all(Row::is_complete),
        }
    }
}
