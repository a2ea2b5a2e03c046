//! What it costs a callback that a cubin is in the store already: a measurement, and no part of the suite.
//!
//! `cargo test --release -p gputap-ringbuf --test write_path_duplicates -- --ignored --nocapture` (8 GiB of memory)
#![cfg(not(loom))]

use gputap_ringbuf::{
    backing::{create::Created, reserve::Reserver},
    control::{CONTROL_BYTES, server::ControlServer},
    header::{
        counters::Counter,
        identity::{Backing, Identity},
    },
    housekeeping::{Ahead, Housekeeper, Step},
    layout::{Layout, Sizes},
    sync::Ordering,
    tap::{ModuleLoad, TapWriter},
    words::{MappedWords, Words, heap_words},
};
use std::{ptr::NonNull, sync::Arc, time::Instant};

const CUBIN_BYTES: usize = 1 << 20;
const ROUNDS: usize = 15;
const MOST_NS: u128 = 1_000_000_000;

/// A tap with room for so many cubins, in private memory: a memfd may take 4 GiB at most.
fn tap(cubins: usize) -> (MappedWords, TapWriter) {
    let sizes = Sizes { cubin_slots: cubins * 8 / 7 + 8, cubin_bytes: cubins * CUBIN_BYTES, ..Sizes::STATUS_ONLY };
    let layout = Layout::new(sizes.checked().unwrap());
    let map = memmap2::MmapMut::map_anon(layout.total_words * 8).unwrap();
    let base = NonNull::new(map.as_ptr().cast_mut()).unwrap();
    // SAFETY: an anonymous map of that size, aligned to pages, kept by the Arc.
    let words = unsafe { MappedWords::new(base, layout.total_words, Some(Arc::new(map))) };
    let identity = Identity::current(std::process::id(), Backing::Shm, 1, 2);
    identity.write(&words, &sizes);
    let reserver = || Reserver::new(words.clone(), None, false, u64::MAX);
    let control = ControlServer::new(heap_words(CONTROL_BYTES / 8), 1, 2);
    let tap = TapWriter::new(&Created { words: words.clone(), layout, identity, reserver: reserver(), control });
    let ahead = Ahead { lanes: 0, cubin_bytes: 1 << 40, definition_bytes: 0, step_bytes: 64 << 20 };
    let mut housekeeper = Housekeeper::new(reserver(), ahead);
    while let Step::Reserved = housekeeper.step(&tap) {}
    (words, tap)
}

fn load(tap: &TapWriter, image: &[u8]) {
    // SAFETY: `image` can be read and does not change.
    unsafe { tap.store_cubin(image.as_ptr(), image.len(), ModuleLoad::default()) };
}

const WORDS: usize = CUBIN_BYTES / 8;

/// Nanoseconds that a load of the last of `count` cubins takes that differ in one word: fastest, median and slowest.
fn duplicate_ns(count: usize, differing_word: usize) -> [u128; 3] {
    let (words, tap) = tap(count);
    let mut image: Vec<u8> = (0..CUBIN_BYTES).map(|i| (i * 31) as u8).collect();
    for n in 0..count {
        image[..8].copy_from_slice(&n.to_le_bytes());
        load(&tap, &image);
    }
    // The word that differs is moved in the store itself: by loads, each would be compared with all before it.
    for n in (0..count).filter(|_| differing_word != 0) {
        let start = tap.layout().cubins + n * WORDS;
        words.store(start, 0, Ordering::Relaxed);
        words.store(start + differing_word, n as u64, Ordering::Relaxed);
    }
    image[..8].fill(0);
    image[differing_word * 8..][..8].copy_from_slice(&(count - 1).to_le_bytes());
    let mut times = Vec::new();
    while times.len() < ROUNDS && times.iter().sum::<u128>() < 10 * MOST_NS {
        let start = Instant::now();
        load(&tap, &image);
        times.push(start.elapsed().as_nanos());
    }
    assert_eq!(Counter::CubinBytes.read(&words), (count * CUBIN_BYTES) as u64);
    assert_eq!(Counter::ModuleDuplicates.read(&words), times.len() as u64);
    times.sort_unstable();
    [times[0], times[times.len() / 2], times[times.len() - 1]]
}

#[test]
#[ignore = "a measurement that needs 8 GiB"]
fn what_a_duplicate_costs() {
    for (place, differing_word) in [("their first bytes", 0), ("their last bytes", WORDS - 1)] {
        for count in [1, 1000, 7000] {
            let [fastest, median, slowest] = duplicate_ns(count, differing_word);
            println!("{count} cubins of 1 MiB that differ in {place}: {median} ns ({fastest} to {slowest})");
        }
    }
}
