//! What a cubin that is stored already costs the callback of its next load: alone, and in a store of thousands.

use super::{batches::ns_per_call, table::Table, tap::Tap};
use gputap_ringbuf::{attach::Counters, header::counters::Counter, tap::ModuleLoad};
use std::sync::OnceLock;

const MICROS: &str = "us/load";
const MIB: usize = 1 << 20;
const LARGE_BYTES: usize = 64 * MIB;
/// Entries beside the one that is loaded again.
const OTHERS: usize = 4_000;
const SMALL_BYTES: usize = 4096;

/// Where equally long entries differ from one another.
#[derive(Clone, Copy)]
enum Differ {
    AtTheirStart,
    AtTheirEnd,
}

/// A store, and the last image that was put into it.
struct Stored {
    tap: Tap,
    image: Vec<u8>,
}

impl Stored {
    fn new(entries: usize, room_bytes: usize) -> Stored {
        // An eighth of the slots is kept for refusals.
        Stored { tap: Tap::of_cubins(entries.div_ceil(7) * 8, room_bytes.next_multiple_of(MIB)), image: Vec::new() }
    }

    fn alone(len: usize) -> Stored {
        let mut stored = Stored::new(1, len);
        stored.put((0..len).map(|i| ((i * 7) >> 3) as u8).collect());
        stored
    }

    /// One of a MiB behind thousands that have other lengths.
    fn behind_other_sizes() -> Stored {
        let mut stored = Stored::new(OTHERS + 1, OTHERS * OTHERS * 4 + OTHERS * 64 + MIB);
        (1..=OTHERS).for_each(|n| stored.put(vec![1; n * 8]));
        stored.put(vec![2; MIB]);
        stored
    }

    fn behind_equal_sizes(differ: Differ) -> Stored {
        let mut stored = Stored::new(OTHERS + 1, (OTHERS + 1) * SMALL_BYTES);
        for n in 0..=OTHERS {
            let mut image = vec![3; SMALL_BYTES];
            let at = match differ {
                Differ::AtTheirStart => 0,
                Differ::AtTheirEnd => SMALL_BYTES - 8,
            };
            image[at..at + 8].copy_from_slice(&(n as u64).to_le_bytes());
            stored.put(image);
        }
        stored
    }

    fn put(&mut self, image: Vec<u8>) {
        self.image = image;
        self.load();
    }

    fn load(&self) {
        // SAFETY: `image` can be read and does not change.
        unsafe { self.tap.writer.store_cubin(self.image.as_ptr(), self.image.len(), ModuleLoad::default()) };
    }

    fn counters(&self) -> Counters {
        self.tap.writer.as_reader().expect("our own segment").counters()
    }

    /// Microseconds of a load of the last image again.
    fn again(&self, batches: u64, batch: u64) -> f64 {
        let found_before = self.counters().get(Counter::ModuleDuplicates);
        let ns = ns_per_call(batches, batch, |_| self.load());
        let found = self.counters().get(Counter::ModuleDuplicates) - found_before;
        assert_eq!(found, batches * batch, "every load finds the stored copy");
        ns / 1_000.0
    }
}

macro_rules! once {
    ($make:expr) => {{
        static STORED: OnceLock<Stored> = OnceLock::new();
        STORED.get_or_init(|| $make)
    }};
}

pub fn round(table: &mut Table) {
    let small = "cubin of 4 KiB again";
    let one_mib = "cubin of 1 MiB again";
    table.add(small, MICROS, "", once!(Stored::alone(SMALL_BYTES)).again(21, 100));
    table.add(one_mib, MICROS, "", once!(Stored::alone(MIB)).again(21, 2));
    table.add("cubin of 64 MiB again", MICROS, one_mib, once!(Stored::alone(LARGE_BYTES)).again(1, 1));
    let behind = once!(Stored::behind_other_sizes());
    table.add("  1 MiB behind 4,000 entries of other sizes", MICROS, one_mib, behind.again(21, 2));
    let behind = once!(Stored::behind_equal_sizes(Differ::AtTheirStart));
    table.add("  4 KiB behind 4,000 of equal size, unlike at once", MICROS, small, behind.again(11, 1));
    let behind = once!(Stored::behind_equal_sizes(Differ::AtTheirEnd));
    table.add("  4 KiB behind 4,000 of equal size, unlike at the end", MICROS, small, behind.again(5, 1));
}
