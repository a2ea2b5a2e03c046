//! Kernel names, stored once a lane: a record's name becomes the slot of its copy in the definitions.
//!
//! Found by content, never by the pointer alone, which CUPTI may reuse once a module is unloaded.

use gputap_ringbuf::{event::NO_NAME, header::counters::Counter, tap::TapWriter};

/// Entries of a lane's table; more different kernels in one process than 8,192 have not been seen.
const ENTRIES: usize = 1 << 13;
/// How far a name may lie from where its hash points.
const PROBES: usize = 32;
/// Names are cut here; template arguments of half a megabyte exist.
pub const MAX_NAME_BYTES: usize = 512 << 10;

#[derive(Clone, Copy, Default)]
struct Entry {
    hash: u64,
    /// Slot in the definitions plus 1; 0 for an empty entry.
    slot: u32,
}

/// The names that one lane has seen. Used only by whoever has entered the lane.
pub struct NameTable {
    entries: Box<[Entry]>,
}

impl Default for NameTable {
    fn default() -> Self {
        NameTable { entries: vec![Entry::default(); ENTRIES].into_boxed_slice() }
    }
}

impl NameTable {
    /// The slot of `name`, stored now if it is new; [`NO_NAME`], counted, where there is no room.
    pub fn slot_of(&mut self, tap: &TapWriter, name: &[u8]) -> u32 {
        let full_len = name.len() as u64;
        let name = &name[..name.len().min(MAX_NAME_BYTES)];
        let hash = hash(name);
        let start = hash as usize;
        for probe in 0..PROBES {
            let entry = &mut self.entries[start.wrapping_add(probe) % ENTRIES];
            if entry.slot == 0 {
                let Some(slot) = tap.store_kernel_name(name, full_len) else { return NO_NAME };
                *entry = Entry { hash, slot: slot + 1 };
                return slot;
            }
            if entry.hash == hash && tap.is_name(entry.slot - 1, name) {
                return entry.slot - 1;
            }
        }
        tap.count(Counter::NamesLost, 1);
        NO_NAME
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
