//! What is recorded, and whether CUPTI is ours at all: the state that readers see, and everything that changes it.

use super::{
    clock::Clock,
    guard::{Failed, Guard},
    kinds::Kinds,
    notes::Notes,
    say,
    selftest::SelfTest,
};
use crate::settings::{Settings, StartAs};
use gputap_callbacks::tapped::Tapped;
use gputap_cupti::constants::CuptiResult;
use gputap_ringbuf::{
    control::{Answer, Command},
    event::EventKind,
    header::{
        counters::Counter,
        status::{ClockPoint, Reason, State},
    },
    process::monotonic_ns,
};
use std::time::Duration;

/// How the tap stands, as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub state: State,
    pub reason: Reason,
    pub detail: String,
}

/// How often a slot that another tool holds is asked for again, once a second.
const MAX_RETRIES: u32 = 10;
/// While nothing is recorded no id is seen. In so long an application can have made 2^31 calls of the driver, and more
/// than half a turn of CUPTI's ids cannot be told from less.
const IDS_MAY_WRAP_NS: u64 = 600 * 1_000_000_000;

/// Switches kinds on and off, flushes, yields and resumes. Owned by the timer, like the guard in it.
pub struct Recorder {
    tapped: &'static Tapped,
    guard: Guard,
    flush_ns: u64,
    next_flush_ns: u64,
    kinds: Kinds,
    clock: Clock,
    self_test: SelfTest,
    /// What is recorded where no reader says.
    unasked: u64,
    notes: Notes,
    /// Launches call us.
    launches: bool,
    /// When ids were last seen: they wrap.
    quiet_since_ns: u64,
    black_box: bool,
    /// Recording until the first lease takes over.
    awaited: bool,
    stopped: bool,
    yielded: bool,
    retries: u32,
    /// Why CUPTI is not ours or does not do what it should; empty if it does.
    trouble: Option<(Reason, String)>,
    /// What could not be reserved; empty if there is room ahead.
    lacking: String,
    complaint: String,
    /// The self-test's finding; empty if all is well.
    silent: String,
    /// CUPTI is of a newer CUDA than the driver.
    too_new: bool,
    /// False inside the application's cuInit, where nothing may be flushed.
    started: bool,
    said: Option<Standing>,
}

impl Recorder {
    /// Subscribes, unless the settings say to begin yielded.
    pub fn start(tapped: &'static Tapped, guard: Guard, settings: &Settings, notes: Notes) -> Recorder {
        let mut recorder = Recorder {
            tapped,
            guard,
            flush_ns: settings.flush.as_nanos() as u64,
            next_flush_ns: 0,
            kinds: Kinds::default(),
            clock: Clock::new(tapped, settings.clock),
            self_test: SelfTest::new(patience(settings), settings.launches),
            unasked: settings.kinds,
            notes,
            launches: settings.launches,
            quiet_since_ns: 0,
            black_box: settings.start == StartAs::BlackBox,
            awaited: settings.start == StartAs::Recording,
            stopped: false,
            yielded: settings.start == StartAs::Yielded,
            retries: 0,
            trouble: None,
            lacking: String::new(),
            complaint: settings.complaint.clone(),
            silent: String::new(),
            too_new: false,
            started: false,
            said: None,
        };
        if recorder.yielded {
            tapped.tap.count(Counter::YieldGaps, 1);
        } else {
            recorder.subscribe();
        }
        recorder.notes.say(tapped);
        recorder.follow(0, monotonic_ns());
        recorder.started = true;
        recorder
    }

    fn subscribe(&mut self) -> bool {
        match self.guard.subscribe() {
            Ok(()) => {
                self.trouble = None;
                self.kinds.forget();
                self.self_test.begin_again();
                self.clock.begin(self.tapped, &mut self.guard);
                if self.launches
                    && let Err(failed) = self.guard.enable_launches(true)
                {
                    self.notes.lack(EventKind::Launch, &failed.to_string());
                    self.notes.say(self.tapped);
                    self.failed(failed);
                }
                true
            }
            Err(failed) => {
                // Modules loaded from here on are unknown to us; one gap, however often we ask again.
                if !self.yielded && self.trouble.is_none() {
                    self.tapped.tap.count(Counter::YieldGaps, 1);
                }
                self.failed(failed);
                // Half a subscription is given back; CUPTI is taken down only where it was by our own command.
                let _ = match self.guard.is_subscribed() {
                    true if self.yielded => self.guard.leave(),
                    _ => self.guard.unsubscribe(),
                };
                false
            }
        }
    }

    /// Timer thread's first turn: what the driver says of itself, if it does.
    pub fn compare_with_driver(&mut self, version: Option<u32>) {
        let Some(version) = version else { return };
        self.tapped.tap.status().set_driver_version(version);
        self.too_new = self.notes.compare_with_driver(version);
        self.notes.say(self.tapped);
    }

    pub fn clock_point(&self) -> ClockPoint {
        self.clock.point()
    }

    fn failed(&mut self, failed: Failed) {
        self.tapped.tap.count(Counter::CuptiErrors, 1);
        let reason = match failed.result {
            CuptiResult::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED if self.yielded => Reason::StillTaken,
            CuptiResult::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => Reason::OtherSubscriber,
            _ => Reason::CuptiError,
        };
        self.trouble = Some((reason, failed.to_string()));
    }

    /// Brings what is recorded in line with what the leases want, and flushes when it is time.
    pub fn follow(&mut self, leased: u64, now_ns: u64) {
        self.clock.look(self.tapped);
        self.awaited &= leased == 0;
        let unasked = if self.black_box || self.awaited { self.unasked } else { 0 };
        let wanted = if self.stopped { 0 } else { (leased | unasked) & !self.notes.unavailable() };
        if self.guard.is_subscribed() {
            if self.kinds.recorded() == 0 {
                // There is nothing to flush yet; and start-up, inside the application's cuInit, must never flush.
                self.next_flush_ns = now_ns + self.flush_ns;
            }
            self.switch_to(wanted, now_ns);
            if self.kinds.recorded() != 0 && now_ns >= self.next_flush_ns {
                self.flush();
                self.next_flush_ns = now_ns + self.flush_ns;
            }
            self.test(now_ns);
        }
        if wanted == 0 {
            self.kinds.forgive();
        }
        self.say();
    }

    /// Kinds go on at the first wish, and not before: once one has been on, each launch costs a little more until CUPTI
    /// is finalized.
    fn switch_to(&mut self, wanted: u64, now_ns: u64) {
        let before = self.kinds.recorded();
        if self.kinds.possible(wanted) == before {
            return;
        }
        if before == 0 && now_ns.saturating_sub(self.quiet_since_ns) > IDS_MAY_WRAP_NS {
            self.tapped.correlations.pass_gap();
        }
        let failures = self.kinds.switch_to(&mut self.guard, wanted);
        failures.into_iter().for_each(|failed| self.failed(failed));
        self.quiet_since_ns = now_ns;
        self.tapped.tap.status().set_kinds(self.kinds.recorded());
        self.say();
        if self.started {
            // What CUPTI holds was recorded under the old wishes.
            self.flush();
        }
        self.tapped.want(self.kinds.recorded());
    }

    fn test(&mut self, now_ns: u64) {
        let recording = self.kinds.recorded() & EventKind::Kernel.bit() != 0;
        match self.self_test.look(self.tapped, &mut self.guard, recording, now_ns) {
            Ok(finding) => self.silent = finding.unwrap_or_default(),
            Err(failed) => self.failed(failed),
        }
    }

    fn flush(&mut self) {
        let start_ns = monotonic_ns();
        match self.guard.flush() {
            Ok(()) if !self.kinds.any_refused() => self.trouble = None,
            Ok(()) => {}
            Err(failed) => self.failed(failed),
        }
        let took_ns = monotonic_ns().saturating_sub(start_ns);
        self.tapped.tap.count(Counter::Flushes, 1);
        self.tapped.tap.count(Counter::FlushNs, took_ns);
        self.tapped.tap.raise_to(Counter::FlushMaxNs, took_ns);
    }

    /// Carries a command out, beside what the leases want.
    pub fn obey(&mut self, command: Option<Command>, leased: u64, now_ns: u64) -> Answer {
        let Some(command) = command else { return Answer::Refused };
        match command {
            Command::Start | Command::Stop | Command::Flush if !self.guard.is_subscribed() => return Answer::Refused,
            Command::Start => (self.black_box, self.stopped) = (true, false),
            Command::Stop => (self.black_box, self.awaited, self.stopped) = (false, false, true),
            Command::Flush => self.flush(),
            Command::Yield => return self.leave(),
            Command::Resume => return self.resume(),
        }
        self.follow(leased, now_ns);
        Answer::Done
    }

    fn leave(&mut self) -> Answer {
        if self.guard.is_subscribed() {
            if !self.guard.can_leave() {
                return Answer::Refused;
            }
            let wanted = self.kinds.recorded();
            self.switch_to(0, monotonic_ns());
            // What is still running was asked for, too.
            self.tapped.want(wanted);
            self.flush_last();
            self.tapped.want(0);
            self.tapped.tap.count(Counter::YieldGaps, 1);
            self.clock.end(self.tapped, &mut self.guard);
            if let Err(failed) = self.guard.leave() {
                self.failed(failed);
                self.yielded = true;
                self.say();
                return Answer::Failed;
            }
        }
        self.yielded = true;
        self.trouble = None;
        self.say();
        Answer::Done
    }

    fn resume(&mut self) -> Answer {
        if self.guard.is_subscribed() {
            return Answer::Done;
        }
        let resumed = self.subscribe();
        if resumed {
            self.yielded = false;
        }
        self.say();
        if resumed { Answer::Done } else { Answer::Failed }
    }

    /// Once a second: asks again for the slot that another tool held at start-up, a bounded number of times.
    pub fn retry(&mut self) {
        let held_by_other = matches!(self.trouble, Some((Reason::OtherSubscriber, _)));
        if held_by_other && !self.guard.is_subscribed() && !self.yielded && self.retries < MAX_RETRIES {
            self.retries += 1;
            self.subscribe();
        }
    }

    /// Asks for all that CUPTI still holds, unfinished records included: also what was running when its kind was
    /// switched off.
    fn flush_last(&mut self) {
        if self.kinds.any_was_on() {
            self.flush();
            let _ = self.guard.flush_forced();
        }
    }

    /// The process ends.
    pub fn end(&mut self) {
        if self.guard.is_subscribed() {
            self.flush_last();
        }
        self.tapped.tap.status().set_state(State::Exited, Reason::None, "");
    }

    /// Less room could be reserved than is wanted ahead: what comes may be refused.
    pub fn lacks_room(&mut self, detail: String) {
        self.lacking = detail;
    }

    pub fn has_room(&mut self) {
        self.lacking.clear();
    }

    fn say(&mut self) {
        let standing = self.standing();
        if self.said.as_ref() != Some(&standing) {
            say(self.tapped, &standing);
            self.said = Some(standing);
        }
    }

    fn standing(&self) -> Standing {
        let state = match () {
            () if self.yielded => State::Yielded,
            () if !self.guard.is_subscribed() => State::Off,
            () if self.stopped => State::Idle,
            () if self.black_box => State::BlackBox,
            () if self.kinds.recorded() != 0 => State::Recording,
            () => State::Idle,
        };
        let (reason, detail) = match &self.trouble {
            Some((Reason::CuptiError, detail)) if self.too_new => (Reason::CuptiTooNew, detail.clone()),
            Some((reason, detail)) => (*reason, detail.clone()),
            None if !self.silent.is_empty() => (Reason::NoRecords, self.silent.clone()),
            None if !self.lacking.is_empty() => (Reason::NoRoom, self.lacking.clone()),
            None if self.yielded || self.stopped => (Reason::ByCommand, String::new()),
            None if !self.complaint.is_empty() => (Reason::BadSetting, self.complaint.clone()),
            None => (Reason::None, String::new()),
        };
        Standing { state, reason, detail }
    }
}

/// Records that no flush has asked for yet are not missing: two are waited for.
fn patience(settings: &Settings) -> Duration {
    settings.self_test.max(2 * settings.flush)
}

/// The timer could not be started, or has failed: nobody is left to give CUPTI back by command.
impl Drop for Recorder {
    fn drop(&mut self) {
        if self.guard.is_subscribed() {
            self.kinds.switch_to(&mut self.guard, 0);
            let _ = self.guard.unsubscribe();
        }
    }
}
