//! The cubins of a tap: each read once, named, checked and handed on.

use super::sink::{Guarded, StoredCubin};
use crate::crc::{CrcWorker, CuptiCrc, Library, crc32};
use crate::model::snapshot::ModuleRow;
use crate::model::{Model, Module};
use crate::symbols::{Cubin, demangle};
use gputap_ringbuf::store::EntryKind;
use gputap_ringbuf::store::reader::{Entry, StoreReader};
use std::collections::VecDeque;

/// Bytes of cubins read in one step, beyond one cubin.
const STEP_MAX_BYTES: u64 = 64 << 20;
/// Largest cubin read; larger is no cubin of ours.
const CUBIN_MAX_BYTES: u64 = 1 << 30;
/// Function names shown of one module; a recording's index has them all.
const ROW_FUNCTIONS: usize = 32;
/// What stands in place of CUPTI's checksum until it is known.
const PENDING: &str = "being computed";

pub(super) struct Cubins {
    store: StoreReader,
    checks: Checks,
    unreadable: u64,
}

impl Cubins {
    pub fn new(store: StoreReader, cupti_crc: Option<CuptiCrc>) -> Cubins {
        Cubins { store, checks: Checks::start(cupti_crc), unreadable: 0 }
    }

    /// Reads the cubins that are new and takes in the checksums that came back; true where there are more to read.
    pub fn step(&mut self, model: &mut Model, sink: &mut Guarded<'_>) -> bool {
        let mut budget = STEP_MAX_BYTES;
        let mut more = true;
        while budget > 0 {
            let Some(entry) = self.store.next_entry() else {
                more = false;
                break;
            };
            budget = budget.saturating_sub(entry.len_bytes.max(1));
            self.read(&entry, model, sink);
        }
        self.checks.step(&self.store, model, sink);
        more
    }

    /// Brings the load counts of the rows up to date.
    pub fn refresh_loads(&self, model: &mut Model) {
        for slot in model.modules.slots() {
            if let Some(entry) = self.store.entry(slot) {
                model.modules.set_loads(slot, entry.uses);
            }
        }
    }

    /// Checksums of CUPTI's that were asked for, or will be, and have not come back.
    pub fn pending_checksums(&self) -> usize {
        self.checks.pending()
    }

    pub fn library(&self) -> Option<&Library> {
        self.checks.library.as_ref()
    }

    /// Entries that are not what was stored.
    pub fn broken(&self) -> u64 {
        self.store.invalid + self.unreadable
    }

    fn read(&mut self, entry: &Entry, model: &mut Model, sink: &mut Guarded<'_>) {
        if entry.kind == EntryKind::RefusedCubin as u16 {
            model.modules.add(entry.slot, refused(entry));
            return;
        }
        if entry.kind != EntryKind::Cubin as u16 || entry.len_bytes > CUBIN_MAX_BYTES {
            return;
        }
        let bytes = match self.store.read(entry) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.unreadable += 1;
                model.modules.add(entry.slot, not_kept(entry, entry.len_bytes, format!("not read: {error}")));
                return;
            }
        };
        let crc32 = crc32(&bytes);
        let parsed = Cubin::parse(&bytes);
        let row = row(entry, crc32, parsed.as_ref().map_err(ToString::to_string));
        model.modules.add(entry.slot, Module { row, first_ns: entry.first_ns });
        sink.put(|sink| {
            sink.cubin(&StoredCubin {
                slot: entry.slot,
                bytes: &bytes,
                crc32,
                parsed: parsed.as_ref(),
                loads: entry.uses,
                first_ns: entry.first_ns,
            })
        });
        self.checks.add(*entry, bytes, model, sink);
    }
}

/// Cubins of one size that the tap had no room for.
fn refused(entry: &Entry) -> Module {
    let why = "not kept: the tap had no room for cubins of this size (GPUTAP_CUBIN_MB sets how much it may keep)";
    not_kept(entry, entry.b, why.to_owned())
}

fn not_kept(entry: &Entry, size_bytes: u64, why: String) -> Module {
    let (slot, loads) = (entry.slot, entry.uses);
    let row = ModuleRow { slot, size_bytes, loads, parse_error: why, ..Default::default() };
    Module { row, first_ns: entry.first_ns }
}

fn row(entry: &Entry, crc32: u32, parsed: Result<&Cubin, String>) -> ModuleRow {
    let row = ModuleRow {
        slot: entry.slot,
        size_bytes: entry.len_bytes,
        loads: entry.uses,
        crc32: Some(crc32),
        cupti_crc_reason: PENDING.to_owned(),
        ..Default::default()
    };
    match parsed {
        Ok(cubin) => ModuleRow {
            functions: cubin.functions.iter().take(ROW_FUNCTIONS).map(|name| demangle(name)).collect(),
            function_count: cubin.function_count,
            architecture: cubin.architecture.clone(),
            line_info: Some(cubin.line_info),
            ..row
        },
        Err(parse_error) => ModuleRow { parse_error, ..row },
    }
}

/// CUPTI's checksums: under way, or waiting for their turn. A waiting cubin is read again from the store, which never
/// loses one, rather than kept.
struct Checks {
    worker: Result<CrcWorker, String>,
    waiting: VecDeque<Entry>,
    library: Option<Library>,
}

impl Checks {
    fn start(cupti_crc: Option<CuptiCrc>) -> Checks {
        let worker = match cupti_crc {
            Some(crc) => CrcWorker::start(crc).map_err(|error| format!("no thread for it: {error}")),
            None => Err("not asked for".to_owned()),
        };
        Checks { worker, waiting: VecDeque::new(), library: None }
    }

    fn pending(&self) -> usize {
        self.waiting.len() + self.worker.as_ref().map_or(0, CrcWorker::outstanding)
    }

    fn add(&mut self, entry: Entry, bytes: Vec<u8>, model: &mut Model, sink: &mut Guarded<'_>) {
        match &mut self.worker {
            Err(reason) => answer(entry.slot, Err(reason), model, sink),
            Ok(worker) => {
                let taken = self.waiting.is_empty() && worker.submit(entry.slot, bytes);
                if !taken {
                    self.waiting.push_back(entry);
                }
            }
        }
    }

    fn step(&mut self, store: &StoreReader, model: &mut Model, sink: &mut Guarded<'_>) {
        let Ok(worker) = &mut self.worker else { return };
        while let Some(done) = worker.next_done() {
            self.library = done.library.or(self.library.take());
            match done.crc {
                Ok(crc) => answer(done.slot, Ok(crc), model, sink),
                Err(error) => answer(done.slot, Err(&error.to_string()), model, sink),
            }
        }
        let mut budget = STEP_MAX_BYTES;
        while worker.has_room() && budget > 0 {
            let Some(entry) = self.waiting.pop_front() else { return };
            budget = budget.saturating_sub(entry.len_bytes.max(1));
            let taken = store.read(&entry).map(|bytes| worker.submit(entry.slot, bytes));
            match taken {
                Ok(true) => {}
                Ok(false) => answer(entry.slot, Err("the thread that computes it is gone"), model, sink),
                Err(error) => answer(entry.slot, Err(&error.to_string()), model, sink),
            }
        }
    }
}

fn answer(slot: u32, crc: Result<u64, &str>, model: &mut Model, sink: &mut Guarded<'_>) {
    model.modules.set_cupti_crc(slot, crc);
    sink.put(|sink| sink.cupti_crc(slot, crc));
}
