//! The process that is struck: a tap, threads that write into it, and the housekeeping thread (its first), which also
//! starts a new thread where one has ended. It runs until it is killed.

use std::{ffi::CString, io, path::PathBuf, time::Duration};

use gputap_ringbuf::{
    attach::MappedFile,
    backing::create::{BackingChoice, create},
    control::{Answer, CONTROL_BYTES, server::ControlServer},
    header::{
        counters::Counter,
        identity::Backing,
        status::{ClockPoint, Reason, State},
    },
    housekeeping::{Ahead, Housekeeper, Step},
    layout::{CHUNK_WORDS, Sizes},
    process,
    tap::TapWriter,
    words::MappedWords,
};

use super::{
    generator::{self, GENERATORS, Generators},
    pattern,
    plan::{Did, MAX_STREAMS, MAX_TAPS, Number, Plan},
    random::Random,
    strike,
    watched::{Watch, WatchedWords},
};

/// Small, so that everything comes to its end within a round: lanes are lapped, stores fill.
const SIZES: Sizes = Sizes {
    lanes: 8,
    lane_words: 4 * CHUNK_WORDS,
    cubin_slots: 64,
    cubin_bytes: 1 << 20,
    definition_slots: 1024,
    definition_bytes: 128 << 10,
};
const AHEAD: Ahead = Ahead { lanes: 2, cubin_bytes: 128 << 10, definition_bytes: 64 << 10, step_bytes: 64 << 10 };

/// A thread that writes, and the one to take its place when it has ended.
struct Seat {
    handle: libc::pthread_t,
    generation: usize,
    pointer: libc::pthread_t,
}

struct Writer {
    plan: Plan,
    tap_number: usize,
    all: &'static Generators,
    housekeeper: Housekeeper,
    control: ControlServer<WatchedWords>,
    random: Random,
    turn: u64,
}

/// `program` and `role` start this writer again.
pub fn run(program: &str, role: &str, fd: i32) -> io::Result<()> {
    let plan = Plan::open(fd)?;
    let again = [program.to_owned(), role.to_owned(), fd.to_string()].map(|s| CString::new(s).unwrap_or_default());
    strike::prepare(again);
    let mut writer = Writer::begin(plan).map_err(io::Error::other)?;
    let seats = writer.plan.number(Number::Generators);
    let mut seats: Vec<Option<Seat>> = (0..seats).map(|_| None).collect();
    loop {
        writer.turn(&mut seats);
    }
}

impl Writer {
    fn begin(plan: Plan) -> Result<Writer, Box<dyn std::error::Error + Send + Sync>> {
        let tap_number = plan.add(Number::Taps) as usize;
        if tap_number >= MAX_TAPS {
            return Err("too many taps in a round".into());
        }
        let watch = Watch::of_this_process(&plan);
        let backing = if plan.number(Number::Memfd) == 1 { Backing::Memfd } else { Backing::Shm };
        let sizes = Sizes { lanes: plan.number(Number::Lanes) as usize, ..SIZES };
        let created = create(sizes, BackingChoice::Only(backing))?;
        plan.set_nonce(tap_number, created.identity.nonce);
        let seen = |words: MappedWords| WatchedWords::new(words, watch);
        // Once more, as `create` did it, so that the storm sees it done.
        created.identity.write(&seen(created.words.clone()), &sizes);
        let (pid, nonce) = (created.identity.pid, created.identity.nonce);
        let control = ControlServer::new(seen(control_of_this_process(nonce)?), nonce, pid);
        let tap = TapWriter::seen_through(&created, seen);
        let mut housekeeper = Housekeeper::new(created.reserver, AHEAD);
        while let Step::Reserved = housekeeper.step(&tap) {}
        tap.status().set_state(State::Idle, Reason::None, &pattern::text(0));
        tap.publish();
        plan.add(Number::Published);
        let images = (0..pattern::IMAGES).map(pattern::image).collect();
        let all = Generators { plan: plan.clone(), tap, images };
        let all = GENERATORS.get_or_init(|| all);
        let random = Random::new(plan.number(Number::Seed), &[plan.number(Number::Round), 2, tap_number as u64]);
        Ok(Writer { plan, tap_number, all, housekeeper, control, random, turn: 0 })
    }

    fn turn(&mut self, seats: &mut [Option<Seat>]) {
        self.turn += 1;
        let tap = &self.all.tap;
        // `Short` is as good as `Enough` here: what cannot be had is refused and counted.
        let _ = self.housekeeper.step(tap);
        self.tell();
        // Ages are told to the control object as if a millisecond were 50: leases of the dead lapse within the round.
        let wishes = self.control.poll(process::monotonic_ns().wrapping_mul(50));
        wishes.commands.into_iter().for_each(|command| self.control.answer(command, Answer::Done));
        if self.turn.is_multiple_of(4) {
            generator::come_too_late_for_a_lane();
            self.housekeeper.free_lanes(tap, process::has_no_thread);
        } else if self.random.in_100(50) {
            self.housekeeper.free_lanes(tap, process::has_no_thread);
        }
        for seat in seats {
            let ended = seat.as_ref().is_none_or(|s| self.has_ended(s));
            // Left empty for a while now and then, so that housekeeping frees the lane before there is an heir.
            if ended && self.random.in_100(60) {
                *seat = self.fill(seat.take());
            }
        }
        std::thread::sleep(Duration::from_micros(200 + self.random.below(400)));
    }

    fn tell(&mut self) {
        let status = self.all.tap.status();
        status.beat(process::monotonic_ns());
        match self.turn % 4 {
            0 => status.set_state(State::Recording, Reason::None, &pattern::text(self.turn)),
            1 => {
                let monotonic_ns = process::monotonic_ns();
                let (realtime_ns, error_ns) = (pattern::realtime_of(monotonic_ns), monotonic_ns % 1000);
                status.add_clock_point(ClockPoint { monotonic_ns, realtime_ns, error_ns });
            }
            2 => status.set_kinds(self.turn),
            _ => self.all.tap.raise_to(Counter::FlushMaxNs, process::monotonic_ns()),
        }
    }

    fn has_ended(&self, seat: &Seat) -> bool {
        let stream = 2 * seat.generation;
        self.plan.did(stream, Did::Running) == 1 && process::has_no_thread(self.plan.did(stream, Did::Tid))
    }

    /// Joins the thread that has ended, and starts the next: it gets the same stack, and with it the thread pointer.
    fn fill(&mut self, ended: Option<Seat>) -> Option<Seat> {
        if let Some(ended) = &ended {
            // SAFETY: the handle is of a thread that was made joinable and is joined once, here.
            unsafe { libc::pthread_join(ended.handle, std::ptr::null_mut()) };
        }
        let generation = self.plan.number(Number::Generations) as usize;
        if 2 * generation + 1 >= MAX_STREAMS {
            return None;
        }
        self.plan.set_did(2 * generation, Did::Tap, self.tap_number as u64);
        self.plan.set_did(2 * generation + 1, Did::Tap, self.tap_number as u64);
        self.plan.add(Number::Generations);
        let handle = start(generation)?;
        let pointer = handle;
        if ended.is_some_and(|ended| ended.pointer == pointer) {
            self.plan.add(Number::Inherited);
        }
        Some(Seat { handle, generation, pointer })
    }
}

/// The control object that was just made, mapped once more.
fn control_of_this_process(nonce: u64) -> Result<MappedWords, Box<dyn std::error::Error + Send + Sync>> {
    let descriptors = std::fs::read_dir("/proc/self/fd")?.flatten().map(|entry| entry.path());
    let objects = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        let target = std::fs::read_link(path).unwrap_or_else(|_| path.clone());
        target.to_string_lossy().trim_end_matches(" (deleted)").ends_with(&format!("-{nonce:016x}.ctl"))
    };
    let path = objects.chain(descriptors).find(is_it).ok_or("there is no control object")?;
    Ok(MappedFile::open_writable(&path, CONTROL_BYTES)?)
}

extern "C" fn generate(generation: *mut libc::c_void) -> *mut libc::c_void {
    generator::run(generation as usize);
    std::ptr::null_mut()
}

/// By the C library itself, whose threads Rust's would hide: these end without a word.
fn start(generation: usize) -> Option<libc::pthread_t> {
    let mut handle: libc::pthread_t = 0;
    let argument = generation as *mut libc::c_void;
    // SAFETY: `handle` may be written; the argument is a number, not followed.
    let failed = unsafe { libc::pthread_create(&mut handle, std::ptr::null(), generate, argument) } != 0;
    (!failed).then_some(handle)
}
