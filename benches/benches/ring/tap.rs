//! Segments to measure on: real ones. The one that readers are to find is a named object, since what a process has in
//! /dev/shm is found before its memfds, and that is where all the others are.

use gputap_ringbuf::{
    backing::create::{BackingChoice, create},
    discover,
    header::identity::Backing,
    housekeeping::{Ahead, Housekeeper, Step},
    layout::Sizes,
    tap::TapWriter,
};

/// A published segment.
pub struct Tap {
    pub writer: TapWriter,
}

impl Tap {
    /// The process's tap for readers, with `lanes` lanes reserved.
    pub fn findable(sizes: Sizes, lanes: usize) -> Tap {
        Tap { writer: published(sizes, Ahead { lanes, ..Ahead::DEFAULT }, Backing::Shm) }
    }

    /// Room for cubins, all of it reserved, and nothing else.
    pub fn of_cubins(cubin_slots: usize, cubin_bytes: usize) -> Tap {
        let sizes = Sizes { cubin_slots, cubin_bytes, ..Sizes::STATUS_ONLY };
        let ahead = Ahead { lanes: 0, cubin_bytes: cubin_bytes as u64, ..Ahead::DEFAULT };
        Tap { writer: published(sizes, ahead, Backing::Memfd) }
    }

    /// At the end: takes away the names of what was findable.
    pub fn remove_findable() {
        while let Ok(found) = discover::find(std::process::id())
            && found.segment.starts_with("/dev/shm")
        {
            let removed = [&found.segment, &found.control].map(std::fs::remove_file);
            assert!(removed.iter().all(Result::is_ok), "{removed:?}");
        }
    }
}

/// Everything that is measured is reserved: nothing waits for the kernel to find memory.
fn published(sizes: Sizes, ahead: Ahead, backing: Backing) -> TapWriter {
    let created = create(sizes, BackingChoice::Only(backing)).expect("a segment");
    let writer = TapWriter::new(&created);
    let mut housekeeper = Housekeeper::new(created.reserver, ahead);
    while let Step::Reserved = housekeeper.step(&writer) {}
    writer.publish();
    writer
}
