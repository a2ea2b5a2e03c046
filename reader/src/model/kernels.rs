//! All kernels of a tap: which slot is which name, and the statistics of each name.

use super::kernel::KernelStats;
use super::snapshot::KernelRow;
use super::timeline::Work;
use super::timing::Timing;
use crate::symbols::{demangle, escape};
use gputap_ringbuf::event::{KernelEvent, NO_NAME};
use std::collections::HashMap;

/// Distinct kernels with a row of their own; the rest share the row "(other)".
pub const MAX_KERNELS: usize = 8192;
/// Bytes of mangled names kept; a name that finds no room counts under "(other)".
pub const MAX_NAME_BYTES: usize = 32 << 20;
/// Slots of the definitions area that can be told apart; later ones count under "(other)".
pub const MAX_NAME_SLOTS: usize = 1 << 18;
/// Longest mangled name shown in a row; a recording keeps the whole name.
const ROW_MANGLED_MAX_BYTES: usize = 8 * 1024;

const UNNAMED: &str = "(unnamed)";
const OTHER: &str = "(other)";

/// Which statistics a record belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Named(usize),
    Other,
}

#[derive(Debug)]
struct Named {
    name: String,
    mangled: String,
    work: Work,
    stats: KernelStats,
}

#[derive(Debug, Default)]
pub(super) struct Kernels {
    by_slot: HashMap<u32, Row>,
    /// The same name under several slots (each lane of the shim has a table of its own) is one kernel.
    by_content: HashMap<Box<[u8]>, usize>,
    name_bytes: usize,
    named: Vec<Named>,
    unnamed: KernelStats,
    other: KernelStats,
}

impl Kernels {
    pub(super) fn knows_name(&self, slot: u32) -> bool {
        self.by_slot.contains_key(&slot)
    }

    pub(super) fn name(&mut self, slot: u32, mangled: &[u8]) {
        if self.by_slot.contains_key(&slot) || self.by_slot.len() >= MAX_NAME_SLOTS {
            return;
        }
        let row = self.row_of(mangled);
        self.by_slot.insert(slot, row);
    }

    fn row_of(&mut self, mangled: &[u8]) -> Row {
        if let Some(&index) = self.by_content.get(mangled) {
            return Row::Named(index);
        }
        let room = MAX_NAME_BYTES - self.name_bytes;
        if self.named.len() >= MAX_KERNELS || mangled.len() > room {
            return Row::Other;
        }
        self.name_bytes += mangled.len();
        self.by_content.insert(mangled.into(), self.named.len());
        self.named.push(Named {
            name: demangle(mangled),
            mangled: escape::for_screen(&String::from_utf8_lossy(mangled), ROW_MANGLED_MAX_BYTES),
            work: Work::of_kernel(mangled),
            stats: KernelStats::default(),
        });
        Row::Named(self.named.len() - 1)
    }

    /// Gives what sort of work it was, by its name.
    pub(super) fn count(&mut self, kernel: &KernelEvent, timing: Timing) -> Work {
        let stats = match self.by_slot.get(&kernel.name_id) {
            Some(Row::Named(index)) => {
                let named = &mut self.named[*index];
                named.stats.count(kernel, timing);
                return named.work;
            }
            Some(Row::Other) => &mut self.other,
            None if kernel.name_id != NO_NAME && self.by_slot.len() >= MAX_NAME_SLOTS => &mut self.other,
            None => &mut self.unnamed,
        };
        stats.count(kernel, timing);
        Work::Compute
    }

    /// As in the rows.
    pub(super) fn name_of(&self, slot: u32) -> &str {
        match self.by_slot.get(&slot) {
            Some(Row::Named(index)) => &self.named[*index].name,
            Some(Row::Other) => OTHER,
            None => UNNAMED,
        }
    }

    /// One row a kernel that ran, longest total first, then by name; "(unnamed)" and "(other)" only where they count.
    pub(super) fn rows(&self) -> Vec<KernelRow> {
        let named = self.named.iter().map(|named| (named.name.as_str(), named.mangled.as_str(), &named.stats));
        let folded = [(UNNAMED, "", &self.unnamed), (OTHER, "", &self.other)];
        let all = named.chain(folded).filter(|(_, _, stats)| stats.calls() > 0);
        let all_kernels_ns = all.clone().fold(0u64, |sum, (_, _, stats)| sum.saturating_add(stats.total_ns()));
        let mut rows: Vec<KernelRow> = all
            .map(|(name, mangled, stats)| KernelRow {
                name: name.to_owned(),
                mangled: mangled.to_owned(),
                ..stats.row(all_kernels_ns)
            })
            .collect();
        rows.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}
