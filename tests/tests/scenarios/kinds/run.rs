//! An application, its tap, a reader, and the books between them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use fake_cupti::counters::Counters;
use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::recording::RecordError;
use gputap_reader::session::{EventSink, Session, StoredCubin};
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::control::client::ControlClient;
use gputap_ringbuf::control::{Answer, Command};
use gputap_ringbuf::discover::Found;
use gputap_ringbuf::event::{Event, EventKind};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::process::monotonic_ns;

use super::actor::{Actor, Front};
use super::told::Told;
use crate::reading;

/// A running application with a reader that wishes for nothing and keeps all that it gets.
pub struct Run {
    pub actor: Actor,
    pub found: Found,
    pub tap: Attached,
    pub session: Session,
    pub got: Got,
}

impl Run {
    pub fn start(env: &[(&str, &str)]) -> Self {
        Self::of(Actor::start(Front::Witness, env))
    }

    pub fn of(actor: Actor) -> Self {
        let (found, tap) = (actor.found(), actor.attached());
        let session = reading::session(&found, 0);
        Self { actor, found, tap, session, got: Got::default() }
    }

    /// Wishes for these kinds, and waits until they are recorded.
    pub fn wish(&self, kinds: u64) -> Wish {
        let wish = Wish::hold(&self.found, kinds);
        self.settle(kinds);
        wish
    }

    /// Waits until these kinds are recorded, and the turn of the tap's timer that began it is over.
    pub fn settle(&self, kinds: u64) {
        reading::wait_for_status(&self.tap, &format!("{kinds:#x} recorded"), |status| status.kinds == kinds);
        self.turn();
    }

    /// Waits until a turn of the tap's timer is over that was not before.
    pub fn turn(&self) {
        for _ in 0..2 {
            let now_ns = monotonic_ns();
            reading::wait_for_status(&self.tap, "a turn", |status| status.heartbeat_ns > now_ns);
        }
    }

    pub fn flush(&self) {
        assert_eq!(self.command(Command::Flush), Answer::Done);
    }

    pub fn command(&self, command: Command) -> Answer {
        reading::command(&self.found, command)
    }

    pub fn count(&self, counter: Counter) -> u64 {
        self.tap.counters().get(counter)
    }

    /// Has CUPTI hand over what it holds, and reads it all.
    pub fn catch_up(&mut self) {
        self.flush();
        self.read_all();
    }

    /// Reads what has reached the tap.
    pub fn read_all(&mut self) {
        let attempted = self.tap.counters().attempted;
        let lost: u64 = self.tap.counters().lost().map(|(_, count)| count).sum();
        let all = |session: &Session, _: &_| reading::balanced(session).counts.delivered == attempted - lost;
        reading::step_until(&mut self.session, &mut self.got, "all events", all);
    }

    /// Asks the application what CUPTI showed the tap, and compares what of it is of these kinds with what was read.
    /// Gives by how much CUPTI's clock is ahead of the reader's.
    pub fn compare(&mut self, kinds: u64) -> u64 {
        let (ahead_ns, nameless) = self.compare_but_for_names(kinds);
        assert_eq!((nameless, self.count(Counter::NamesLost)), (0, 0));
        ahead_ns
    }

    /// As [`Self::compare`], where long names may have found no room yet: gives their number, too.
    pub fn compare_but_for_names(&mut self, kinds: u64) -> (u64, u64) {
        self.actor.act("shown");
        let shown: Vec<_> = self.actor.shown.iter().filter(|told| told.event.kind().bit() & kinds != 0).collect();
        let got: Vec<_> = self.got.told.iter().filter(|told| told.event.kind() != EventKind::Launch).collect();
        let time = |told: &[&Told]| told.iter().flat_map(|told| told.times()).find(|time| *time != 0).unwrap_or(0);
        let ahead_ns = time(&shown).wrapping_sub(time(&got));
        let mut nameless = 0;
        for (number, (shown, got)) in shown.iter().zip(&got).enumerate() {
            let mut shown = shown.earlier(ahead_ns);
            if got.name.is_none() && shown.has_long_name() {
                (nameless, shown.name) = (nameless + 1, None);
            }
            assert_eq!(&shown, *got, "record {number}");
        }
        assert_eq!(got.len(), shown.len(), "as many events as records");
        (ahead_ns, nameless)
    }

    /// Every record that the fake CUPTI handed over is an event, or counted by its reason; nothing may be under way.
    /// Only launches, which are told on threads without end, may have found no lane.
    pub fn assert_books(&mut self) -> Counters {
        let fake = self.actor.counters();
        let launches = self.got.of(EventKind::Launch).len() as u64;
        let counters = self.tap.counters();
        let (dropped, no_lane) = (counters.get(Counter::CuptiDropped), counters.get(Counter::NoLane));
        assert!(no_lane == 0 || launches > 0, "{counters:?}");
        assert_eq!(counters.attempted, self.got.told.len() as u64 + dropped + no_lane);
        let not_events = counters.get(Counter::Unwanted) + counters.get(Counter::UnknownRecords);
        assert_eq!(
            (self.got.told.len() as u64 - launches + not_events, dropped),
            (fake.records_delivered, fake.records_dropped),
            "{counters:?} {fake:?}"
        );
        fake
    }

    /// Tells the application to leave and reads the rest; the books, balanced.
    pub fn end(self) -> (Snapshot, Got) {
        let Self { actor, mut session, mut got, .. } = self;
        let status = actor.end();
        assert!(status.success(), "{status}");
        let snapshot = reading::read_to_the_end(&mut session, &mut got);
        (snapshot, got)
    }
}

/// A wish that is renewed until this is dropped.
pub struct Wish {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Wish {
    pub fn hold(found: &Found, kinds: u64) -> Self {
        let client = ControlClient::open(found).unwrap_or_else(|error| panic!("{error}"));
        client.want(kinds);
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                client.renew();
                std::thread::park_timeout(Duration::from_millis(100));
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for Wish {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().expect("no panic");
        }
    }
}

/// What a reader got, in that order.
#[derive(Default)]
pub struct Got {
    pub told: Vec<Told>,
    texts: HashMap<u32, Vec<u8>>,
}

impl Got {
    pub fn of(&self, kind: EventKind) -> Vec<&Told> {
        self.told.iter().filter(|told| told.event.kind() == kind).collect()
    }

    pub fn count(&self, kind: EventKind) -> u64 {
        self.of(kind).len() as u64
    }
}

impl EventSink for Got {
    fn name(&mut self, slot: u32, mangled: &[u8]) -> Result<(), RecordError> {
        self.texts.insert(slot, mangled.to_vec());
        Ok(())
    }

    fn text(&mut self, slot: u32, text: &[u8]) -> Result<(), RecordError> {
        self.texts.insert(slot, text.to_vec());
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        let [name, domain] = event.names().map(|slot| self.texts.get(&slot).map(Vec::as_slice));
        let told = Told::new(*event, name, domain);
        self.told.push(told);
        Ok(())
    }

    fn cubin(&mut self, _: &StoredCubin<'_>) -> Result<(), RecordError> {
        Ok(())
    }

    fn cupti_crc(&mut self, _: u32, _: Result<u64, &str>) -> Result<(), RecordError> {
        Ok(())
    }

    fn step_ends(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}
