//! A cubin of 64 MiB into the store, beside a plain copy into memory of the same kind.

use super::{ROUNDS, table::Table};
use gputap_ringbuf::{
    backing::create::{BackingChoice, Created, create},
    header::{counters::Counter, identity::Backing},
    housekeeping::{Ahead, Housekeeper, Step},
    layout::Sizes,
    tap::{ModuleLoad, TapWriter},
    words::MappedWords,
};
use std::{hint::black_box, sync::OnceLock, time::Instant};

const IMAGE_BYTES: usize = 64 << 20;
const COPY: &str = "memcpy of 64 MiB, populated shared memory";
const GB: &str = "GB/s";

fn segment(cubin_bytes: usize) -> Created {
    let sizes = Sizes { cubin_bytes, cubin_slots: 64, ..Sizes::STATUS_ONLY };
    create(sizes, BackingChoice::Only(Backing::Memfd)).expect("a memfd segment")
}

/// A tap with room for an image a round, all of it populated.
fn tap() -> &'static TapWriter {
    static TAP: OnceLock<TapWriter> = OnceLock::new();
    TAP.get_or_init(|| {
        let created = segment(ROUNDS * IMAGE_BYTES);
        let tap = TapWriter::new(&created);
        let ahead = Ahead { cubin_bytes: u64::MAX / 2, ..Ahead::DEFAULT };
        let mut housekeeper = Housekeeper::new(created.reserver, ahead);
        while let Step::Reserved = housekeeper.step(&tap) {}
        tap.publish();
        tap
    })
}

fn image() -> &'static [u8] {
    static IMAGE: OnceLock<Vec<u8>> = OnceLock::new();
    IMAGE.get_or_init(|| (0..IMAGE_BYTES).map(|i| ((i * 7) >> 3) as u8).collect())
}

fn gb_per_s(bytes: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    bytes as f64 / start.elapsed().as_nanos() as f64
}

/// No two images have the same length, so that none is compared with another.
fn store(round: usize) -> f64 {
    let (tap, image) = (tap(), &image()[..IMAGE_BYTES - 64 * round]);
    // SAFETY: `image` can be read and does not change.
    let rate = gb_per_s(image.len(), || unsafe {
        tap.store_cubin(image.as_ptr(), image.len(), ModuleLoad::default());
    });
    let counters = tap.as_reader().expect("our own segment").counters();
    assert_eq!(counters.get(Counter::ModulesFull) + counters.get(Counter::ModulesNotReserved), 0);
    rate
}

fn copy(to: &MappedWords, start_bytes: usize) -> f64 {
    let to = to.bytes_at(start_bytes, IMAGE_BYTES).expect("room for an image");
    let image = black_box(image());
    gb_per_s(IMAGE_BYTES, || {
        // SAFETY: `to` has IMAGE_BYTES mapped, writable bytes (bytes_at) that nobody else uses; an image has as many.
        unsafe { std::ptr::copy_nonoverlapping(image.as_ptr(), to.as_ptr(), IMAGE_BYTES) };
    })
}

fn copy_populated(round: usize) -> f64 {
    static TO: OnceLock<(MappedWords, usize)> = OnceLock::new();
    let (words, start_bytes) = TO.get_or_init(|| {
        let mut created = segment(ROUNDS * IMAGE_BYTES);
        let start_bytes = created.layout.cubins * 8;
        let reserved = created.reserver.reserve(start_bytes as u64, (ROUNDS * IMAGE_BYTES) as u64);
        reserved.expect("memory for the rounds");
        (created.words, start_bytes)
    });
    copy(words, start_bytes + round * IMAGE_BYTES)
}

fn copy_cold(round: usize) -> f64 {
    static TO: OnceLock<(MappedWords, usize)> = OnceLock::new();
    let (words, start_bytes) = TO.get_or_init(|| {
        let created = segment(ROUNDS * IMAGE_BYTES);
        (created.words, created.layout.cubins * 8)
    });
    copy(words, start_bytes + round * IMAGE_BYTES)
}

pub fn round(table: &mut Table, round: usize) {
    table.add(COPY, GB, "", copy_populated(round));
    table.add("cubin of 64 MiB into the store, reserved ahead", GB, COPY, store(round));
    table.add("memcpy of 64 MiB, shared memory never touched before", GB, COPY, copy_cold(round));
    table.add("the same cubin again: found and compared", GB, COPY, store(round));
}
