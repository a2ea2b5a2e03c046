//! A tap in a memfd, all of it reserved, and what becomes of loads.

use gputap_ringbuf::{
    attach::Attached,
    backing::create::{BackingChoice, create},
    header::{counters::Counter, identity::Backing},
    housekeeping::{Ahead, Housekeeper, Step},
    layout::{CHUNK_WORDS, PAGE_BYTES, Sizes},
    store::EntryKind,
    tap::{ModuleLoad, TapWriter},
};

pub const AREA_BYTES: usize = 4 * PAGE_BYTES;
pub const SIZES: Sizes = Sizes {
    lanes: 1,
    lane_words: 4 * CHUNK_WORDS,
    cubin_slots: 64,
    cubin_bytes: AREA_BYTES,
    definition_slots: 64,
    definition_bytes: PAGE_BYTES,
};

pub struct SizedTap {
    pub writer: TapWriter,
}

impl SizedTap {
    pub fn new(sizes: Sizes) -> SizedTap {
        let created = create(sizes, BackingChoice::Only(Backing::Memfd)).unwrap();
        let writer = TapWriter::new(&created);
        let everything =
            Ahead { lanes: sizes.lanes, cubin_bytes: 1 << 40, definition_bytes: 1 << 40, step_bytes: 64 << 20 };
        let mut housekeeper = Housekeeper::new(created.reserver, everything);
        let last = std::iter::repeat_with(|| housekeeper.step(&writer)).find(|step| !matches!(step, Step::Reserved));
        assert!(matches!(last, Some(Step::Enough)), "{last:?}");
        writer.publish();
        SizedTap { writer }
    }

    /// A tap whose housekeeping has not come by.
    pub fn unreserved(sizes: Sizes) -> SizedTap {
        let writer = TapWriter::new(&create(sizes, BackingChoice::Only(Backing::Memfd)).unwrap());
        writer.publish();
        SizedTap { writer }
    }

    pub fn attached(&self) -> Attached {
        self.writer.as_reader().unwrap()
    }

    pub fn counter(&self, counter: Counter) -> u64 {
        self.attached().counters().get(counter)
    }

    /// Loads a cubin, and gives what was counted for it.
    pub fn load(&self, image: &[u8]) -> Counter {
        self.load_raw(image.as_ptr(), image.len())
    }

    /// `image` is memory of that length, or longer than any cubin may be.
    pub fn load_raw(&self, image: *const u8, len: usize) -> Counter {
        let outcomes =
            [Counter::ModuleDuplicates, Counter::ModulesFull, Counter::ModulesNotReserved, Counter::ModulesContended];
        let before = outcomes.map(|outcome| self.counter(outcome));
        // SAFETY: the caller's promise; what is longer than any cubin is not read.
        unsafe { self.writer.store_cubin(image, len, ModuleLoad::default()) };
        let raised = outcomes.into_iter().zip(before).find(|(outcome, before)| self.counter(*outcome) > *before);
        raised.map_or(Counter::CubinBytes, |(outcome, _)| outcome)
    }

    /// The bytes of each cubin in the store, and how often it was loaded.
    pub fn cubins(&self) -> Vec<(Vec<u8>, u64)> {
        let mut store = self.attached().cubins();
        let mut cubins = Vec::new();
        while let Some(entry) = store.next_entry() {
            if entry.kind == EntryKind::Cubin as u16 {
                cubins.push((store.read(&entry).unwrap(), entry.uses));
            }
        }
        assert!(store.invalid == 0 && store.unfinished() == 0);
        cubins
    }

    /// The sizes that were refused, and how often.
    pub fn refused(&self) -> Vec<(u64, u64)> {
        let mut store = self.attached().cubins();
        let entries = std::iter::from_fn(|| store.next_entry());
        entries.filter(|e| e.kind == EntryKind::RefusedCubin as u16).map(|e| (e.b, e.uses)).collect()
    }

    /// Stores names until one is refused; gives how many there are, each read back.
    pub fn fill_with_names(&self) -> usize {
        let name = |n: usize| format!("kernel_{n}").into_bytes();
        let stored = (0..).take_while(|n| self.writer.store_kernel_name(&name(*n), 0).is_some()).count();
        assert_eq!(self.counter(Counter::NamesLost), 1);
        let mut store = self.attached().definitions();
        for n in 0..stored {
            let entry = store.next_entry().unwrap();
            assert!(store.read(&entry).unwrap() == name(n) && self.writer.is_name(entry.slot, &name(n)));
        }
        assert!(store.next_entry().is_none());
        stored
    }
}

/// `len` bytes that follow from `seed`.
pub fn image(seed: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    let mut word = (seed as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for chunk in bytes.chunks_mut(8) {
        word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
    }
    bytes
}

/// Addresses that fault when they are read.
pub fn forbidden_bytes(len: usize) -> *const u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping anywhere; it is never unmapped.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
    assert_ne!(at, libc::MAP_FAILED);
    at.cast()
}

pub fn available_memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap_or_default();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0) * 1024
}
