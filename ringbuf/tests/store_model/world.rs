//! A store, its writers and its readers, all on one thread of the test.

use crate::interrupted::{Interrupt, Interrupted, Plan};
use gputap_ringbuf::{
    layout::{SLOT_WORDS, STORE_CONTROL_WORDS},
    store::{
        ENTRY_ALIGN_BYTES, EntryKind, MAX_ENTRY_BYTES, control,
        reader::{Entry, StoreReader},
        writer::{About, Allocated, NoEntry, StoreWriter},
    },
    sync::Ordering,
    words::{MappedWords, ReadWords, heap_words},
};
use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

/// Something that one writer, housekeeping or a reader does. Numbers are modulo how many there are.
#[derive(Clone, Debug)]
pub enum Step {
    /// Takes room for so many bytes.
    Allocate(u64),
    /// Takes all the room that is reserved, but so many bytes.
    AllocateRest(u64),
    /// Copies and shows what was allocated.
    Publish(usize),
    /// A writer ends before it shows what it allocated.
    End(usize),
    UseAgain(usize),
    /// Notes that a cubin of that size was refused.
    Refuse(u64),
    /// Housekeeping reserves so many bytes more.
    Reserve(u64),
    Attach,
    Read {
        reader: usize,
        most: usize,
    },
}

/// A step, what comes between two of its accesses, and before which its thread ends.
#[derive(Clone, Debug)]
pub struct Op {
    pub step: Step,
    pub interrupt: Option<(u64, Step)>,
    pub end_before: Option<u64>,
}

/// What a whole schedule came to.
#[derive(Debug, Default)]
pub struct Summary {
    pub ready: u64,
    pub unfinished: u64,
    pub ended_inside: u64,
    pub full: u64,
    pub not_reserved: u64,
    pub exactly_full: u64,
    pub noted: u64,
}

impl Summary {
    pub fn add(&mut self, other: Summary) {
        self.ready += other.ready;
        self.unfinished += other.unfinished;
        self.ended_inside += other.ended_inside;
        self.full += other.full;
        self.not_reserved += other.not_reserved;
        self.exactly_full += other.exactly_full;
        self.noted += other.noted;
    }
}

/// A finished entry, as readers have to find it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ready {
    bytes: Vec<u8>,
    about: About,
    uses: u64,
}

struct Reader {
    store: StoreReader<MappedWords>,
    seen: BTreeSet<u32>,
}

pub struct World {
    control: MappedWords,
    slots: MappedWords,
    bytes: MappedWords,
    slot_count: usize,
    writer: StoreWriter<Interrupted>,
    plan: Rc<Plan>,
    pending: RefCell<Vec<Allocated>>,
    /// First byte and size of all that was ever allocated.
    taken: RefCell<BTreeMap<u64, u64>>,
    ready: RefCell<BTreeMap<u32, Ready>>,
    noted: RefCell<BTreeMap<u64, u64>>,
    readers: RefCell<Vec<Reader>>,
    summary: RefCell<Summary>,
    next_seed: Cell<u64>,
}

impl World {
    pub fn new(slot_count: usize, area_bytes: u64) -> World {
        let plan = Rc::new(Plan::default());
        let (control, slots) = (heap_words(STORE_CONTROL_WORDS), heap_words(slot_count * SLOT_WORDS));
        let seen = |words: &MappedWords| Interrupted::new(words.clone(), &plan);
        let writer = StoreWriter::new(seen(&control), seen(&slots), slot_count, area_bytes as usize);
        let world = World {
            control,
            slots,
            bytes: heap_words(area_bytes as usize / 8),
            slot_count,
            writer,
            plan,
            pending: RefCell::default(),
            taken: RefCell::default(),
            ready: RefCell::default(),
            noted: RefCell::default(),
            readers: RefCell::default(),
            summary: RefCell::default(),
            next_seed: Cell::new(1),
        };
        world.attach();
        world
    }

    pub fn perform(&self, op: &Op) {
        let interrupt = op.interrupt.as_ref().map(|(before, step)| {
            let what = move || self.plan.aside(|| self.step(step));
            Interrupt { before: *before, what: Box::new(what) }
        });
        // Of those who note what was refused, none ends inside: what they noted would be known to nobody.
        let ends = matches!(op.step, Step::Allocate(_) | Step::AllocateRest(_) | Step::Publish(_));
        let interrupt = interrupt.filter(|_| !matches!(op.step, Step::Refuse(_)));
        let done = self.plan.run(op.end_before.filter(|_| ends), interrupt, || self.step(&op.step));
        self.summary.borrow_mut().ended_inside += u64::from(done.is_none());
    }

    fn step(&self, step: &Step) {
        match *step {
            Step::Allocate(len_bytes) => self.allocate(len_bytes),
            Step::AllocateRest(left) => {
                let rest = self.writer.reserved_bytes().saturating_sub(self.writer.used_bytes());
                self.allocate(rest.saturating_sub(left));
            }
            Step::Publish(which) => self.pending(which).into_iter().for_each(|entry| self.publish(entry)),
            Step::End(which) => drop(self.pending(which)),
            Step::UseAgain(which) => self.use_again(which),
            Step::Refuse(len_bytes) => self.refuse(len_bytes),
            Step::Reserve(bytes) => self.reserve(bytes),
            Step::Attach => self.attach(),
            Step::Read { reader, most } => self.read(reader, most),
        }
    }

    fn allocate(&self, len_bytes: u64) {
        let before = self.expected(len_bytes);
        let result = self.writer.allocate(EntryKind::Cubin, len_bytes);
        let after = self.expected(len_bytes);
        let mut summary = self.summary.borrow_mut();
        match result {
            Ok(entry) => {
                drop(summary);
                self.take(&entry, len_bytes);
                self.pending.borrow_mut().push(entry);
            }
            // Refused for what was so when it began, or has become so meanwhile.
            Err(why) => {
                assert!(Some(why) == before || Some(why) == after, "{why:?}, not {before:?} or {after:?}");
                summary.full += u64::from(why == NoEntry::Full);
                summary.not_reserved += u64::from(why == NoEntry::NotReserved);
            }
        }
    }

    /// Why an allocation would be refused now.
    fn expected(&self, len_bytes: u64) -> Option<NoEntry> {
        let get = |word| self.control.load(word, Ordering::Relaxed);
        let (cursor, reserved) = (get(control::CURSOR_BYTES), get(control::RESERVED_BYTES));
        let size = len_bytes.next_multiple_of(ENTRY_ALIGN_BYTES);
        let slots_for_bytes = (self.slot_count - self.slot_count / 8) as u64;
        let no_slot = get(control::NEXT_SLOT) >= slots_for_bytes;
        if no_slot || len_bytes > MAX_ENTRY_BYTES || cursor + size > self.bytes.len() as u64 * 8 {
            return Some(NoEntry::Full);
        }
        (cursor + size > reserved).then_some(NoEntry::NotReserved)
    }

    /// Fails if the room is not the entry's alone, or nobody has reserved it.
    fn take(&self, entry: &Allocated, len_bytes: u64) {
        let (start, end) = (entry.offset_bytes, entry.offset_bytes + len_bytes);
        assert!(start.is_multiple_of(ENTRY_ALIGN_BYTES) && entry.len_bytes == len_bytes, "{entry:?}");
        assert!(end <= self.control.load(control::RESERVED_BYTES, Ordering::Relaxed), "{entry:?}");
        let overlaps = |(other, len): (&u64, &u64)| start < other + len && *other < end;
        assert!(!self.taken.borrow().iter().any(overlaps), "{entry:?} in {:?}", self.taken);
        if len_bytes > 0 {
            self.taken.borrow_mut().insert(start, len_bytes);
        }
        let is_full = end.next_multiple_of(ENTRY_ALIGN_BYTES) == self.bytes.len() as u64 * 8;
        self.summary.borrow_mut().exactly_full += u64::from(is_full && len_bytes > 0);
    }

    fn pending(&self, which: usize) -> Option<Allocated> {
        let mut pending = self.pending.borrow_mut();
        let count = pending.len();
        (count > 0).then(|| pending.swap_remove(which % count))
    }

    fn publish(&self, entry: Allocated) {
        let seed = self.next_seed.replace(self.next_seed.get() + 1);
        let bytes: Vec<u8> = (0..entry.len_bytes).map(|i| (seed * 37 + i * (seed | 1)) as u8).collect();
        let to = self.bytes.bytes_at(entry.offset_bytes as usize, bytes.len()).unwrap();
        // SAFETY: `bytes_at` checked the room, which is this entry's alone (`take`).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
        let about = About { content_xor: xor(&bytes), first_ns: seed, a: seed << 40, b: !seed };
        let slot = self.writer.publish(entry, about);
        let is_new = self.ready.borrow_mut().insert(slot, Ready { bytes, about, uses: 1 }).is_none();
        assert!(is_new, "slot {slot} was given twice");
    }

    fn use_again(&self, which: usize) {
        let slots: Vec<u32> = self.ready.borrow().keys().copied().collect();
        if let Some(slot) = slots.get(which % slots.len().max(1)) {
            self.writer.used_again(*slot);
            self.ready.borrow_mut().get_mut(slot).unwrap().uses += 1;
        }
    }

    fn refuse(&self, len_bytes: u64) {
        let is_known = self.noted.borrow().contains_key(&len_bytes);
        let has_slot = self.control.load(control::NEXT_SLOT, Ordering::Relaxed) < self.slot_count as u64;
        self.writer.refuse(len_bytes, 1, 2);
        if is_known || has_slot {
            *self.noted.borrow_mut().entry(len_bytes).or_default() += 1;
        }
    }

    fn reserve(&self, bytes: u64) {
        let reserved = (self.writer.reserved_bytes() + bytes).min(self.writer.capacity_bytes());
        self.writer.set_reserved(reserved);
    }

    fn attach(&self) {
        let (control, slots) = (self.control.clone(), self.slots.clone());
        let store = StoreReader::new(control, slots, self.slot_count, self.bytes.clone());
        self.readers.borrow_mut().push(Reader { store, seen: BTreeSet::new() });
    }

    fn read(&self, reader: usize, most: usize) {
        let mut readers = self.readers.borrow_mut();
        let count = readers.len();
        let Reader { store, seen } = &mut readers[reader % count];
        for entry in std::iter::from_fn(|| store.next_entry()).take(most).collect::<Vec<_>>() {
            assert!(seen.insert(entry.slot), "{entry:?} came twice");
            self.check(store, &entry);
        }
    }

    /// Fails unless this is the entry that was shown in its slot.
    fn check(&self, store: &StoreReader<MappedWords>, entry: &Entry) {
        if entry.kind == EntryKind::RefusedCubin as u16 {
            assert!(entry.len_bytes == 0 && self.noted.borrow().contains_key(&entry.b), "{entry:?}");
            return;
        }
        let ready = self.ready.borrow();
        let expected = ready.get(&entry.slot).unwrap_or_else(|| panic!("{entry:?} was not finished"));
        let about = expected.about;
        assert_eq!((entry.first_ns, entry.a, entry.b), (about.first_ns, about.a, about.b));
        assert!(store.read(entry).as_ref() == Ok(&expected.bytes), "{entry:?}");
    }

    /// Every reader comes to the end; writers that have not finished never do.
    pub fn finish(self) -> Summary {
        self.attach();
        let readers = self.readers.borrow().len();
        for reader in 0..readers {
            // A second pass, for what became ready behind the first one's back.
            (0..2).for_each(|_| self.read(reader, usize::MAX));
            let Reader { store, seen } = &self.readers.borrow()[reader];
            let kind_of = |slot: u32| store.entry(slot).unwrap().kind;
            let cubins = seen.iter().copied().filter(|slot| kind_of(*slot) == EntryKind::Cubin as u16);
            assert!(cubins.eq(self.ready.borrow().keys().copied()), "reader {reader} has not had all");
            self.check_uses(store, seen);
            assert_eq!(store.invalid, 0);
        }
        let used = self.control.load(control::NEXT_SLOT, Ordering::Relaxed).min(self.slot_count as u64);
        let (ready, noted) = (self.ready.borrow().len() as u64, self.noted.borrow().len() as u64);
        let unfinished = used - ready - noted;
        assert_eq!(self.readers.borrow()[0].store.unfinished() as u64, unfinished);
        Summary { ready, unfinished, noted, ..self.summary.take() }
    }

    fn check_uses(&self, store: &StoreReader<MappedWords>, seen: &BTreeSet<u32>) {
        for entry in seen.iter().filter_map(|slot| store.entry(*slot)) {
            let is_note = entry.kind == EntryKind::RefusedCubin as u16;
            let expected = if is_note { self.noted.borrow()[&entry.b] } else { self.ready.borrow()[&entry.slot].uses };
            assert_eq!(entry.uses, expected, "{entry:?}");
        }
    }
}

/// The exclusive or of the bytes as words, the last one filled up with zeros.
fn xor(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().fold(0, |all, (i, byte)| all ^ u64::from(*byte) << (i % 8 * 8))
}
