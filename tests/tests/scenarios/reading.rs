//! Reading a tap in a test: waiting for what it says, draining it, and looking at the books.

use std::time::{Duration, Instant};

use gputap_reader::clock::Now;
use gputap_reader::event::Event;
use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::recording::RecordError;
use gputap_reader::session::{EventSink, NoSink, Options, Progress, Session, StoredCubin};
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::control::client::ControlClient;
use gputap_ringbuf::control::{Answer, Command};
use gputap_ringbuf::discover::{Found, find};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::{State, Status};

/// For whatever must come, on a machine that is busy with other tests.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Looks until `look` gives something; panics with what `describe` says at the deadline.
pub fn wait_for<T>(what: &str, describe: impl Fn() -> String, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}; {}", describe());
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The living tap of a process, once it is there.
pub fn wait_for_tap(pid: u32) -> Found {
    let whole = || find(pid).ok().filter(|found| Attached::open(found).is_ok());
    wait_for("a tap", || format!("{:?}", find(pid)), whole)
}

/// The status, once `is_it`.
pub fn wait_for_status(tap: &Attached, what: &str, is_it: impl Fn(&Status) -> bool) -> Status {
    wait_for(what, || format!("{:?}", tap.status()), || Some(tap.status()).filter(&is_it))
}

pub fn wait_for_state(tap: &Attached, state: State) -> Status {
    wait_for_status(tap, state.name(), |status| status.state == Some(state))
}

/// Waits until recording has begun, and the flush that goes with it is over: later records stay with CUPTI.
pub fn wait_until_recording(tap: &Attached) {
    wait_for_state(tap, State::Recording);
    let flushes = || tap.counters().get(Counter::Flushes);
    wait_for("the first flush", || flushes().to_string(), || (flushes() > 0).then_some(()));
}

/// A session without CUPTI's checksums, which have tests of their own.
pub fn session(found: &Found, kinds: u64) -> Session {
    let options = Options { kinds, cupti_crc: None };
    Session::open(found, options, Now::read()).unwrap_or_else(|error| panic!("{error}"))
}

/// Steps until `is_done`.
pub fn step_until(
    session: &mut Session,
    sink: &mut dyn EventSink,
    what: &str,
    mut is_done: impl FnMut(&Session, &Progress) -> bool,
) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let progress = session.step(Now::read(), sink).unwrap_or_else(|error| panic!("{error}"));
        if is_done(session, &progress) {
            return;
        }
        assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}; {:?}", session.snapshot(Now::read()).counts);
        if !progress.more {
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }
}

/// Steps until the process has ended and all that it left has been read; the books, balanced.
pub fn read_to_the_end(session: &mut Session, sink: &mut dyn EventSink) -> Snapshot {
    step_until(session, sink, "the end", |_, progress| progress.ended);
    let snapshot = balanced(session);
    assert_eq!((snapshot.counts.pending, snapshot.target.alive), (0, false));
    snapshot
}

/// Steps until `delivered` events have been delivered.
pub fn read_until_delivered(session: &mut Session, delivered: u64) {
    let enough = |session: &Session, _: &Progress| session.snapshot(Now::read()).counts.delivered >= delivered;
    step_until(session, &mut NoSink, "events", enough);
}

/// A snapshot in which every record is accounted for.
pub fn balanced(session: &Session) -> Snapshot {
    let snapshot = session.snapshot(Now::read());
    let counts = &snapshot.counts;
    assert_eq!(counts.attempted, counts.delivered + total_lost(&snapshot) + counts.pending, "{counts:?}");
    snapshot
}

pub fn total_lost(snapshot: &Snapshot) -> u64 {
    snapshot.counts.lost.iter().map(|lost| lost.count).sum()
}

/// What was lost for this reason.
pub fn lost(snapshot: &Snapshot, reason: &str) -> u64 {
    snapshot.counts.lost.iter().filter(|lost| lost.reason == reason).map(|lost| lost.count).sum()
}

/// Whether a reason is named whose count cannot be known.
pub fn is_unknown(snapshot: &Snapshot, reason: &str) -> bool {
    snapshot.counts.lost.iter().any(|lost| lost.reason == reason && lost.unknown)
}

/// Mangled names and their calls, by name.
pub fn calls(snapshot: &Snapshot) -> Vec<(String, u64)> {
    let mut calls: Vec<_> = snapshot.kernels.iter().map(|row| (row.mangled.clone(), row.calls)).collect();
    calls.sort();
    calls
}

/// Sends a command and waits for its acknowledgement.
pub fn command(found: &Found, command: Command) -> Answer {
    let client = ControlClient::open(found).unwrap_or_else(|error| panic!("{error}"));
    client.command(command, LIMIT).unwrap_or_else(|error| panic!("{error}"))
}

/// Keeps cubins and names, and counts events.
#[derive(Debug, Default)]
pub struct Kept {
    pub cubins: Vec<Vec<u8>>,
    pub names: Vec<String>,
    pub events: u64,
}

impl EventSink for Kept {
    fn name(&mut self, _: u32, mangled: &[u8]) -> Result<(), RecordError> {
        self.names.push(String::from_utf8_lossy(mangled).into_owned());
        Ok(())
    }

    fn text(&mut self, _: u32, _: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }

    fn event(&mut self, _: &Event) -> Result<(), RecordError> {
        self.events += 1;
        Ok(())
    }

    fn cubin(&mut self, cubin: &StoredCubin<'_>) -> Result<(), RecordError> {
        self.cubins.push(cubin.bytes.to_vec());
        Ok(())
    }

    fn cupti_crc(&mut self, _: u32, _: Result<u64, &str>) -> Result<(), RecordError> {
        Ok(())
    }

    fn step_ends(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}
