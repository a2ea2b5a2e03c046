//! What is recorded, and whether CUPTI is ours at all: the state that readers see, and everything that changes it.

use super::{
    guard::{Failed, Guard},
    say,
};
use crate::settings::{Settings, StartAs};
use gputap_callbacks::tapped::Tapped;
use gputap_cupti::constants::{
    ACTIVITY_KIND_CONCURRENT_KERNEL, ACTIVITY_KIND_MEMCPY, ACTIVITY_KIND_MEMSET, CuptiResult,
};
use gputap_ringbuf::{
    control::{Answer, Command},
    event::{ALL_KINDS, EventKind},
    header::{
        counters::Counter,
        status::{Reason, State},
    },
    process::monotonic_ns,
};

/// How the tap stands, as readers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub state: State,
    pub reason: Reason,
    pub detail: String,
}

/// How often a slot that another tool holds is asked for again, once a second.
const MAX_RETRIES: u32 = 10;

/// Switches kinds on and off, flushes, yields and resumes. Owned by the timer, like the guard in it.
pub struct Recorder {
    tapped: &'static Tapped,
    guard: Guard,
    flush_ns: u64,
    next_flush_ns: u64,
    /// Kinds that are recorded.
    kinds: u64,
    /// Kinds that CUPTI refused, not asked for again until something changes.
    refused: u64,
    /// Copies and sets have been switched on.
    copies_on: bool,
    /// Kinds that should be on with them and are not.
    missing: u64,
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
    /// False inside the application's cuInit, where nothing may be flushed.
    started: bool,
    said: Option<Standing>,
}

impl Recorder {
    /// Subscribes, unless the settings say to begin yielded.
    pub fn start(tapped: &'static Tapped, guard: Guard, settings: &Settings) -> Recorder {
        let mut recorder = Recorder {
            tapped,
            guard,
            flush_ns: settings.flush_ms * 1_000_000,
            next_flush_ns: 0,
            kinds: 0,
            refused: 0,
            copies_on: false,
            missing: 0,
            black_box: settings.start == StartAs::BlackBox,
            awaited: settings.start == StartAs::Recording,
            stopped: false,
            yielded: settings.start == StartAs::Yielded,
            retries: 0,
            trouble: None,
            lacking: String::new(),
            complaint: settings.complaint.clone(),
            started: false,
            said: None,
        };
        if recorder.yielded {
            tapped.tap.count(Counter::YieldGaps, 1);
        } else {
            recorder.subscribe();
        }
        recorder.follow(0, monotonic_ns());
        recorder.started = true;
        recorder
    }

    fn subscribe(&mut self) -> bool {
        match self.guard.subscribe() {
            Ok(()) => {
                self.trouble = None;
                self.refused = 0;
                self.copies_on = false;
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

    /// At the first wish, and not before: once a kind has been on, each launch costs a little more until CUPTI is
    /// finalized. They stay on: see `switch_to`.
    fn enable_copies(&mut self) {
        if self.copies_on {
            return;
        }
        self.copies_on = true;
        self.missing = 0;
        for kind in [EventKind::Memcpy, EventKind::Memset] {
            if let Err(failed) = self.guard.enable(activity_kind(kind)) {
                self.missing |= kind.bit();
                self.failed(failed);
            }
        }
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
        self.awaited &= leased == 0;
        let unasked = if self.black_box || self.awaited { ALL_KINDS } else { 0 };
        let wanted = if self.stopped { 0 } else { leased | unasked };
        if self.guard.is_subscribed() {
            if self.kinds == 0 {
                // There is nothing to flush yet; and start-up, inside the application's cuInit, must never flush.
                self.next_flush_ns = now_ns + self.flush_ns;
            }
            if wanted != 0 {
                self.enable_copies();
            }
            self.switch_to(wanted & !self.refused & !self.missing);
            if self.kinds != 0 && now_ns >= self.next_flush_ns {
                self.flush();
                self.next_flush_ns = now_ns + self.flush_ns;
            }
        }
        if wanted == 0 {
            self.refused = 0;
        }
        self.say();
    }

    /// Only kernels are switched in CUPTI: switching copies off and on in a running job makes CUPTI's worker thread
    /// free a record's bookkeeping twice (seen on 13.0; MEASUREMENTS.md). Copies and sets stay on, wanted or not.
    fn switch_to(&mut self, wanted: u64) {
        let off = self.kinds & !wanted;
        let on = wanted & !self.kinds;
        if (on | off) == 0 {
            return;
        }
        let kernel = EventKind::Kernel.bit();
        let switched = match () {
            () if on & kernel != 0 => self.guard.enable(activity_kind(EventKind::Kernel)),
            () if off & kernel != 0 => self.guard.disable(activity_kind(EventKind::Kernel)),
            () => Ok(()),
        };
        self.kinds = wanted;
        if let Err(failed) = switched {
            if on & kernel != 0 {
                self.kinds &= !kernel;
                self.refused |= kernel;
            }
            self.failed(failed);
        }
        self.tapped.tap.status().set_kinds(self.kinds);
        self.say();
        if self.started {
            // What CUPTI holds was recorded under the old wishes.
            self.flush();
        }
        self.tapped.want(self.kinds);
    }

    fn flush(&mut self) {
        let start_ns = monotonic_ns();
        match self.guard.flush() {
            Ok(()) if self.refused | self.missing == 0 => self.trouble = None,
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
            let wanted = self.kinds;
            self.switch_to(0);
            // What is still running was asked for, too.
            self.tapped.want(wanted);
            self.flush_last();
            self.tapped.want(0);
            self.tapped.tap.count(Counter::YieldGaps, 1);
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
        if self.copies_on {
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
            () if self.kinds != 0 => State::Recording,
            () => State::Idle,
        };
        let (reason, detail) = match &self.trouble {
            Some((reason, detail)) => (*reason, detail.clone()),
            None if !self.lacking.is_empty() => (Reason::NoRoom, self.lacking.clone()),
            None if self.yielded || self.stopped => (Reason::ByCommand, String::new()),
            None if !self.complaint.is_empty() => (Reason::BadSetting, self.complaint.clone()),
            None => (Reason::None, String::new()),
        };
        Standing { state, reason, detail }
    }
}

/// The timer could not be started, or has failed: nobody is left to give CUPTI back by command.
impl Drop for Recorder {
    fn drop(&mut self) {
        if self.guard.is_subscribed() {
            if self.kinds & EventKind::Kernel.bit() != 0 {
                let _ = self.guard.disable(activity_kind(EventKind::Kernel));
            }
            let _ = self.guard.unsubscribe();
        }
    }
}

fn activity_kind(kind: EventKind) -> u32 {
    match kind {
        EventKind::Kernel => ACTIVITY_KIND_CONCURRENT_KERNEL,
        EventKind::Memcpy => ACTIVITY_KIND_MEMCPY,
        EventKind::Memset => ACTIVITY_KIND_MEMSET,
    }
}
