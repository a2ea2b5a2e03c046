//! The definitions of a tap: which slot is which kernel's mangled name, or which other text.

use super::sink::Guarded;
use crate::model::Model;
use gputap_ringbuf::store::EntryKind;
use gputap_ringbuf::store::reader::{Entry, StoreReader};

/// Longest name read; the shim cuts at half of it. A longer one is no name of ours.
const NAME_MAX_BYTES: u64 = 1 << 20;
/// Bytes of names read in one step, beyond one name.
const STEP_MAX_BYTES: u64 = 16 << 20;
/// Entries read in one step.
const STEP_MAX_ENTRIES: usize = 16 * 1024;

pub(super) struct Names {
    store: StoreReader,
    known: SlotSet,
    budget_bytes: u64,
    unreadable: u64,
}

impl Names {
    pub fn new(store: StoreReader) -> Names {
        Names { store, known: SlotSet::default(), budget_bytes: 0, unreadable: 0 }
    }

    /// Reads the names that are new; true where there are more. Done before the events of a step, so that events find
    /// their names.
    pub fn step(&mut self, model: &mut Model, sink: &mut Guarded<'_>) -> bool {
        self.budget_bytes = STEP_MAX_BYTES;
        for _ in 0..STEP_MAX_ENTRIES {
            let Some(entry) = self.store.next_entry() else {
                // What is left serves the names that become ready while the lanes are drained.
                self.budget_bytes = STEP_MAX_BYTES;
                return false;
            };
            self.learn(&entry, model, sink);
            if self.budget_bytes == 0 {
                break;
            }
        }
        true
    }

    /// Makes sure that the name of `slot` is known, if the store has it: an event may be read before the next look at
    /// the store.
    pub fn look_up(&mut self, slot: u32, model: &mut Model, sink: &mut Guarded<'_>) {
        if self.known.contains(slot) || self.budget_bytes == 0 {
            return;
        }
        if let Some(entry) = self.store.entry(slot) {
            self.learn(&entry, model, sink);
        }
    }

    /// Entries that are not what was stored.
    pub fn broken(&self) -> u64 {
        self.store.invalid + self.unreadable
    }

    fn learn(&mut self, entry: &Entry, model: &mut Model, sink: &mut Guarded<'_>) {
        let is_text = entry.kind == EntryKind::Text as u16;
        let is_ours = is_text || entry.kind == EntryKind::KernelName as u16;
        if !is_ours || entry.len_bytes > NAME_MAX_BYTES || !self.known.add(entry.slot) {
            return;
        }
        self.budget_bytes = self.budget_bytes.saturating_sub(entry.len_bytes);
        let Ok(bytes) = self.store.read(entry) else {
            self.unreadable += 1;
            return;
        };
        if is_text {
            return sink.put(|sink| sink.text(entry.slot, &bytes));
        }
        model.name(entry.slot, &bytes);
        sink.put(|sink| sink.name(entry.slot, &bytes));
    }
}

/// Slots, a bit each. A store has at most 2^20.
#[derive(Debug, Default)]
struct SlotSet {
    words: Vec<u64>,
}

impl SlotSet {
    fn contains(&self, slot: u32) -> bool {
        self.words.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// False where it was there already. Only called with slots that the store has.
    fn add(&mut self, slot: u32) -> bool {
        let index = slot as usize / 64;
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        let is_new = !self.contains(slot);
        self.words[index] |= 1 << (slot % 64);
        is_new
    }
}
