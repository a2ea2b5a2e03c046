//! How a tap does: its state with the reason, a heartbeat, texts and clock points. Written by the timer thread only
//! (and by start-up before it), read by anybody.

use crate::{
    event::EventKind,
    layout::{STATUS, status},
    sync::{Ordering, fence},
    words::{ReadWords, Words},
};

/// What a tap is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum State {
    Starting = 0,
    /// Module loads only, no activity kind.
    Idle = 1,
    /// What the live leases ask for.
    Recording = 2,
    /// Recording without a reader.
    BlackBox = 3,
    /// Unsubscribed and finalized, so that another tool can have CUPTI.
    Yielded = 4,
    Off = 5,
    /// The process ended in an orderly way.
    Exited = 6,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Idle => "idle",
            State::Recording => "recording",
            State::BlackBox => "black box",
            State::Yielded => "yielded",
            State::Off => "off",
            State::Exited => "exited",
        }
    }

    fn from_number(number: u64) -> Option<State> {
        use State::*;
        [Starting, Idle, Recording, BlackBox, Yielded, Off, Exited].into_iter().find(|s| *s as u64 == number)
    }
}

/// Why a tap is in its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Reason {
    None = 0,
    NoCupti = 1,
    CuptiTooOld = 2,
    CuptiSymbolMissing = 3,
    OtherSubscriber = 4,
    CuptiError = 5,
    NoRoom = 6,
    ByCommand = 7,
    StillTaken = 8,
    BadSetting = 9,
    NoThread = 10,
    NotLinux = 11,
    NoRecords = 12,
    CuptiTooNew = 13,
}

impl Reason {
    /// What it means and what to do; the detail text has the facts.
    pub fn explanation(self) -> &'static str {
        match self {
            Reason::None => "",
            Reason::NoCupti => "no libcupti was found: install CUPTI or name it in GPUTAP_CUPTI",
            Reason::CuptiTooOld => "this libcupti is older than 11.8, which gputap cannot read",
            Reason::CuptiSymbolMissing => "this libcupti lacks a function that gputap needs",
            Reason::OtherSubscriber => {
                "another tool holds CUPTI's one subscription (torch.profiler, Nsight, another tap)"
            }
            Reason::CuptiError => "a CUPTI call failed",
            Reason::NoRoom => "not enough shared memory could be reserved",
            Reason::ByCommand => "by command (gputap ctl)",
            Reason::StillTaken => "resuming failed: another tool still holds CUPTI; try again when it has ended",
            Reason::BadSetting => "a GPUTAP_ variable of the job could not be understood",
            Reason::NoThread => "the timer thread could not be started",
            Reason::NotLinux => "this system is not supported",
            Reason::NoRecords => "kernels are launched, and CUPTI delivers no records of them",
            Reason::CuptiTooNew => {
                "this libcupti is newer than the driver: name one of the driver's CUDA version in GPUTAP_CUPTI"
            }
        }
    }

    fn from_number(number: u64) -> Reason {
        use Reason::*;
        [NoCupti, CuptiTooOld, CuptiSymbolMissing, OtherSubscriber, CuptiError, NoRoom, ByCommand, StillTaken]
            .into_iter()
            .chain([BadSetting, NoThread, NotLinux, NoRecords, CuptiTooNew])
            .find(|r| *r as u64 == number)
            .unwrap_or(None)
    }
}

/// Which clock CUPTI reads for its records. Events are of CLOCK_MONOTONIC in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u16)]
pub enum ClockSource {
    /// CLOCK_REALTIME, which can be set; the shim converts, by the clock points that it takes.
    #[default]
    Realtime = 0,
    /// CLOCK_MONOTONIC, through a callback of the shim's.
    Monotonic = 1,
}

/// Two clocks read at the same instant, within `error_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockPoint {
    pub monotonic_ns: u64,
    pub realtime_ns: u64,
    /// Half the width of the bracket in which both were read.
    pub error_ns: u64,
}

/// The wall clock was set where it jumps by more than this between two points. Slewing changes both clocks alike.
pub const CLOCK_STEP_NS: u64 = 1_000_000;
/// CUPTI's own conversion of the device's clock takes its time to follow a step: times this near to one are doubtful.
pub const CLOCK_DOUBT_NS: u64 = 1_000_000_000;

impl ClockPoint {
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, modulo 2^64.
    pub fn ahead_ns(&self) -> u64 {
        self.realtime_ns.wrapping_sub(self.monotonic_ns)
    }
}

/// Whether the wall clock was set between two instants at which it was so far ahead.
pub fn is_clock_step(ahead_ns: u64, later_ahead_ns: u64) -> bool {
    later_ahead_ns.wrapping_sub(ahead_ns).cast_signed().unsigned_abs() > CLOCK_STEP_NS
}

const LACKED: &str = " events cannot be had in this process";

/// The note that a kind cannot be had, and what to do about it.
pub fn lack_note(kind: EventKind, what_to_do: &str) -> String {
    format!("{}{LACKED}: {what_to_do}", kind.name())
}

/// Whether a note is one of [`lack_note`]'s, of this kind.
pub fn is_lack_note(note: &str, kind: EventKind) -> bool {
    note.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with(LACKED))
}

/// A tap's status as a reader saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// `None` for a state that this version does not know.
    pub state: Option<State>,
    pub reason: Reason,
    /// Facts to the reason, for people; empty where there are none.
    pub detail: String,
    /// As `cuptiGetVersion` gives it; 0 before CUPTI was found.
    pub cupti_version: u32,
    pub cupti_path: String,
    /// CLOCK_MONOTONIC of the timer's last turn.
    pub heartbeat_ns: u64,
    /// Mask of [`crate::event::EventKind::bit`]s that are being recorded.
    pub kinds: u64,
    /// Those that this process can never record; the notes say why.
    pub unavailable: u64,
    pub clock_source: ClockSource,
    /// As `cuDriverGetVersion` gives it, 12040 for 12.4; 0 while unknown.
    pub driver_version: u32,
    /// What is worth knowing and keeps nothing from working, for people.
    pub notes: Vec<String>,
}

fn word(index: usize) -> usize {
    STATUS + index
}

/// Writes the status block. One at a time.
pub struct StatusWriter<W: Words> {
    words: W,
}

impl<W: Words> StatusWriter<W> {
    pub fn new(words: W) -> Self {
        StatusWriter { words }
    }

    fn put(&self, index: usize, value: u64) {
        self.words.store(word(index), value, Ordering::Relaxed);
    }

    /// Sets state, reason and detail, in an order in which a reader never sees an old detail with a new state.
    pub fn set_state(&self, state: State, reason: Reason, detail: &str) {
        self.set_text::<{ status::TEXT_WORDS }>(status::DETAIL, detail);
        // SYNC: pairs with the Acquire fence in `read_text`: a reader that saw this state finds its detail there.
        self.words.store(word(status::STATE), state as u64 | (reason as u64) << 16, Ordering::Release);
    }

    pub fn set_cupti(&self, version: u32, path: &str) {
        self.put(status::CUPTI_VERSION, u64::from(version));
        self.set_text::<{ status::TEXT_WORDS }>(status::CUPTI_PATH, path);
    }

    pub fn set_driver_version(&self, version: u32) {
        self.put(status::DRIVER_VERSION, u64::from(version));
    }

    pub fn set_clock_source(&self, source: ClockSource) {
        self.put(status::CLOCK_SOURCE, source as u64);
    }

    /// Kinds that can never be recorded here, and what there is to say, this and else, a line each.
    pub fn set_notes(&self, unavailable: u64, notes: &str) {
        self.put(status::UNAVAILABLE, unavailable);
        self.set_text::<{ status::NOTES_WORDS }>(status::NOTES, notes);
    }

    pub fn set_kinds(&self, kinds: u64) {
        self.put(status::KINDS, kinds);
    }

    pub fn beat(&self, monotonic_ns: u64) {
        self.put(status::HEARTBEAT_NS, monotonic_ns);
    }

    pub fn add_clock_point(&self, point: ClockPoint) {
        let next = self.words.load(word(status::CLOCK_NEXT), Ordering::Relaxed);
        // SYNC: pairs with the Acquire fence in `clock_points`: a reader that saw a word of this point sees that
        // CLOCK_NEXT has come to its number.
        fence(Ordering::Release);
        let at = status::CLOCK + (next as usize % status::CLOCK_POINTS) * status::CLOCK_POINT_WORDS;
        self.put(at, point.monotonic_ns);
        self.put(at + 1, point.realtime_ns);
        self.put(at + 2, point.error_ns);
        // SYNC: pairs with the Acquire load of CLOCK_NEXT in `clock_points`.
        self.words.store(word(status::CLOCK_NEXT), next + 1, Ordering::Release);
    }

    fn set_text<const WORDS: usize>(&self, at: usize, text: &str) {
        let seq = self.words.load(word(status::TEXT_SEQ), Ordering::Relaxed);
        self.put(status::TEXT_SEQ, seq + 1);
        // SYNC: pairs with the Acquire fence in `read_text`: a reader that saw a new word sees the odd number.
        fence(Ordering::Release);
        let mut eights = [[0; 8]; WORDS];
        let bytes = eights.as_flattened_mut();
        // The last byte stays 0. Cut in the middle of a character, it is read lossily.
        let len = text.len().min(bytes.len() - 1);
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        for (i, eight) in eights.iter().enumerate() {
            self.put(at + i, u64::from_le_bytes(*eight));
        }
        // SYNC: pairs with the Acquire load of TEXT_SEQ in `read_text`.
        self.words.store(word(status::TEXT_SEQ), seq + 2, Ordering::Release);
    }
}

/// How often a reader looks at a text that changes under it, before it gives up.
const MAX_LOOKS: u32 = if cfg!(loom) { 2 } else { 100 };
/// What it then gives instead.
pub const UNSETTLED: &str = "(a text that never settled)";

impl Status {
    pub fn read<R: ReadWords>(words: &R) -> Status {
        // Before the detail, whose Acquire fence is this load's too: if the detail was read from before this state, a
        // second look is taken.
        let state = words.load(word(status::STATE), Ordering::Relaxed);
        let get = |index| words.load(word(index), Ordering::Relaxed);
        Status {
            state: State::from_number(state & 0xffff),
            reason: Reason::from_number(state >> 16 & 0xffff),
            detail: shown(&read_text::<{ status::TEXT_WORDS }>(words, status::DETAIL)),
            cupti_version: get(status::CUPTI_VERSION) as u32,
            cupti_path: shown(&read_text::<{ status::TEXT_WORDS }>(words, status::CUPTI_PATH)),
            heartbeat_ns: get(status::HEARTBEAT_NS),
            kinds: get(status::KINDS),
            unavailable: get(status::UNAVAILABLE),
            clock_source: match get(status::CLOCK_SOURCE) {
                1 => ClockSource::Monotonic,
                _ => ClockSource::Realtime,
            },
            driver_version: get(status::DRIVER_VERSION) as u32,
            notes: read_text::<{ status::NOTES_WORDS }>(words, status::NOTES).lines().map(shown).collect(),
        }
    }
}

/// Somebody's terminal will show it: no escape sequences from a hostile segment.
fn shown(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

fn read_text<const WORDS: usize>(words: &impl ReadWords, at: usize) -> String {
    for _ in 0..MAX_LOOKS {
        // SYNC: pairs with the Release store of TEXT_SEQ at the end of `set_text`.
        let seq = words.load(word(status::TEXT_SEQ), Ordering::Acquire);
        let mut copy = [0; WORDS];
        words.load_all(word(at), &mut copy);
        // SYNC: pairs with the Release fence in `set_text`, and for the detail with the Release store of STATE.
        fence(Ordering::Acquire);
        if seq.is_multiple_of(2) && words.load(word(status::TEXT_SEQ), Ordering::Relaxed) == seq {
            let bytes: Vec<u8> = copy.iter().flat_map(|w| w.to_le_bytes()).take_while(|b| *b != 0).collect();
            return String::from_utf8_lossy(&bytes).into_owned();
        }
    }
    String::from(UNSETTLED)
}

/// The clock points still held, oldest first.
pub fn clock_points<R: ReadWords>(words: &R) -> Vec<ClockPoint> {
    // SYNC: pairs with the Release store of CLOCK_NEXT in `add_clock_point`.
    let next = words.load(word(status::CLOCK_NEXT), Ordering::Acquire);
    let held = next.min(status::CLOCK_POINTS as u64);
    let point = |n: u64| {
        let at = word(status::CLOCK + (n as usize % status::CLOCK_POINTS) * status::CLOCK_POINT_WORDS);
        let get = |i| words.load(at + i, Ordering::Relaxed);
        ClockPoint { monotonic_ns: get(0), realtime_ns: get(1), error_ns: get(2) }
    };
    let mut points: Vec<ClockPoint> = (next - held..next).map(point).collect();
    // SYNC: pairs with the Release fence in `add_clock_point`.
    fence(Ordering::Acquire);
    // The point numbered `now` may be under the writer's pen, in the place of `now - CLOCK_POINTS`.
    let now = words.load(word(status::CLOCK_NEXT), Ordering::Relaxed);
    let oldest_whole = now.saturating_sub(status::CLOCK_POINTS as u64 - 1);
    let torn = oldest_whole.saturating_sub(next - held).min(held);
    points.drain(..torn as usize);
    points
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::words::heap_words;

    #[test]
    fn a_status_is_read_as_it_was_written() {
        let words = heap_words(STATUS + status::WORDS);
        let writer = StatusWriter::new(words.clone());
        writer.set_cupti(130001, "/usr/lib/libcupti.so.13");
        writer.set_state(State::Off, Reason::OtherSubscriber, "error 39");
        writer.beat(7);
        writer.set_kinds(6);
        let status = Status::read(&words);
        assert_eq!((status.state, status.reason), (Some(State::Off), Reason::OtherSubscriber));
        assert_eq!((status.detail.as_str(), status.cupti_path.as_str()), ("error 39", "/usr/lib/libcupti.so.13"));
        assert_eq!((status.cupti_version, status.heartbeat_ns, status.kinds), (130001, 7, 6));
        assert_eq!((status.unavailable, status.driver_version, status.notes.len()), (0, 0, 0));
        writer.set_notes(8, "one\ntwo\x1b[2J");
        writer.set_driver_version(13_000);
        writer.set_clock_source(ClockSource::Monotonic);
        let status = Status::read(&words);
        assert_eq!((status.unavailable, status.driver_version), (8, 13_000));
        assert_eq!(
            (status.clock_source, status.notes),
            (ClockSource::Monotonic, vec!["one".into(), "two\u{fffd}[2J".into()])
        );
    }

    #[test]
    fn a_long_text_is_cut_and_a_shorter_one_leaves_nothing_of_it() {
        let words = heap_words(STATUS + status::WORDS);
        let writer = StatusWriter::new(words.clone());
        writer.set_state(State::Off, Reason::NoRoom, &"x".repeat(10_000));
        assert_eq!(Status::read(&words).detail.len(), status::TEXT_WORDS * 8 - 1);
        writer.set_state(State::Off, Reason::NoRoom, "short");
        assert_eq!(Status::read(&words).detail, "short");
    }

    #[test]
    fn a_text_cannot_steer_the_terminal_that_shows_it() {
        let words = heap_words(STATUS + status::WORDS);
        StatusWriter::new(words.clone()).set_state(State::Off, Reason::NoRoom, "a\x1b]0;title\x07b");
        assert_eq!(Status::read(&words).detail, "a\u{fffd}]0;title\u{fffd}b");
    }

    #[test]
    fn the_newest_clock_points_are_held() {
        let words = heap_words(STATUS + status::WORDS);
        let writer = StatusWriter::new(words.clone());
        for n in 0..100 {
            writer.add_clock_point(ClockPoint { monotonic_ns: n, realtime_ns: n + 1, error_ns: 2 });
        }
        let points = clock_points(&words);
        assert_eq!(points.len(), status::CLOCK_POINTS - 1);
        assert_eq!(points.last().unwrap().monotonic_ns, 99);
    }
}
