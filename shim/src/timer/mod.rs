//! The timer thread: the only one that calls CUPTI outside callbacks. In turns, it keeps room ready ahead of the
//! writers, follows the readers' wishes and commands, flushes, and says that it is alive.

mod clock;
mod guard;
mod kinds;
mod notes;
mod recording;
mod selftest;

pub use notes::Notes;

use self::{
    guard::Guard,
    recording::{Recorder, Standing},
};
use crate::{driver, exit, library::Cupti, settings::Settings};
use gputap_callbacks::{
    tapped::Tapped,
    thread::{self, Candidates},
};
use gputap_ringbuf::{
    control::server::ControlServer,
    header::{counters::Counter, status::State},
    housekeeping::{Housekeeper, Step},
    process::{self, monotonic_ns},
    words::MappedWords,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Free buffers kept ready for CUPTI.
const BUFFERS_AHEAD: usize = 24;
/// Steps of reserving in one turn: 64 MiB, some 30 ms.
const STEPS_A_TURN: usize = 8;
/// Between two turns at most. Modules come faster only in bursts that the room ahead absorbs.
const LONGEST_REST: Duration = Duration::from_millis(10);
const SECOND_NS: u64 = 1_000_000_000;

/// Everything that the timer thread owns.
pub struct Timer {
    tapped: &'static Tapped,
    control: ControlServer<MappedWords>,
    housekeeper: Housekeeper,
    recorder: Recorder,
    rest: Duration,
    next_second_ns: u64,
    starter: Candidates,
    short: bool,
}

impl Timer {
    /// Start-up: makes the guard, subscribes unless told to begin yielded. `starter` is what the calling thread found
    /// of its id.
    pub fn start(
        tapped: &'static Tapped,
        cupti: &Cupti,
        control: ControlServer<MappedWords>,
        housekeeper: Housekeeper,
        settings: &Settings,
        notes: Notes,
        starter: Candidates,
    ) -> Timer {
        let recorder = Recorder::start(tapped, Guard::new(cupti.calls, cupti.version), settings, notes);
        let rest = settings.flush.min(LONGEST_REST);
        Timer { tapped, control, housekeeper, recorder, rest, next_second_ns: 0, starter, short: false }
    }

    fn run(mut self) {
        thread::learn(&self.starter, &thread::candidates());
        self.recorder.compare_with_driver(driver::version());
        loop {
            self.turn(monotonic_ns());
            if exit::rest(self.rest) {
                break;
            }
        }
        self.recorder.end();
        self.tapped.tap.status().beat(monotonic_ns());
        exit::ended();
        // Its parts stand for mappings and descriptors that live as long as the process.
        std::mem::forget(self);
    }

    /// There is no thread: CUPTI is given back, and the segment stays to say so. With the housekeeper would go the
    /// descriptors by which readers find a memfd.
    fn give_up(self) {
        let Timer { recorder, housekeeper, .. } = self;
        drop(recorder);
        std::mem::forget(housekeeper);
    }

    fn turn(&mut self, now_ns: u64) {
        self.keep_room();
        let wishes = self.control.poll(now_ns);
        for waiting in &wishes.commands {
            let answer = self.recorder.obey(waiting.command, wishes.kinds, now_ns);
            self.control.answer(*waiting, answer);
        }
        self.recorder.follow(wishes.kinds, now_ns);
        if now_ns >= self.next_second_ns {
            self.next_second_ns = now_ns + SECOND_NS;
            self.every_second();
        }
        self.tapped.tap.status().beat(monotonic_ns());
    }

    fn keep_room(&mut self) {
        self.tapped.pool.prepare(BUFFERS_AHEAD.max(self.tapped.pool.taken()));
        if self.short {
            return;
        }
        for _ in 0..STEPS_A_TURN {
            match self.housekeeper.step(&self.tapped.tap) {
                Step::Enough => return self.recorder.has_room(),
                // A process that ends has no use for more, and waits.
                Step::Reserved if exit::rest(Duration::ZERO) => return,
                Step::Reserved => {}
                // Asked again once a second: room may come free.
                Step::Short(error) => {
                    self.short = true;
                    return self.recorder.lacks_room(error.to_string());
                }
            }
        }
    }

    fn every_second(&mut self) {
        self.short = false;
        // SAFETY: CUPTI has given each of them away, to be freed with free, and it is given here once.
        self.tapped.details.take(|details| unsafe { libc::free(details) });
        self.tapped.tap.status().add_clock_point(self.recorder.clock_point());
        self.housekeeper.free_lanes(&self.tapped.tap, process::has_no_thread);
        self.recorder.retry();
    }
}

/// Starts the thread with every signal blocked, so that no handler of the application ever runs on it.
pub fn spawn(timer: Timer) -> bool {
    let tap = &timer.tapped.tap;
    // What a thread was to get is gone where none could be started, unless it is lent.
    let lent = Arc::new(Mutex::new(Some(timer)));
    let borrowed = Arc::clone(&lent);
    let spawned = spawn_quiet("gputap-timer", move || {
        let Some(timer) = taken(&borrowed) else { return };
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| timer.run()));
        if caught.is_err() {
            tap.count(Counter::Panics, 1);
            tap.status().set_state(State::Off, gputap_ringbuf::header::status::Reason::NoThread, "the timer panicked");
            exit::ended();
        }
    });
    if !spawned {
        taken(&lent).into_iter().for_each(Timer::give_up);
    }
    spawned
}

fn taken(lent: &Mutex<Option<Timer>>) -> Option<Timer> {
    lent.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Starts a thread with every signal blocked; false if there is none to be had.
pub fn spawn_quiet(name: &str, body: impl FnOnce() + Send + 'static) -> bool {
    // SAFETY: zero is a valid sigset_t, and sigfillset fills it.
    let mut all: libc::sigset_t = unsafe { std::mem::zeroed() };
    let mut before = all;
    // SAFETY: both sets may be written.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
    }
    let spawned = std::thread::Builder::new().name(name.into()).spawn(body).is_ok();
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    spawned
}

/// Used by the recorder to say how it stands.
fn say(tapped: &Tapped, standing: &Standing) {
    tapped.tap.status().set_state(standing.state, standing.reason, &standing.detail);
}
