//! Segments to measure on: real ones, on memfds, as in a process without /dev/shm.

use gputap_ringbuf::{
    backing::create::{BackingChoice, create},
    header::identity::Backing,
    housekeeping::{Ahead, Housekeeper, Step},
    layout::Sizes,
    tap::TapWriter,
};

/// A published segment.
pub struct Tap {
    pub writer: TapWriter,
    /// Holds the descriptor by which readers find the segment. A process has one tap as far as readers know.
    _findable: Option<Housekeeper>,
}

impl Tap {
    /// The process's tap for readers, with `lanes` lanes reserved.
    pub fn findable(sizes: Sizes, lanes: usize) -> Tap {
        let (writer, housekeeper) = published(sizes, Ahead { lanes, ..Ahead::DEFAULT });
        Tap { writer, _findable: Some(housekeeper) }
    }

    /// Room for cubins, all of it reserved, and nothing else.
    pub fn of_cubins(cubin_slots: usize, cubin_bytes: usize) -> Tap {
        let sizes = Sizes { cubin_slots, cubin_bytes, ..Sizes::STATUS_ONLY };
        let ahead = Ahead { lanes: 0, cubin_bytes: cubin_bytes as u64, ..Ahead::DEFAULT };
        Tap { writer: published(sizes, ahead).0, _findable: None }
    }
}

/// Everything that is measured is reserved: nothing waits for the kernel to find memory.
fn published(sizes: Sizes, ahead: Ahead) -> (TapWriter, Housekeeper) {
    let created = create(sizes, BackingChoice::Only(Backing::Memfd)).expect("a memfd segment");
    let writer = TapWriter::new(&created);
    let mut housekeeper = Housekeeper::new(created.reserver, ahead);
    while let Step::Reserved = housekeeper.step(&writer) {}
    writer.publish();
    (writer, housekeeper)
}
