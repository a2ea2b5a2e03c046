//! One process of a recording: its segments, and what is known of where its records went.

use super::filter::{Filter, Sieve};
use super::index::{ProcessEntry, SegmentEntry};
use crate::session::{Standing, StoredCubin};
use crate::symbols::demangle;
use crate::symbols::escape::for_screen;
use gputap_recording::{Limits, Loss, Module, Process, SegmentFile, Status, WriteError, Writer, Written};
use gputap_ringbuf::event::Event;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Of a kernel's name in a remark.
const NAME_SHOWN_BYTES: usize = 256;

pub(super) struct Row {
    dir: PathBuf,
    pub process: Process,
    /// From the first thing that there is to write on.
    writer: Option<Writer>,
    /// Names of before the first segment: id, whether it is a text, bytes.
    early_names: Vec<(u32, bool, Box<[u8]>)>,
    sieve: Option<Sieve>,
    filtered: u64,
    modules: HashMap<u32, Module>,
    standing: Standing,
    /// What the recording itself has to say beside.
    remarks: Vec<String>,
    /// A trigger has fired, and what there is stays.
    keeps_all: bool,
    /// Once the writer is gone.
    ended: Option<Ended>,
}

struct Ended {
    segments: Vec<SegmentFile>,
    ended_ns: u64,
    /// Its age does not matter any more: a trigger has fired.
    is_kept: bool,
    written: Written,
    complete: bool,
}

impl Row {
    pub fn new(recording: &Path, process: Process, filter: Option<&Filter>, standing: Standing) -> Row {
        Row {
            dir: recording.join(format!("pid-{}-{}", process.pid, process.nonce)),
            process,
            writer: None,
            early_names: Vec::new(),
            sieve: filter.cloned().map(Sieve::new),
            filtered: 0,
            modules: HashMap::new(),
            standing,
            remarks: Vec::new(),
            keeps_all: false,
            ended: None,
        }
    }

    pub fn has_begun(&self) -> bool {
        self.writer.is_some() || self.ended.is_some()
    }

    /// Makes the first segment, if there is none yet. Whose it is stands at its beginning, and a tap that is just starting
    /// does not know all of it: names and modules wait for this.
    pub fn begin(&mut self, limits: Limits, now_ns: u64) -> Result<(), WriteError> {
        if self.has_begun() {
            return Ok(());
        }
        let mut writer = Writer::create(&self.dir, self.process.clone(), limits, now_ns)?;
        for (id, is_text, bytes) in std::mem::take(&mut self.early_names) {
            if is_text { writer.text(id, &bytes) } else { writer.name(id, &bytes) }
        }
        self.modules.values().try_for_each(|module| writer.module(module.clone()))?;
        self.writer = Some(writer);
        Ok(())
    }

    /// Something waits for the first segment, and all is known of the process.
    pub fn may_begin(&self) -> bool {
        let waits = !self.modules.is_empty() || !self.early_names.is_empty();
        !self.has_begun() && waits && self.process.clock.is_some()
    }

    pub fn name(&mut self, slot: u32, mangled: &[u8]) {
        if let Some(sieve) = &mut self.sieve {
            sieve.name(slot, mangled);
        }
        match &mut self.writer {
            Some(writer) => writer.name(slot, mangled),
            None => self.early_names.push((slot, false, mangled.into())),
        }
    }

    pub fn text(&mut self, slot: u32, text: &[u8]) {
        match &mut self.writer {
            Some(writer) => writer.text(slot, text),
            None => self.early_names.push((slot, true, text.into())),
        }
    }

    pub fn event(&mut self, event: &Event) -> Result<(), WriteError> {
        if self.sieve.as_ref().is_some_and(|sieve| !sieve.passes(event)) {
            self.filtered += 1;
            return Ok(());
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.event(event))
    }

    pub fn cubin(&mut self, cubin: &StoredCubin<'_>, file: Option<String>) -> Result<(), WriteError> {
        self.modules.insert(
            cubin.slot,
            Module {
                slot: cubin.slot,
                crc32: cubin.crc32,
                size_bytes: cubin.bytes.len() as u64,
                file,
                loads: cubin.loads,
                first_load_ns: cubin.first_ns,
                cupti_crc: None,
            },
        );
        self.write_module(cubin.slot)
    }

    pub fn cupti_crc(&mut self, slot: u32, crc: u64) -> Result<(), WriteError> {
        if let Some(module) = self.modules.get_mut(&slot) {
            module.cupti_crc = Some(crc);
        }
        self.write_module(slot)
    }

    pub fn loads(&mut self, slot: u32, loads: u64) -> Result<(), WriteError> {
        match self.modules.get_mut(&slot) {
            Some(module) if module.loads < loads => module.loads = loads,
            _ => return Ok(()),
        }
        self.write_module(slot)
    }

    fn write_module(&mut self, slot: u32) -> Result<(), WriteError> {
        match (&mut self.writer, self.modules.get(&slot)) {
            (Some(writer), Some(module)) => writer.module(module.clone()),
            _ => Ok(()),
        }
    }

    pub fn writer(&mut self) -> Option<&mut Writer> {
        self.writer.as_mut()
    }

    /// Writes what has waited, and removes what is older than `keep_ns`; 0: nothing.
    pub fn turn(&mut self, now_ns: u64, keep_ns: u64) -> Result<(), WriteError> {
        if let Some(writer) = &mut self.writer {
            return writer.tick(now_ns);
        }
        let is_old = |ended: &Ended| keep_ns > 0 && !ended.is_kept && ended.ended_ns.saturating_add(keep_ns) < now_ns;
        while self.ended.as_ref().is_some_and(|ended| is_old(ended) && !ended.segments.is_empty()) {
            self.remove_oldest()?;
        }
        Ok(())
    }

    /// What there is stays, and what comes until [`Row::keep_last`].
    pub fn keep_all(&mut self) {
        self.keeps_all = true;
        self.writer.iter_mut().for_each(Writer::keep_all);
        self.ended.iter_mut().for_each(|ended| ended.is_kept = true);
    }

    /// Of what comes from now on the last `keep_ns` are kept.
    pub fn keep_last(&mut self, keep_ns: u64) -> Result<(), WriteError> {
        self.keeps_all = false;
        self.writer.as_mut().map_or(Ok(()), |writer| writer.keep_last(keep_ns))
    }

    /// As people read it.
    pub fn kernel_name(&self, name_id: u32) -> String {
        let mangled = self.writer.as_ref().and_then(|writer| writer.name_of(name_id));
        mangled.map_or_else(
            || "(unnamed)".to_owned(),
            |mangled| {
                let name = demangle(mangled);
                for_screen(&name, NAME_SHOWN_BYTES)
            },
        )
    }

    /// Something that a reader of this process' segments should know.
    pub fn remark(&mut self, words: String) {
        self.remarks.push(words);
    }

    pub fn status(&mut self, now_ns: u64, standing: Standing) -> Result<(), WriteError> {
        self.standing = standing;
        let status = self.to_status(now_ns, false);
        self.writer.as_mut().map_or(Ok(()), |writer| writer.status(status))
    }

    /// Ends the segments. After a failure nothing more is written.
    pub fn finish(&mut self, now_ns: u64, standing: Option<Standing>, has_failed: bool) -> Result<(), WriteError> {
        let is_whole = standing.as_ref().is_some_and(|standing| !standing.is_cut) && !has_failed;
        self.standing = standing.unwrap_or_else(|| self.standing.clone());
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let status = self.to_status(now_ns, is_whole);
        let (so_far, segments) = (writer.written(), writer.segments());
        let mut ended = Ended { segments, ended_ns: now_ns, is_kept: self.keeps_all, written: so_far, complete: false };
        if has_failed {
            self.ended = Some(ended);
            return Ok(());
        }
        let finished = writer.finish(status);
        if let Ok(written) = finished {
            // The last segment has grown by what was written now.
            let before: u64 = ended.segments.iter().rev().skip(1).map(|segment| segment.bytes).sum();
            if let Some(last) = ended.segments.last_mut() {
                last.bytes = written.bytes.saturating_sub(before);
            }
            (ended.written, ended.complete) = (written, is_whole);
        }
        self.ended = Some(ended);
        finished.map(drop)
    }

    fn to_status(&self, now_ns: u64, complete: bool) -> Status {
        let Standing { counts, .. } = &self.standing;
        let loss = |lost: &crate::model::snapshot::Lost| Loss {
            reason: lost.reason.clone(),
            count: lost.count,
            unknown: lost.unknown,
        };
        Status {
            time_ns: now_ns,
            clock: self.standing.clock.point.map(super::whose::clock),
            attempted: counts.attempted,
            delivered: counts.delivered,
            pending: counts.pending,
            lost: counts.lost.iter().map(loss).collect(),
            state: self.standing.state.clone(),
            notes: self.notes(),
            complete,
        }
    }

    fn notes(&self) -> Vec<String> {
        let filtered = (self.filtered > 0).then(|| format!("{} events of other kernels were left out", self.filtered));
        self.standing.notes.iter().chain(&self.remarks).cloned().chain(filtered).collect()
    }

    /// Events and bytes of the segments, so far.
    pub fn written(&self) -> Written {
        match (&self.writer, &self.ended) {
            (Some(writer), _) => writer.written(),
            (None, Some(ended)) => ended.written,
            (None, None) => Written::default(),
        }
    }

    /// When its oldest segment that may be removed ended.
    pub fn oldest_ended_ns(&self) -> Option<u64> {
        match (&self.writer, &self.ended) {
            (Some(writer), _) => writer.oldest_ended_ns(),
            // The last one says where the records went.
            (None, Some(ended)) => (ended.segments.len() > 1).then_some(ended.ended_ns),
            (None, None) => None,
        }
    }

    pub fn remove_oldest(&mut self) -> Result<(), WriteError> {
        match (&mut self.writer, &mut self.ended) {
            (Some(writer), _) => writer.remove_oldest(),
            (None, Some(ended)) if !ended.segments.is_empty() => {
                let SegmentFile { path, bytes, events } = ended.segments.remove(0);
                ended.written.bytes = ended.written.bytes.saturating_sub(bytes);
                ended.written.segments = ended.written.segments.saturating_sub(1);
                ended.written.removed_segments += 1;
                ended.written.removed_events += events;
                std::fs::remove_file(&path).map_err(|source| WriteError { action: "remove", path, source })
            }
            _ => Ok(()),
        }
    }

    pub fn is_complete(&self) -> bool {
        self.ended.as_ref().is_some_and(|ended| ended.complete)
    }

    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// `notes`: of this row, which the entry borrows.
    pub fn entry<'a>(&'a self, recording: &Path, notes: &'a [String]) -> ProcessEntry<'a> {
        let segments = match (&self.writer, &self.ended) {
            (Some(writer), _) => writer.segments(),
            (None, Some(ended)) => ended.segments.clone(),
            (None, None) => Vec::new(),
        };
        let segment = |segment: SegmentFile| {
            let file = segment.path.strip_prefix(recording).unwrap_or(&segment.path);
            SegmentEntry { file: file.to_string_lossy().into_owned(), bytes: segment.bytes }
        };
        let written = self.written();
        ProcessEntry {
            process: &self.process,
            segments: segments.into_iter().map(segment).collect(),
            events: written.events.saturating_sub(written.removed_events),
            removed_events: written.removed_events,
            filtered_events: self.filtered,
            counts: &self.standing.counts,
            state: &self.standing.state,
            reason: &self.standing.reason,
            notes,
            complete: self.is_complete(),
            module_counts: &self.standing.module_counts,
            cost: &self.standing.cost,
            freshness: &self.standing.freshness,
        }
    }

    pub fn all_notes(&self) -> Vec<String> {
        self.notes()
    }
}
