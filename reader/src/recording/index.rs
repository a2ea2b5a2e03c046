//! What `index.json` says of the cubins, and `summary.json` of the whole.

use super::cubin_list::KernelFigures;
use crate::model::snapshot::{ClockPoint, ModuleRow, Snapshot};
use crate::session::StoredCubin;
use gputap_ringbuf::header::identity::Identity;
use serde::Serialize;
use std::collections::HashMap;

/// Bytes of the names of functions and kernels in the index; later cubins get their counts only.
const MAX_NAME_BYTES: usize = 64 << 20;

/// One distinct cubin.
#[derive(Debug, Serialize)]
pub(super) struct IndexEntry {
    /// In the folder `cubins`; absent where it could not be kept.
    file: Option<String>,
    size_bytes: u64,
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
    /// CLOCK_MONOTONIC of the first load.
    first_load_ns: u64,
}

/// The cubins of a recording. A cubin that the shim kept twice (two threads loaded it at the same instant) is one entry
/// with two slots.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: Vec<IndexEntry>,
    by_file: HashMap<String, usize>,
    by_slot: HashMap<u32, (usize, u64)>,
    name_bytes: usize,
    pub changed: bool,
}

#[derive(Serialize)]
struct IndexFile<'a> {
    version: u32,
    cubins: &'a [IndexEntry],
}

impl Index {
    pub fn add(&mut self, cubin: &StoredCubin<'_>, file: Option<String>) {
        self.changed = true;
        let known = file.as_ref().and_then(|file| self.by_file.get(file)).copied();
        let index = known.unwrap_or_else(|| self.push(cubin, file));
        self.by_slot.insert(cubin.slot, (index, 0));
        self.set_loads(cubin.slot, cubin.loads);
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
            first_load_ns: cubin.first_ns,
        });
        self.entries.len() - 1
    }

    pub fn set_cupti_crc(&mut self, slot: u32, crc: Result<u64, &str>) {
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
        self.changed = true;
    }

    /// Takes the load counts of the rows over.
    pub fn refresh_loads(&mut self, rows: &[ModuleRow]) {
        rows.iter().for_each(|row| self.set_loads(row.slot, row.loads));
    }

    fn set_loads(&mut self, slot: u32, loads: u64) {
        let Some((index, counted)) = self.by_slot.get_mut(&slot) else { return };
        let new = loads.saturating_sub(*counted);
        if new > 0 {
            *counted = loads;
            self.entries[*index].loads = self.entries[*index].loads.saturating_add(new);
            self.changed = true;
        }
    }

    pub fn to_json(&self) -> Vec<u8> {
        json(&IndexFile { version: super::FORMAT_VERSION, cubins: &self.entries })
    }
}

/// Which process was recorded.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TapIdentity {
    /// As the process saw itself.
    pid: u32,
    pid_namespace: u64,
    /// Field 22 of /proc/PID/stat, clock ticks since boot.
    start_ticks: u64,
    boot_id: String,
    nonce: String,
    abi: String,
    backing: &'static str,
}

impl TapIdentity {
    pub fn of(identity: &Identity) -> TapIdentity {
        TapIdentity {
            pid: identity.pid,
            pid_namespace: identity.pid_namespace,
            start_ticks: identity.start_ticks,
            boot_id: format!("{:032x}", identity.boot_id),
            nonce: format!("{:016x}", identity.nonce),
            abi: format!("{}.{}", identity.abi_major, identity.abi_minor),
            backing: identity.backing.name(),
        }
    }
}

/// By which a time of CLOCK_MONOTONIC, as the events have, is told as wall time: the tap's own readings of both clocks.
/// Absent where it had none yet.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Clocks {
    pub begin: Option<ClockPoint>,
    /// At this writing.
    pub end: Option<ClockPoint>,
}

/// The head of `summary.json`.
#[derive(Serialize)]
pub(super) struct Summary<'a> {
    pub format: &'static str,
    pub version: u32,
    /// False in a recording that was cut off: then everything here is as of the last time it was written.
    pub complete: bool,
    pub tap: &'a TapIdentity,
    /// CLOCK_REALTIME at the start of the recording and at this writing, nanoseconds.
    pub began_realtime_ns: u64,
    pub written_realtime_ns: u64,
    pub clock: Clocks,
    pub snapshot: &'a Snapshot,
}

/// Plain data of ours always serializes; an empty object stands for the case that cannot be.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_else(|_| b"{}".to_vec());
    bytes.push(b'\n');
    bytes
}
