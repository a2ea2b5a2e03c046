//! Where an event lies in time, if it can be believed, and what time that is on the wall.

use gputap_reader::model::Timing;
use gputap_recording::{Block, Clock, Recorded};
use gputap_ringbuf::event::Event;

/// CLOCK_MONOTONIC; the two are equal for what is an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Span {
    /// None where a time is 0 or the end comes before the start, which is counted and never drawn.
    pub fn of(event: &Event) -> Option<Span> {
        match Timing::of(event) {
            Timing::Good { start_ns, end_ns } => Some(Span { start_ns, end_ns }),
            Timing::Flagged(_) => None,
        }
    }
}

/// Readers keep times in 64 bits with a sign.
const TIME_MAX_NS: u64 = i64::MAX as u64;

/// The wall clock of one process. Processes of different boots and hosts have nothing else in common.
#[derive(Clone, Copy, Debug)]
pub struct Wall(Option<Clock>);

impl Wall {
    /// From the reading at the recording's begin; without one, from the first status that has one. A clock that was set
    /// since would tear the recording apart, so there is one reading for all of it.
    pub fn of(recorded: &Recorded) -> Wall {
        Wall(recorded.process.clock.or_else(|| first_reading(recorded)))
    }

    /// Nanoseconds since 1970; CLOCK_MONOTONIC itself where nothing is known.
    pub fn at(self, time_ns: u64) -> u64 {
        let Some(clock) = self.0 else { return time_ns.min(TIME_MAX_NS) };
        let wall_ns = i128::from(time_ns) - i128::from(clock.monotonic_ns) + i128::from(clock.realtime_ns);
        // What is clamped is none of a clock's.
        wall_ns.clamp(0, i128::from(TIME_MAX_NS)) as u64
    }

    pub fn is_known(self) -> bool {
        self.0.is_some()
    }
}

fn first_reading(recorded: &Recorded) -> Option<Clock> {
    let mut stream = recorded.stream(0);
    loop {
        match stream.next_block()? {
            Block::Status(status) if status.clock.is_some() => return status.clock,
            _ => {}
        }
    }
}
