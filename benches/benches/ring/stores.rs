//! A cubin of 64 MiB into the store, beside a plain copy into memory of the same kind.

use super::{table::Table, tap::Tap};
use gputap_ringbuf::{header::counters::Counter, tap::ModuleLoad};
use memmap2::{MmapMut, MmapRaw};
use std::{hint::black_box, time::Instant};

pub const STORE: &str = "cubin of 64 MiB into the store, reserved ahead";
pub const STORE_RATIO: &str = "  of the memcpy just before and after";
const COPY: &str = "memcpy of 64 MiB, populated shared memory";
const COPY_COLD: &str = "memcpy of 64 MiB, shared memory never touched before";
const GB: &str = "GB/s";

const IMAGE_BYTES: usize = 64 << 20;

/// Room for an image a round, and for two populated copies, more than the caches hold.
pub struct Stores {
    image: Vec<u8>,
    tap: Tap,
    populated: Room,
    cold: Room,
}

/// Shared memory of no segment: one of those has no access to what is not reserved.
struct Room(MmapRaw);

impl Stores {
    pub fn new(rounds: usize) -> Stores {
        let image = (0..IMAGE_BYTES).map(|i| ((i * 7) >> 3) as u8).collect();
        let mut populated = shared_memory(2 * IMAGE_BYTES);
        populated.fill(1);
        Stores {
            image,
            tap: Tap::of_cubins(64.max(rounds), rounds * IMAGE_BYTES),
            populated: Room(populated.into()),
            cold: Room(shared_memory(rounds * IMAGE_BYTES).into()),
        }
    }

    pub fn round(&mut self, table: &mut Table, round: usize) {
        let before = self.copy(&self.populated, 0);
        let stored = self.store(round);
        let after = self.copy(&self.populated, 1);
        table.add(COPY, GB, "", before);
        table.add(STORE, GB, COPY, stored);
        table.add(STORE_RATIO, "", "", stored / ((before + after) / 2.0));
        table.add(COPY_COLD, GB, COPY, self.copy(&self.cold, round));
    }

    /// No two images have the same length, so that none is compared with another.
    fn store(&self, round: usize) -> f64 {
        let (tap, image) = (&self.tap.writer, &self.image[..IMAGE_BYTES - 64 * round]);
        // SAFETY: `image` can be read and does not change.
        let rate = gb_per_s(image.len(), || unsafe {
            tap.store_cubin(image.as_ptr(), image.len(), ModuleLoad::default());
        });
        let counters = tap.as_reader().expect("our own segment").counters();
        assert_eq!(counters.get(Counter::CubinBytes), (0..=round).map(|r| (IMAGE_BYTES - 64 * r) as u64).sum::<u64>());
        rate
    }

    fn copy(&self, room: &Room, nth: usize) -> f64 {
        assert!((nth + 1) * IMAGE_BYTES <= room.0.len(), "room for an image");
        let image = black_box(&self.image);
        gb_per_s(IMAGE_BYTES, || {
            // SAFETY: the room has IMAGE_BYTES writable bytes there (asserted) that nobody else uses; so has an image.
            unsafe {
                let to = room.0.as_mut_ptr().add(nth * IMAGE_BYTES);
                std::ptr::copy_nonoverlapping(image.as_ptr(), to, IMAGE_BYTES);
            }
        })
    }
}

fn shared_memory(len_bytes: usize) -> MmapMut {
    MmapMut::map_anon(len_bytes).expect("address space")
}

fn gb_per_s(bytes: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    bytes as f64 / start.elapsed().as_nanos() as f64
}
