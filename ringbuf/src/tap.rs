//! The writing side of a whole segment, as callbacks use it. Everything here can be called from any thread, in any
//! callback: it takes no lock, makes no system call, allocates nothing and never waits.

use crate::{
    attach::Attached,
    backing::create::Created,
    header::{counters::Counter, identity::Identity, status::StatusWriter},
    lane::{
        directory::{Entered, LaneDirectory, Refused},
        writer::{LaneWriter, TooLong},
    },
    layout::{LANE_HEADER_WORDS, Layout, SLOT_WORDS, STORE_CONTROL_WORDS},
    process,
    store::{
        EntryKind, content_xor,
        writer::{About, NoEntry, StoreWriter},
    },
    words::{MappedWords, Words, heap_words},
};

/// One segment, written by its own process. `W` is how its words are seen: as they are, or through something that
/// watches every access.
pub struct TapWriter<W: Words = MappedWords> {
    mapped: MappedWords,
    words: W,
    layout: Layout,
    pub(crate) directory: LaneDirectory<W>,
    lanes: Box<[LaneWriter<W>]>,
    pub(crate) cubins: Area<W>,
    pub(crate) definitions: Area<W>,
}

/// A store and its bytes.
pub(crate) struct Area<W: Words> {
    pub store: StoreWriter<W>,
    bytes: MappedWords,
}

/// A lane entered by the calling thread; at most one at a time.
pub struct Lane<'a, W: Words = MappedWords> {
    entered: Entered<'a, W>,
    writer: &'a LaneWriter<W>,
}

impl<W: Words> Lane<'_, W> {
    pub fn index(&self) -> usize {
        self.entered.index
    }

    /// As [`LaneWriter::write`].
    #[inline(always)]
    pub fn write(&self, kind: u16, payload: &[u64]) -> Result<(), TooLong> {
        self.writer.write(kind, payload)
    }
}

/// Which load a cubin comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModuleLoad {
    /// CUPTI's number of the module.
    pub module_id: u32,
    /// The address of the CUDA context: a number that tells contexts of one process apart, never followed.
    pub context: u64,
}

/// A copy is checked in pieces that stay in the first-level cache.
const PIECE_BYTES: usize = 16 << 10;

impl TapWriter {
    /// The writer of a segment that was just made. It can be read by nobody until [`TapWriter::publish`].
    pub fn new(created: &Created) -> TapWriter {
        TapWriter::seen_through(created, |words| words)
    }
}

impl<W: Words> TapWriter<W> {
    /// The same, with every part of the segment, and the private words beside it, seen through `view`.
    pub fn seen_through(created: &Created, view: impl Fn(MappedWords) -> W) -> TapWriter<W> {
        let (mapped, layout) = (created.words.clone(), created.layout);
        let sizes = layout.sizes;
        let part = |start: usize, len: usize| view(mapped.part(start, len));
        let lane = |i| {
            let header = part(layout.lane_header(i), LANE_HEADER_WORDS);
            LaneWriter::new(header, part(layout.lane_data(i), sizes.lane_words), sizes.lane_words)
        };
        let area = |control: usize, slots: usize, data: usize, size_bytes: usize| Area {
            store: StoreWriter::new(
                part(control, STORE_CONTROL_WORDS),
                part(control + STORE_CONTROL_WORDS, slots * SLOT_WORDS),
                slots,
                size_bytes,
            ),
            bytes: mapped.part(data, size_bytes / 8),
        };
        let directory = view(heap_words(LaneDirectory::<W>::words_needed(sizes.lanes)));
        TapWriter {
            directory: LaneDirectory::new(directory, sizes.lanes),
            lanes: (0..sizes.lanes).map(lane).collect(),
            cubins: area(layout.cubin_control, sizes.cubin_slots, layout.cubins, sizes.cubin_bytes),
            definitions: area(
                layout.definition_control,
                sizes.definition_slots,
                layout.definitions,
                sizes.definition_bytes,
            ),
            words: view(mapped.clone()),
            mapped,
            layout,
        }
    }

    /// Lets readers in.
    pub fn publish(&self) {
        Identity::publish(&self.words);
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The status block; to be used by one thread at a time.
    pub fn status(&self) -> StatusWriter<W> {
        StatusWriter::new(self.words.clone())
    }

    /// The same segment as its readers see it.
    pub fn as_reader(&self) -> Result<Attached, crate::header::identity::BadHeader> {
        Attached::new(self.mapped.clone(), self.mapped.len() as u64 * 8)
    }

    pub fn count(&self, counter: Counter, by: u64) {
        counter.add(&self.words, by);
    }

    pub fn counted(&self, counter: Counter) -> u64 {
        counter.read(&self.words)
    }

    pub fn raise_to(&self, counter: Counter, value: u64) {
        counter.raise_to(&self.words, value);
    }

    /// The lane of the calling thread, whose thread pointer is `thread` and whose id is `tid` (0 if unknown). The
    /// caller counts what it cannot write: [`Refused`] says as what.
    pub fn enter_lane(&self, thread: u64, tid: u64) -> Result<Lane<'_, W>, Refused> {
        let entered = self.directory.enter(thread, tid)?;
        let Some(writer) = self.lanes.get(entered.index) else { return Err(Refused::NoLane) };
        if entered.broken_off {
            writer.recover();
        }
        Ok(Lane { entered, writer })
    }

    /// Housekeeping: makes the lanes of threads that `is_gone` says no longer exist free for others; gives how many.
    pub(crate) fn free_lanes(&self, is_gone: impl Fn(u64) -> bool) -> usize {
        self.directory.free_lanes_of_the_dead(is_gone, |index| {
            if let Some(writer) = self.lanes.get(index) {
                writer.recover();
            }
        })
    }

    /// Stores the cubin of a load, once for equal bytes (twice where two threads load it at the same instant), and counts the load and what became of it.
    ///
    /// # Safety
    /// `image` points to `len` bytes that can be read and do not change during the call.
    pub unsafe fn store_cubin(&self, image: *const u8, len: usize, load: ModuleLoad) {
        self.count(Counter::ModuleLoads, 1);
        // SAFETY: the caller's promise.
        let same = |offset| unsafe { self.cubins.holds(offset, image, len) };
        // SAFETY: the caller's promise.
        let bytes_xor = || content_xor(unsafe { bytes_of(image, len) });
        if let Some(slot) = self.cubins.store.find(len as u64, bytes_xor, same) {
            self.cubins.store.used_again(slot);
            return self.count(Counter::ModuleDuplicates, 1);
        }
        // SAFETY: the caller's promise.
        let stored = unsafe { self.cubins.put(EntryKind::Cubin, image, len, u64::from(load.module_id), load.context) };
        let refused = match stored {
            Ok(_) => return self.count(Counter::CubinBytes, len as u64),
            Err(NoEntry::Full) => Counter::ModulesFull,
            Err(NoEntry::NotReserved) => Counter::ModulesNotReserved,
            Err(NoEntry::Contended) => Counter::ModulesContended,
        };
        self.count(refused, 1);
        self.cubins.store.refuse(len as u64, process::monotonic_ns(), u64::from(load.module_id));
    }

    /// Stores a kernel's name and gives its slot; `None`, counted, where there is no room.
    pub fn store_kernel_name(&self, name: &[u8], full_len: u64) -> Option<u32> {
        self.define(EntryKind::KernelName, name, full_len)
    }

    /// Stores another text and gives its slot; `None`, counted, where the texts, which an application makes up as it
    /// runs, would take more than half of what the names of its kernels need, too.
    pub fn store_text(&self, text: &[u8], full_len: u64) -> Option<u32> {
        if self.definitions.store.is_half_full() {
            self.count(Counter::NamesLost, 1);
            return None;
        }
        self.define(EntryKind::Text, text, full_len)
    }

    fn define(&self, kind: EntryKind, bytes: &[u8], full_len: u64) -> Option<u32> {
        // SAFETY: the slice can be read and does not change.
        let stored = unsafe { self.definitions.put(kind, bytes.as_ptr(), bytes.len(), full_len, 0) };
        if stored.is_err() {
            self.count(Counter::NamesLost, 1);
        }
        stored.ok()
    }

    /// Whether the definition in `slot`, if it is `len` bytes long, holds `bytes`: compares with the stored copy.
    pub fn is_name(&self, slot: u32, bytes: &[u8]) -> bool {
        let Some((offset, len)) = self.definitions.store.ready(slot) else { return false };
        // SAFETY: the slice can be read and does not change.
        len == bytes.len() as u64 && unsafe { self.definitions.holds(offset, bytes.as_ptr(), bytes.len()) }
    }
}

/// # Safety
/// `bytes` points to `len` bytes that can be read and do not change while the slice is used; of no bytes it may point
/// anywhere.
unsafe fn bytes_of<'a>(bytes: *const u8, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise; what can be read is no null pointer.
    unsafe { std::slice::from_raw_parts(bytes, len) }
}

impl<W: Words> Area<W> {
    /// # Safety
    /// `bytes` points to `len` bytes that can be read and do not change during the call.
    unsafe fn holds(&self, offset_bytes: u64, bytes: *const u8, len: usize) -> bool {
        let Some(stored) = self.bytes.bytes_at(offset_bytes as usize, len) else { return false };
        // SAFETY: `stored` has `len` mapped bytes that only this process writes and never again after READY, which
        // the caller has seen; `bytes` is the caller's promise.
        unsafe { libc::memcmp(stored.as_ptr().cast(), bytes.cast(), len) == 0 }
    }

    /// # Safety
    /// `bytes` points to `len` bytes that can be read and do not change during the call.
    unsafe fn put(&self, kind: EntryKind, bytes: *const u8, len: usize, a: u64, b: u64) -> Result<u32, NoEntry> {
        let entry = self.store.allocate(kind, len as u64)?;
        let Some(to) = self.bytes.bytes_at(entry.offset_bytes as usize, len) else { return Err(NoEntry::Full) };
        let mut xor = 0;
        for start in (0..len).step_by(PIECE_BYTES) {
            let piece_len = PIECE_BYTES.min(len - start);
            // SAFETY: `start + piece_len <= len`. `to` is room that was just allocated to this call alone, below
            // RESERVED_BYTES, so its pages are there; `bytes` is the caller's promise; they cannot overlap, since the
            // room was nobody's before.
            let piece = unsafe {
                std::ptr::copy_nonoverlapping(bytes.add(start), to.as_ptr().add(start), piece_len);
                std::slice::from_raw_parts(bytes.add(start), piece_len)
            };
            xor ^= content_xor(piece);
        }
        Ok(self.store.publish(entry, About { content_xor: xor, first_ns: process::monotonic_ns(), a, b }))
    }
}
