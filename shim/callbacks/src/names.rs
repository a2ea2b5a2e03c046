//! Names and texts, stored once a lane: a record's name becomes the slot of its copy in the definitions.
//!
//! Found by content, never by the pointer alone, which CUPTI may reuse once a module is unloaded. But where the pointer
//! was met before, what it pointed to then is compared first: that is quicker than to hash a name of hundreds of bytes.

use gputap_ringbuf::{event::NO_NAME, header::counters::Counter, tap::TapWriter};

/// More different kernels in one process than 8,192 have not been seen.
const KERNELS: usize = 1 << 13;
/// Texts may be as many as there are iterations: the newest are found again.
const TEXTS: usize = 1 << 10;
/// The kernels of a few models.
const HINTS: usize = 1 << 10;
/// How far a name may lie from where its hash points.
const PROBES: usize = 32;
/// Names are cut here; template arguments of half a megabyte exist.
pub const MAX_NAME_BYTES: usize = 512 << 10;

/// The names that one lane has seen. Used only by whoever has entered the lane.
pub struct LaneNames {
    hints: Box<[Hint]>,
    kernels: Table,
    texts: Table,
}

impl Default for LaneNames {
    fn default() -> Self {
        let hints = vec![Hint::default(); HINTS].into_boxed_slice();
        LaneNames { hints, kernels: Table::new(KERNELS), texts: Table::new(TEXTS) }
    }
}

impl LaneNames {
    /// The slot of a kernel's name, stored now if it is new; [`NO_NAME`], counted, where there is no room.
    pub fn kernel(&mut self, tap: &TapWriter, name: &[u8]) -> u32 {
        let pointer = name.as_ptr().addr();
        // Names lie some words apart.
        let hint = (pointer >> 4) % HINTS;
        if let Some(slot) = self.hints[hint].slot(pointer).filter(|slot| tap.is_name(*slot, cut(name))) {
            return slot;
        }
        let slot = self.sought(tap, name);
        if slot != NO_NAME {
            self.hints[hint] = Hint { pointer, slot };
        }
        slot
    }

    fn sought(&mut self, tap: &TapWriter, name: &[u8]) -> u32 {
        let name = Name::new(name);
        let store = || tap.store_kernel_name(name.bytes, name.full_len);
        match self.kernels.look_up(tap, &name) {
            Place::Known(slot) => slot,
            Place::Free(index) => self.kernels.fill(index, name.hash, store()),
            Place::Crowded(_) => {
                tap.count(Counter::NamesLost, 1);
                NO_NAME
            }
        }
    }

    /// The same for another text.
    pub fn text(&mut self, tap: &TapWriter, text: &[u8]) -> u32 {
        let text = Name::new(text);
        match self.texts.look_up(tap, &text) {
            Place::Known(slot) => slot,
            Place::Free(index) | Place::Crowded(index) => {
                self.texts.fill(index, text.hash, tap.store_text(text.bytes, text.full_len))
            }
        }
    }
}

/// Where a name was met last.
#[derive(Clone, Copy, Default)]
struct Hint {
    /// 0 for none.
    pointer: usize,
    slot: u32,
}

impl Hint {
    fn slot(&self, pointer: usize) -> Option<u32> {
        (self.pointer == pointer).then_some(self.slot)
    }
}

fn cut(name: &[u8]) -> &[u8] {
    &name[..name.len().min(MAX_NAME_BYTES)]
}

struct Name<'a> {
    bytes: &'a [u8],
    full_len: u64,
    hash: u64,
}

impl Name<'_> {
    fn new(bytes: &[u8]) -> Name<'_> {
        let cut = cut(bytes);
        Name { bytes: cut, full_len: bytes.len() as u64, hash: hash(cut) }
    }
}

#[derive(Clone, Copy, Default)]
struct Entry {
    hash: u64,
    /// Slot in the definitions plus 1; 0 for an empty entry.
    slot: u32,
}

struct Table {
    entries: Box<[Entry]>,
}

/// Where a name is in a table, or would be.
enum Place {
    Known(u32),
    Free(usize),
    /// All the entries where it could be are others'; the first of them.
    Crowded(usize),
}

impl Table {
    fn new(len: usize) -> Table {
        Table { entries: vec![Entry::default(); len].into_boxed_slice() }
    }

    fn look_up(&self, tap: &TapWriter, name: &Name<'_>) -> Place {
        let index = |probe: usize| (name.hash as usize).wrapping_add(probe) % self.entries.len();
        for probe in 0..PROBES {
            let entry = self.entries[index(probe)];
            if entry.slot == 0 {
                return Place::Free(index(probe));
            }
            if entry.hash == name.hash && tap.is_name(entry.slot - 1, name.bytes) {
                return Place::Known(entry.slot - 1);
            }
        }
        Place::Crowded(index(0))
    }

    /// Remembers a name that was stored, if it was.
    fn fill(&mut self, index: usize, hash: u64, stored: Option<u32>) -> u32 {
        let Some(slot) = stored else { return NO_NAME };
        self.entries[index] = Entry { hash, slot: slot + 1 };
        slot
    }
}

/// A quick hash: rotate, xor and multiply eight bytes at a time. Equality is decided by the bytes.
fn hash(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut h = bytes.len() as u64;
    for word in words {
        h = (h.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(ODD);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    h = (h.rotate_left(5) ^ u64::from_le_bytes(last)).wrapping_mul(ODD);
    h ^ h >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputap_ringbuf::{
        backing::create::{BackingChoice, create},
        header::identity::Backing,
        housekeeping::{Ahead, Housekeeper, Step},
        layout::Sizes,
    };

    fn tap(definition_slots: usize) -> TapWriter {
        let sizes = Sizes { lanes: 0, definition_slots, definition_bytes: 1 << 20, ..Sizes::STATUS_ONLY };
        let created = create(sizes, BackingChoice::Only(Backing::Memfd)).expect("a memfd");
        let tap = TapWriter::new(&created);
        let mut housekeeper = Housekeeper::new(created.reserver, Ahead::DEFAULT);
        while matches!(housekeeper.step(&tap), Step::Reserved) {}
        tap
    }

    #[test]
    fn a_pointer_that_was_reused_names_what_it_points_to_now() {
        let (tap, mut names) = (tap(64), LaneNames::default());
        let mut memory = *b"gemm_one";
        let one = names.kernel(&tap, &memory);
        assert_eq!(names.kernel(&tap, &memory), one);
        memory.copy_from_slice(b"gemm_two");
        let two = names.kernel(&tap, &memory);
        assert_ne!(one, two);
        // Elsewhere, and again under the pointer.
        assert_eq!((names.kernel(&tap, b"gemm_one"), names.kernel(&tap, &memory)), (one, two));
        assert_eq!(tap.counted(Counter::NamesLost), 0);
    }

    #[test]
    fn texts_leave_half_of_the_room_to_kernels() {
        let (tap, mut names) = (tap(64), LaneNames::default());
        let texts: Vec<u32> = (0..100).map(|n| names.text(&tap, format!("step {n}").as_bytes())).collect();
        assert_eq!(texts.iter().filter(|slot| **slot != NO_NAME).count(), 32);
        assert_eq!(tap.counted(Counter::NamesLost), 68);
        // The first are found again, and kernels have their names.
        assert_eq!(names.text(&tap, b"step 3"), texts[3]);
        assert!((0..20).all(|n| names.kernel(&tap, format!("kernel {n}").as_bytes()) != NO_NAME));
    }
}
