//! What `index.json` says: who was recorded, how much, and which cubins.

use super::cubin_list::KernelFigures;
use super::trigger::Firing;
use crate::model::snapshot::{Cost, Counts, Freshness, ModuleCounts};
use crate::session::StoredCubin;
use gputap_recording::Process;
use serde::Serialize;
use std::collections::HashMap;

/// Bytes of the names of functions and kernels in the index; later cubins get their counts only.
const MAX_NAME_BYTES: usize = 16 << 20;

/// The whole of it.
#[derive(Serialize)]
pub(super) struct IndexFile<'a> {
    pub format: &'static str,
    pub version: u32,
    /// False in a recording that was cut off: then everything here is as of the last time it was written.
    pub complete: bool,
    pub began: String,
    pub written: String,
    /// CLOCK_REALTIME of the same two.
    pub began_realtime_ns: u64,
    pub written_realtime_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers: Option<TriggersEntry<'a>>,
    /// Why the recording ended before its time; absent where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<&'a str>,
    pub processes: Vec<ProcessEntry<'a>>,
    pub cubins: &'a [IndexEntry],
}

/// What fired.
#[derive(Serialize)]
pub(super) struct TriggersEntry<'a> {
    pub last_ns: u64,
    pub after_ns: u64,
    /// In all.
    pub count: u64,
    pub fired: &'a [Firing],
}

/// One process.
#[derive(Serialize)]
pub(super) struct ProcessEntry<'a> {
    pub process: &'a Process,
    pub segments: Vec<SegmentEntry>,
    /// In these segments, with those that are about to be written.
    pub events: u64,
    /// In segments that were removed to keep within the limits.
    pub removed_events: u64,
    /// Of kernels that were not asked for. `delivered` = `events` + `removed_events` + `filtered_events`.
    pub filtered_events: u64,
    pub counts: &'a Counts,
    pub state: &'a str,
    pub reason: &'a str,
    pub notes: &'a [String],
    pub complete: bool,
    pub module_counts: &'a ModuleCounts,
    pub cost: &'a Cost,
    pub freshness: &'a Option<Freshness>,
}

#[derive(Serialize)]
pub(super) struct SegmentEntry {
    pub file: String,
    pub bytes: u64,
}

/// One distinct cubin.
#[derive(Debug, Serialize)]
pub(super) struct IndexEntry {
    /// In the folder `cubins`; absent where it could not be kept.
    file: Option<String>,
    size_bytes: u64,
    /// By all processes.
    loads: u64,
    crc32: u32,
    cupti_crc: Option<u64>,
    /// Why `cupti_crc` is absent; empty where it is not.
    cupti_crc_reason: String,
    architecture: String,
    line_info: Option<bool>,
    /// Why the ELF could not be read; empty where it could.
    parse_error: String,
    function_count: u64,
    /// Mangled.
    functions: Vec<String>,
    /// Those of the functions that can be launched, with what they take.
    kernels: Vec<KernelFigures>,
    loaded_by: Vec<LoadedBy>,
}

/// One process' loads of a cubin.
#[derive(Debug, Serialize)]
struct LoadedBy {
    /// As the process sees itself.
    pid: u32,
    nonce: String,
    loads: u64,
    /// CLOCK_MONOTONIC of the first.
    first_load_ns: u64,
    #[serde(skip)]
    row: usize,
}

/// A cubin of a process: its row and the slot in its tap's store.
pub(super) type Slot = (usize, u32);

/// The cubins of a recording. A cubin that the shim kept twice (two threads loaded it at the same instant) is one entry
/// with two slots.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<IndexEntry>,
    by_file: HashMap<String, usize>,
    by_slot: HashMap<Slot, (usize, u64)>,
    name_bytes: usize,
}

impl Index {
    pub fn entries(&self) -> &[IndexEntry] {
        &self.entries
    }

    /// A cubin that process `row` has loaded.
    pub fn add(&mut self, row: usize, process: &Process, cubin: &StoredCubin<'_>, file: Option<String>) {
        let known = file.as_ref().and_then(|file| self.by_file.get(file)).copied();
        let index = known.unwrap_or_else(|| self.push(cubin, file));
        let loaded_by = &mut self.entries[index].loaded_by;
        match loaded_by.iter_mut().find(|by| by.row == row) {
            Some(by) => by.first_load_ns = by.first_load_ns.min(cubin.first_ns),
            None => loaded_by.push(LoadedBy {
                pid: process.pid,
                nonce: process.nonce.clone(),
                loads: 0,
                first_load_ns: cubin.first_ns,
                row,
            }),
        }
        self.by_slot.insert((row, cubin.slot), (index, 0));
        self.set_loads((row, cubin.slot), cubin.loads);
    }

    fn push(&mut self, cubin: &StoredCubin<'_>, file: Option<String>) -> usize {
        let parsed = cubin.parsed.ok();
        let named = parsed.filter(|parsed| {
            let functions: usize = parsed.functions.iter().map(Vec::len).sum();
            let kernels: usize = parsed.kernels.iter().map(|kernel| kernel.name.len()).sum();
            let all = self.name_bytes.saturating_add(functions + kernels);
            let has_room = all <= MAX_NAME_BYTES;
            self.name_bytes = if has_room { all } else { self.name_bytes };
            has_room
        });
        let functions = named.map_or_else(Vec::new, |parsed| {
            parsed.functions.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
        });
        let kernels = named.map_or_else(Vec::new, |parsed| parsed.kernels.iter().map(KernelFigures::from).collect());
        if let Some(file) = &file {
            self.by_file.insert(file.clone(), self.entries.len());
        }
        self.entries.push(IndexEntry {
            file,
            size_bytes: cubin.bytes.len() as u64,
            loads: 0,
            crc32: cubin.crc32,
            cupti_crc: None,
            cupti_crc_reason: "not computed before the recording ended".to_owned(),
            architecture: parsed.map_or_else(String::new, |parsed| parsed.architecture.clone()),
            line_info: parsed.map(|parsed| parsed.line_info),
            parse_error: cubin.parsed.err().map_or_else(String::new, ToString::to_string),
            function_count: parsed.map_or(0, |parsed| parsed.function_count),
            functions,
            kernels,
            loaded_by: Vec::new(),
        });
        self.entries.len() - 1
    }

    pub fn set_cupti_crc(&mut self, slot: Slot, crc: Result<u64, &str>) {
        let Some(&(index, _)) = self.by_slot.get(&slot) else { return };
        let entry = &mut self.entries[index];
        match crc {
            Ok(crc) => {
                entry.cupti_crc = Some(crc);
                entry.cupti_crc_reason.clear();
            }
            Err(reason) if entry.cupti_crc.is_none() => reason.clone_into(&mut entry.cupti_crc_reason),
            Err(_) => {}
        }
    }

    /// How often the slot has been loaded so far.
    pub fn set_loads(&mut self, slot: Slot, loads: u64) {
        let Some((index, counted)) = self.by_slot.get_mut(&slot) else { return };
        let new = loads.saturating_sub(*counted);
        *counted = loads.max(*counted);
        let entry = &mut self.entries[*index];
        entry.loads = entry.loads.saturating_add(new);
        if let Some(by) = entry.loaded_by.iter_mut().find(|by| by.row == slot.0) {
            by.loads = by.loads.saturating_add(new);
        }
    }
}
