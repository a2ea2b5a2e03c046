//! The cubins that a tap has kept, as rows.

use super::snapshot::{ModuleCounts, ModuleRow};
use std::collections::{BTreeSet, HashMap};

/// Cubins with a row of their own; later ones are only counted.
pub const MAX_MODULES: usize = 16 * 1024;

/// What is known about one cubin of the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Module {
    pub row: ModuleRow,
    /// The shim's clock at the first load: the order of the rows.
    pub first_ns: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Modules {
    by_slot: HashMap<u32, Module>,
    bytes: u64,
    not_shown: u64,
    /// `sm_90`, ...: as many as a byte and a letter can tell apart.
    architectures: BTreeSet<String>,
}

impl Modules {
    /// A cubin that was read for the first time.
    pub(crate) fn add(&mut self, slot: u32, module: Module) {
        if !module.row.architecture.is_empty() && !self.architectures.contains(&module.row.architecture) {
            self.architectures.insert(module.row.architecture.clone());
        }
        if module.row.crc32.is_some() {
            self.bytes = self.bytes.saturating_add(module.row.size_bytes);
        }
        if self.by_slot.len() >= MAX_MODULES {
            self.not_shown = self.not_shown.saturating_add(1);
            return;
        }
        self.by_slot.insert(slot, module);
    }

    /// Adds a cubin, or puts a newer row in the place of what was known of it.
    pub(super) fn put(&mut self, slot: u32, module: Module) {
        match self.by_slot.get_mut(&slot) {
            Some(known) => *known = module,
            None => self.add(slot, module),
        }
    }

    /// Those that the cubins were built for.
    pub(crate) fn architectures(&self) -> impl Iterator<Item = &str> {
        self.architectures.iter().map(String::as_str)
    }

    /// The slots that have a row.
    pub(crate) fn slots(&self) -> Vec<u32> {
        self.by_slot.keys().copied().collect()
    }

    pub(crate) fn set_loads(&mut self, slot: u32, loads: u64) {
        if let Some(module) = self.by_slot.get_mut(&slot) {
            module.row.loads = module.row.loads.max(loads);
        }
    }

    /// How often each cubin that has a row was loaded, by its slot.
    pub(crate) fn loads(&self) -> Vec<(u32, u64)> {
        self.by_slot.iter().map(|(&slot, module)| (slot, module.row.loads)).collect()
    }

    /// CUPTI's own checksum came back, or the reason why it never will.
    pub(crate) fn set_cupti_crc(&mut self, slot: u32, crc: Result<u64, &str>) {
        let Some(module) = self.by_slot.get_mut(&slot) else { return };
        match crc {
            Ok(crc) => {
                module.row.cupti_crc = Some(crc);
                module.row.cupti_crc_reason.clear();
            }
            Err(reason) => reason.clone_into(&mut module.row.cupti_crc_reason),
        }
    }

    /// What this reader counted; the shim's own counts are the session's to add.
    pub(super) fn counts(&self) -> ModuleCounts {
        ModuleCounts { bytes: self.bytes, not_shown: self.not_shown, ..Default::default() }
    }

    pub(super) fn rows(&self) -> Vec<ModuleRow> {
        let mut modules: Vec<(&u32, &Module)> = self.by_slot.iter().collect();
        modules.sort_by_key(|(slot, module)| (module.first_ns, **slot));
        let row = |module: &Module| ModuleRow { first_load_ns: module.first_ns, ..module.row.clone() };
        modules.into_iter().map(|(_, module)| row(module)).collect()
    }
}
