//! A thread that writes records, images and names, and counts outside the segment what it attempts. Inside its loop it
//! allocates nothing and holds no lock: it may be ended at any instruction.

use std::{cell::Cell, sync::OnceLock, time::Duration};

use gputap_ringbuf::{
    header::counters::Counter,
    lane::{MAX_PAYLOAD_WORDS, directory::Refused},
    process,
    tap::{ModuleLoad, TapWriter},
};

use super::{
    pattern::{self, RecordId},
    plan::{Did, Number, Plan},
    random::Random,
    strike,
    watched::{self, WatchedWords},
};

/// What the generators of a process write into.
pub struct Generators {
    pub plan: Plan,
    pub tap: TapWriter<WatchedWords>,
    pub images: Vec<Vec<u8>>,
}

pub static GENERATORS: OnceLock<Generators> = OnceLock::new();

thread_local! {
    /// The stream of this thread's signal handler, and how many records are in it. No destructor, no registration.
    static NESTED: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
}

/// A thread's records, numbered.
struct Stream {
    id: u32,
    next: u32,
    pointer: u64,
    tid: u64,
}

/// The thread pointer, which glibc gives as the thread's name.
pub fn thread_pointer() -> u64 {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as u64 }
}

/// Writes for ever, as the given generation of threads.
pub fn run(generation: usize) {
    let Some(all) = GENERATORS.get() else { return };
    let (own, nested) = (2 * generation, 2 * generation + 1);
    NESTED.set((nested as u32, 0));
    strike::is_a_writer();
    let (pointer, tid) = (thread_pointer(), strike::own_tid());
    let mut stream = Stream { id: own as u32, next: 0, pointer, tid };
    all.plan.set_did(own, Did::Tid, tid);
    all.plan.set_did(own, Did::Running, 1);
    let seed = all.plan.number(Number::Seed);
    let mut random = Random::new(seed, &[all.plan.number(Number::Round), 1, generation as u64]);
    let mut payload = [0; MAX_PAYLOAD_WORDS];
    loop {
        match random.below(1000) {
            0..20 => all.load(own, &mut random),
            20..40 => all.store_name(own, &mut random),
            40..100 => std::thread::sleep(Duration::from_micros(random.below(1000))),
            _ => all.write(&mut stream, 1 + random.below(8), &mut payload),
        }
    }
}

/// A record of this thread, from inside a signal handler.
pub fn write_from_a_handler() {
    let Some(all) = GENERATORS.get() else { return };
    let (id, next) = NESTED.get();
    let mut stream = Stream { id, next, pointer: thread_pointer(), tid: strike::own_tid() };
    // Too small for the longest records, so that the handler needs no large stack: it takes the next short one.
    let mut payload = [0; 64];
    while (RecordId { stream: id, number: stream.next }).len() > payload.len() {
        stream.next += 1;
    }
    all.write(&mut stream, 1, &mut payload);
    NESTED.set((id, stream.next));
    all.plan.add(Number::NestedDone);
}

/// Threads that never were: no thread pointer is as low, no thread id as high.
const LATE: (u64, u64) = (3, 0x7fff_0003);
const FASTER: (u64, u64) = (2, 0x7fff_0002);

/// A thread sees that a lane is free; before it takes it, another has claimed it, written nothing and gone. Housekeeping
/// frees what both got.
pub fn come_too_late_for_a_lane() {
    fn enter((pointer, tid): (u64, u64)) {
        if let Some(all) = GENERATORS.get() {
            let _ = all.tap.enter_lane(pointer, tid);
        }
    }
    watched::in_the_middle_of_a_claim(|| enter(FASTER), || enter(LATE));
}

impl Generators {
    /// Writes up to `count` records while it holds its lane.
    fn write(&self, stream: &mut Stream, count: u64, payload: &mut [u64]) {
        let id = stream.id as usize;
        self.plan.does(id, Did::Attempted);
        match self.tap.enter_lane(stream.pointer, stream.tid) {
            Ok(lane) => {
                for more in (0..count).rev() {
                    let record = RecordId { stream: stream.id, number: stream.next };
                    let written = lane.write(record.kind(), record.fill(payload));
                    assert_eq!(written, Ok(()), "{record:?}");
                    stream.next += 1;
                    self.plan.does(id, Did::Done);
                    if more > 0 {
                        self.plan.does(id, Did::Attempted);
                    }
                }
            }
            Err(refused) => {
                let as_what = match refused {
                    Refused::NoLane => Counter::NoLane,
                    Refused::Nested => Counter::Nested,
                };
                self.tap.count(as_what, 1);
                self.plan.does(id, Did::Refused);
                self.plan.does(id, Did::Done);
            }
        }
    }

    fn load(&self, stream: usize, random: &mut Random) {
        let id = random.below(self.images.len() as u64);
        let image = &self.images[id as usize];
        self.plan.does(stream, Did::LoadsAttempted);
        let load = ModuleLoad { module_id: id as u32, context: 7 };
        // SAFETY: the image is never changed.
        unsafe { self.tap.store_cubin(image.as_ptr(), image.len(), load) };
        self.plan.does(stream, Did::LoadsDone);
    }

    fn store_name(&self, stream: usize, random: &mut Random) {
        let (bytes, len) = pattern::name(random.next());
        self.plan.does(stream, Did::NamesAttempted);
        if let Some(slot) = self.tap.store_kernel_name(&bytes[..len], len as u64) {
            assert!(self.tap.is_name(slot, &bytes[..len]), "name in slot {slot}");
        }
        self.plan.does(stream, Did::NamesDone);
        self.tap.raise_to(Counter::FlushMaxNs, process::monotonic_ns());
    }
}
