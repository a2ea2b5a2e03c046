//! What the processes of a storm know of each other, in a memfd of its own: nothing here lies in the segment. The
//! generators count here what they attempt; the parent says here where to strike next.

use gputap_ringbuf::{
    attach::MappedFile,
    sync::Ordering,
    words::{MappedWords, ReadWords, Words},
};
use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::Path,
};

use super::points::Side;

/// What a thread does that comes to an armed place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The thread ends without any clean-up; if it is the housekeeping thread, its process is killed.
    End = 1,
    /// SIGKILL for the process.
    Kill = 2,
    /// SIGSTOP for the process.
    Stop = 3,
    /// The thread waits until it is released.
    Park = 4,
    /// The thread writes a record from inside a signal handler.
    Nest = 5,
    /// A child is forked, which writes nothing and ends, or executes another program.
    Fork = 6,
    /// The process is replaced: by itself, started anew.
    Exec = 7,
}

const ACTIONS: [Action; 7] =
    [Action::End, Action::Kill, Action::Stop, Action::Park, Action::Nest, Action::Fork, Action::Exec];
/// What stands for the action once a thread has it to carry out.
const FIRED: u64 = 0xff;
/// The same, where that is the death of its process.
const FIRED_FOR_ALL: u64 = 0xfe;

/// A place armed with an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    pub point: usize,
    pub side: Side,
    pub action: Action,
    /// Tells this arm from earlier ones.
    pub serial: u64,
}

impl Arm {
    fn to_word(self) -> u64 {
        self.serial << 32 | (self.action as u64) << 24 | (self.side as u64) << 16 | self.point as u64
    }

    fn from_word(word: u64) -> Option<Arm> {
        let action = ACTIONS.into_iter().find(|a| *a as u64 == word >> 24 & 0xff)?;
        let side = if word >> 16 & 0xff == 0 { Side::Before } else { Side::After };
        Some(Arm { point: (word & 0xffff) as usize, side, action, serial: word >> 32 })
    }

    fn fired(self, kills_process: bool) -> u64 {
        self.serial << 32 | (if kills_process { FIRED_FOR_ALL } else { FIRED }) << 24
    }
}

/// Single numbers of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Seed,
    Round,
    Memfd,
    Lanes,
    Generators,
    Sabotage,
    /// Taps that this round's writer has begun: more than one where it replaced itself.
    Taps,
    /// Of these, how many can be attached to.
    Published,
    /// Of these, how many are over for good; `MAX_TAPS` when there will be no more.
    Over,
    Generations,
    /// The serial of the parked thread that may go on.
    Released,
    HeirMended,
    HousekeepingMended,
    /// Generations whose thread pointer was that of the generation before.
    Inherited,
    NestedDone,
    Forked,
    LeasesRefused,
    /// Accesses from lines that are no place.
    Strangers,
}

/// What a stream of records has done. A generation of a thread has two: its own, and its signal handler's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    Attempted,
    /// Attempts whose outcome is known.
    Done,
    /// Of these, those that were refused.
    Refused,
    Tid,
    Tap,
    Running,
    LoadsAttempted,
    LoadsDone,
    NamesAttempted,
    NamesDone,
}

/// What a reader has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// 0 not attached, 1 reading, 2 its books are closed.
    State,
    Tap,
    Turns,
    Delivered,
    Overwritten,
    BeforeAttach,
    Abandoned,
    Corrupt,
    Cubins,
    Names,
}

pub const MAX_POINTS: usize = 128;
pub const ARMS: usize = 2;
pub const MAX_TAPS: usize = 4;
/// Streams of records in a round: two a generation.
pub const MAX_STREAMS: usize = 1024;
pub const MAX_READERS: usize = 128;
const LINE: usize = 16;

const NUMBERS: usize = 0;
const ARMED: usize = NUMBERS + 32 * LINE;
const COUNTDOWN: usize = ARMED + ARMS * LINE;
const NONCES: usize = COUNTDOWN + ARMS * LINE;
const STREAMS: usize = NONCES + LINE;
const READERS: usize = STREAMS + MAX_STREAMS * LINE;
/// What comes after stays from round to round.
const HITS: usize = READERS + MAX_READERS * LINE;
const WORDS: usize = HITS + MAX_POINTS * 2;

/// The plan, as parent, writers and readers all map it.
#[derive(Clone)]
pub struct Plan {
    words: MappedWords,
    pub fd: i32,
}

impl Plan {
    /// A new plan, whose descriptor the processes started from here inherit.
    pub fn create() -> io::Result<(Plan, File)> {
        // SAFETY: the name is NUL-terminated.
        let fd = unsafe { libc::memfd_create(c"storm-plan".as_ptr(), 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
        file.set_len(WORDS as u64 * 8)?;
        let plan = Plan::open(file.as_raw_fd())?;
        Ok((plan, file))
    }

    pub fn open(fd: i32) -> io::Result<Plan> {
        let path = format!("/proc/self/fd/{fd}");
        let words = MappedFile::open_writable(Path::new(&path), WORDS * 8).map_err(io::Error::other)?;
        Ok(Plan { words, fd })
    }

    /// Forgets the last round.
    pub fn begin_round(&self) {
        (0..HITS).for_each(|i| self.put(i, 0));
    }

    fn get(&self, index: usize) -> u64 {
        // SYNC: pairs with the Release store in `put` and the exchanges: who sees a number sees what led to it.
        self.words.load(index, Ordering::Acquire)
    }

    fn put(&self, index: usize, value: u64) {
        // SYNC: pairs with the Acquire load in `get`.
        self.words.store(index, value, Ordering::Release);
    }

    fn raise(&self, index: usize) -> u64 {
        // SYNC: as for `put`. A count must not move across the access that it counts.
        self.words.fetch_add(index, 1, Ordering::AcqRel)
    }

    pub fn number(&self, number: Number) -> u64 {
        self.get(NUMBERS + number as usize * LINE)
    }

    pub fn set(&self, number: Number, value: u64) {
        self.put(NUMBERS + number as usize * LINE, value);
    }

    /// Gives the number before.
    pub fn add(&self, number: Number) -> u64 {
        self.raise(NUMBERS + number as usize * LINE)
    }

    /// The nonce of a tap, by which its readers know which of a round's taps it is.
    pub fn nonce(&self, tap: usize) -> u64 {
        self.get(NONCES + tap)
    }

    pub fn set_nonce(&self, tap: usize, nonce: u64) {
        self.put(NONCES + tap, nonce);
    }

    pub fn did(&self, stream: usize, what: Did) -> u64 {
        self.get(STREAMS + stream * LINE + what as usize)
    }

    pub fn set_did(&self, stream: usize, what: Did, value: u64) {
        self.put(STREAMS + stream * LINE + what as usize, value);
    }

    pub fn does(&self, stream: usize, what: Did) {
        self.raise(STREAMS + stream * LINE + what as usize);
    }

    /// All streams that were begun.
    pub fn streams(&self) -> std::ops::Range<usize> {
        0..(2 * self.number(Number::Generations) as usize).min(MAX_STREAMS)
    }

    pub fn found(&self, reader: usize, what: Found) -> u64 {
        self.get(READERS + reader * LINE + what as usize)
    }

    pub fn set_found(&self, reader: usize, what: Found, value: u64) {
        self.put(READERS + reader * LINE + what as usize, value);
    }

    pub fn hit(&self, point: usize, side: Side) {
        self.words.fetch_add(HITS + point * 2 + side as usize, 1, Ordering::Relaxed);
    }

    pub fn hits(&self, point: usize, side: Side) -> u64 {
        self.get(HITS + point * 2 + side as usize)
    }

    /// Lets the thread that comes to the place for the `nth` time from now act.
    pub fn arm(&self, which: usize, arm: Arm, nth: u64) {
        self.put(COUNTDOWN + which * LINE, nth);
        self.put(ARMED + which * LINE, arm.to_word());
    }

    /// The action that the calling thread has to carry out, if `point` is armed and its turn has come. `may_end` is
    /// whether it can end without its process.
    pub fn claim(&self, point: usize, side: Side, may_end: bool) -> Option<Arm> {
        (0..ARMS).find_map(|which| {
            let word = self.words.load(ARMED + which * LINE, Ordering::Relaxed);
            let arm = Arm::from_word(word).filter(|arm| (arm.point, arm.side) == (point, side))?;
            let left = self.words.fetch_add(COUNTDOWN + which * LINE, u64::MAX, Ordering::Relaxed);
            let kills_process = arm.action == Action::Kill || (arm.action == Action::End && !may_end);
            // Where it was armed anew meanwhile, the exchange fails.
            (left <= 1 && self.exchange(which, word, arm.fired(kills_process))).then_some(arm)
        })
    }

    fn exchange(&self, which: usize, from: u64, to: u64) -> bool {
        // SYNC: pairs with the Acquire load in `get`: what the thread did before is seen by who sees that it acted.
        self.words.compare_exchange(ARMED + which * LINE, from, to, Ordering::AcqRel).is_ok()
    }

    pub fn has_fired(&self, which: usize, arm: Arm) -> bool {
        self.get(ARMED + which * LINE) == arm.fired(false) || self.killed_the_process(which, arm)
    }

    pub fn killed_the_process(&self, which: usize, arm: Arm) -> bool {
        self.get(ARMED + which * LINE) == arm.fired(true)
    }

    /// Takes an arm back; false if it has fired.
    pub fn disarm(&self, which: usize, arm: Arm) -> bool {
        self.exchange(which, arm.to_word(), 0)
    }
}
