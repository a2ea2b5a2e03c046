//! Attaching to a segment as a reader: mapped read-only, checked, never trusted.

mod file;
pub mod guard;

pub use file::{Mapped, MappedFile};
pub(crate) use file::{open_regular, peek};

use crate::{
    discover::Found,
    header::{
        counters::Counter,
        identity::{BadHeader, Identity},
        status::{ClockPoint, Status, clock_points},
    },
    lane::{header as lane_header, reader::LaneReader},
    layout::{LANE_HEADER_WORDS, Layout, SLOT_WORDS, STORE_CONTROL_WORDS},
    store::reader::StoreReader,
    sync::Ordering,
    words::{MappedWords, ReadWords},
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Why a tap could not be attached to.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("no permission to open {path}: it belongs to another user; run gputap as the user of the job, or as root")]
    Permission { path: PathBuf },
    #[error("{path} is gone: the tap ended")]
    Gone { path: PathBuf },
    #[error("{path} cannot be mapped: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} has {actual_bytes} bytes, too few for a segment")]
    TooSmall { path: PathBuf, actual_bytes: u64 },
    #[error("{path}: {source}")]
    Header { path: PathBuf, source: BadHeader },
}

impl AttachError {
    fn of_file(path: &Path, source: io::Error) -> AttachError {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => AttachError::Permission { path },
            io::ErrorKind::NotFound => AttachError::Gone { path },
            _ => AttachError::Io { path, source },
        }
    }
}

/// What the shim has counted, at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Records that reached the shim: written to lanes, or lost before them.
    pub attempted: u64,
    values: Vec<u64>,
}

impl Counters {
    pub fn get(&self, counter: Counter) -> u64 {
        self.values.get(counter as usize).copied().unwrap_or(0)
    }

    /// Records lost before they reached a lane, by reason.
    pub fn lost(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
        Counter::LOST.into_iter().map(|c| (c, self.get(c)))
    }
}

/// A tap, attached read-only.
#[derive(Clone)]
pub struct Attached {
    words: MappedWords,
    layout: Layout,
    identity: Identity,
    /// `None` where somebody else mapped it.
    mapping: Option<Arc<file::Mapping>>,
}

impl Attached {
    pub fn open(found: &Found) -> Result<Attached, AttachError> {
        Self::open_path(&found.segment)
    }

    /// Attaches to the segment at `path`, a named object or a memfd under /proc.
    pub fn open_path(path: &Path) -> Result<Attached, AttachError> {
        let mapped = MappedFile::open(path, crate::layout::PAGE_BYTES as u64)?;
        let attached = Self::new(mapped.words, mapped.size_bytes);
        let attached = attached.map_err(|source| AttachError::Header { path: path.to_owned(), source })?;
        Ok(Attached { mapping: Some(mapped.mapping), ..attached })
    }

    /// Reads a segment that is mapped already.
    pub fn new(words: MappedWords, size_bytes: u64) -> Result<Attached, BadHeader> {
        let (identity, layout) = Identity::read(&words, size_bytes)?;
        Ok(Attached { words, layout, identity, mapping: None })
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether the file was cut under us: then what was read since this was last false is worth nothing, and all reads
    /// as zeros. Only in a process that called [`guard::catch_sigbus`]; others may not live to ask. A system call.
    pub fn is_cut(&self) -> bool {
        self.mapping.as_ref().is_some_and(|mapping| mapping.is_cut())
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub fn status(&self) -> Status {
        Status::read(&self.words)
    }

    pub fn counters(&self) -> Counters {
        let values: Vec<u64> = Counter::ALL.iter().map(|c| c.read(&self.words)).collect();
        let written: u64 = (0..self.lane_count()).map(|i| self.written(i)).fold(0, u64::wrapping_add);
        let mut counters = Counters { attempted: written, values };
        // From the values just read, not from a second look: attempted, written and lost have to agree.
        let lost = counters.lost().fold(0, |sum: u64, (_, count)| sum.wrapping_add(count));
        counters.attempted = counters.attempted.wrapping_add(lost);
        counters
    }

    fn written(&self, lane: usize) -> u64 {
        self.words.load(self.layout.lane_header(lane) + lane_header::NEXT_SEQ, Ordering::Relaxed)
    }

    /// How many lanes there can be; most were never used.
    pub fn lane_count(&self) -> usize {
        self.layout.sizes.lanes
    }

    /// Whether anything was ever written to the lane.
    pub fn lane_is_used(&self, lane: usize) -> bool {
        lane < self.lane_count() && self.written(lane) > 0
    }

    /// A reader of one lane, beginning at the oldest record that it holds.
    pub fn lane(&self, lane: usize) -> LaneReader<MappedWords> {
        let header = self.words.part(self.layout.lane_header(lane), LANE_HEADER_WORDS);
        let capacity = self.layout.sizes.lane_words;
        LaneReader::new(header, self.words.part(self.layout.lane_data(lane), capacity), capacity)
    }

    pub fn cubins(&self) -> StoreReader {
        let sizes = self.layout.sizes;
        self.store(self.layout.cubin_control, sizes.cubin_slots, self.layout.cubins, sizes.cubin_bytes)
    }

    pub fn definitions(&self) -> StoreReader {
        let sizes = self.layout.sizes;
        self.store(
            self.layout.definition_control,
            sizes.definition_slots,
            self.layout.definitions,
            sizes.definition_bytes,
        )
    }

    fn store(&self, control: usize, slots: usize, data: usize, size_bytes: usize) -> StoreReader {
        StoreReader::new(
            self.words.part(control, STORE_CONTROL_WORDS),
            self.words.part(control + STORE_CONTROL_WORDS, slots * SLOT_WORDS),
            slots,
            self.words.part(data, size_bytes / 8),
        )
    }

    /// The latest pair of clock readings.
    pub fn clock(&self) -> Option<ClockPoint> {
        self.clock_points().pop()
    }

    /// The pairs of clock readings still held, oldest first.
    pub fn clock_points(&self) -> Vec<ClockPoint> {
        clock_points(&self.words)
    }
}
