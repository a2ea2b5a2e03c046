//! A tap made in this process through the writing side of the shared memory, as the shim makes one.

use gputap_reader::clock::Now;
use gputap_reader::session::{EventSink, Options, Progress, Session};
use gputap_ringbuf::backing::create::{BackingChoice, create};
use gputap_ringbuf::control::server::ControlServer;
use gputap_ringbuf::discover::{Found, discover};
use gputap_ringbuf::event::{Event, KernelEvent};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::identity::Backing;
use gputap_ringbuf::header::status::{Reason, State};
use gputap_ringbuf::housekeeping::{Ahead, Housekeeper, Step};
use gputap_ringbuf::layout::{CHUNK_WORDS, Sizes};
use gputap_ringbuf::tap::{ModuleLoad, TapWriter};
use gputap_ringbuf::words::MappedWords;
use std::time::{Duration, Instant};

pub const SIZES: Sizes = Sizes {
    lanes: 4,
    lane_words: 8 * CHUNK_WORDS,
    cubin_slots: 64,
    cubin_bytes: 4 << 20,
    definition_slots: 4096,
    definition_bytes: 1 << 20,
};

pub struct Tap {
    pub writer: TapWriter,
    pub control: ControlServer<MappedWords>,
    pub found: Found,
    housekeeper: Housekeeper,
}

impl Tap {
    pub fn new(backing: Backing) -> Tap {
        let created = create(SIZES, BackingChoice::Only(backing)).expect("room for a small segment");
        let writer = TapWriter::new(&created);
        let status = writer.status();
        status.set_state(State::Idle, Reason::None, "");
        status.set_cupti(130001, "/opt/libcupti.so.13");
        status.beat(Now::read().monotonic_ns);
        let ahead = Ahead { lanes: SIZES.lanes, cubin_bytes: 4 << 20, definition_bytes: 1 << 20, step_bytes: 8 << 20 };
        let mut housekeeper = Housekeeper::new(created.reserver, ahead);
        while matches!(housekeeper.step(&writer), Step::Reserved) {}
        writer.publish();
        let nonce = format!("{:016x}", created.identity.nonce);
        let is_ours = |found: &Found| match backing {
            Backing::Shm => found.segment.to_string_lossy().contains(&nonce),
            Backing::Memfd => {
                std::fs::read_link(&found.segment).is_ok_and(|target| target.to_string_lossy().contains(&nonce))
            }
        };
        let mut found = discover().into_iter().find(is_ours).expect("a tap that was just published is found");
        // Tests side by side make several in this process, of which only the newest counts as living.
        found.alive = true;
        Tap { writer, control: created.control, found, housekeeper }
    }

    pub fn beat(&mut self, now: Now) {
        self.writer.status().beat(now.monotonic_ns);
        while matches!(self.housekeeper.step(&self.writer), Step::Reserved) {}
    }

    pub fn name(&self, mangled: &[u8]) -> u32 {
        self.writer.store_kernel_name(mangled, mangled.len() as u64).expect("room for a name")
    }

    pub fn cubin(&self, bytes: &[u8]) {
        // SAFETY: the slice is `len` readable bytes that do not change during the call.
        unsafe { self.writer.store_cubin(bytes.as_ptr(), bytes.len(), ModuleLoad::default()) };
    }

    /// Writes a record as the thread whose thread pointer is `thread`, or counts it as lost as the shim does.
    pub fn write(&self, thread: u64, event: &Event) {
        let Ok(lane) = self.writer.enter_lane(thread, thread) else { return self.writer.count(Counter::NoLane, 1) };
        event.encode(|words| lane.write(event.kind() as u16, words)).expect("events are short");
    }

    pub fn write_raw(&self, thread: u64, kind: u16, words: &[u64]) {
        let lane = self.writer.enter_lane(thread, thread).expect("a lane");
        lane.write(kind, words).expect("short");
    }

    pub fn session(&self) -> Session {
        Session::open(&self.found, options(), Now::read()).expect("the tap can be read")
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        if self.found.segment.starts_with("/dev/shm") {
            let _ = std::fs::remove_file(&self.found.segment);
            let _ = std::fs::remove_file(&self.found.control);
        }
    }
}

/// Without CUPTI's checksums: `crc.rs` tests those.
pub fn options() -> Options {
    Options { kinds: gputap_ringbuf::event::BASIC_KINDS, cupti_crc: None }
}

pub fn kernel(name_id: u32, start_ns: u64, end_ns: u64) -> Event {
    Event::Kernel(KernelEvent { name_id, start_ns, end_ns, grid: [1, 2, 3], block: [4, 5, 6], ..Default::default() })
}

/// Steps until nothing more is there.
pub fn drain(session: &mut Session, sink: &mut dyn EventSink) -> Progress {
    step_until(session, sink, |progress| !progress.more)
}

/// Steps until `is_done`, within a deadline.
pub fn step_until(session: &mut Session, sink: &mut dyn EventSink, is_done: impl Fn(&Progress) -> bool) -> Progress {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let progress = session.step(Now::read(), sink).expect("the sink takes all");
        if is_done(&progress) {
            return progress;
        }
        assert!(Instant::now() < deadline, "not done in a minute: {progress:?}");
        std::thread::yield_now();
    }
}
