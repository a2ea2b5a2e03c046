//! Attached to one tap: asks for recording, drains, counts, and knows when the process has ended.
//!
//! [`Session::step`] does one bounded portion of work and returns; the caller paces, passes the time in, and draws
//! [`Session::snapshot`]s. Late attach is the ordinary case: names and cubins are read from the store, which never
//! loses one, and the lanes give what they still hold.

mod cubins;
mod doubts;
mod lanes;
mod lease;
mod liveness;
mod names;
mod notes;
mod report;
mod sink;
mod wish;

pub use notes::Remark;
pub(crate) use notes::{is_trouble, of_the_tap};
pub use report::Standing;
pub(crate) use report::{clock, clock_point, cuda_version, kind_names, reason, state_name, totals};
pub use sink::{EventSink, NoSink, StoredCubin};

use crate::clock::Now;
use crate::crc::{CuptiCrc, Deadlines, Program, candidates};
use crate::model::Model;
use crate::model::snapshot::{ClockPoint, Snapshot};
use crate::model::timeline::{Stretch, Timeline};
use crate::recording::RecordError;
use cubins::Cubins;
use doubts::Doubts;
use gputap_ringbuf::attach::{AttachError, Attached, Counters};
use gputap_ringbuf::discover::{self, FindError, Found};
use gputap_ringbuf::event::{BASIC_KINDS, EventKind};
use gputap_ringbuf::header::identity::Identity;
use gputap_ringbuf::header::status::{State, Status};
use lanes::Lanes;
use lease::Lease;
use liveness::Watch;
use names::Names;
use sink::Guarded;
use std::time::Duration;

/// How often the load counts of modules are looked at again.
const LOADS_EVERY_NS: u64 = 250_000_000;

/// How long a caller rests after a step that left nothing to do. Long enough that waiting costs little of a core, short
/// enough that a thread of the process, which writes 5 million events of 96 bytes a second at most, does not come round
/// its lane of 8 MiB meanwhile.
pub const REST: Duration = Duration::from_millis(16);

/// What a session should do.
#[derive(Debug)]
pub struct Options {
    /// Kinds to ask the shim for, a mask of [`gputap_ringbuf::event::EventKind::bit`]s. 0 only watches: no lease.
    pub kinds: u64,
    /// Who computes CUPTI's checksums; None leaves them out.
    pub cupti_crc: Option<CuptiCrc>,
}

impl Options {
    /// Kernels, copies and memsets, and CUPTI's checksums by a child of this binary from the libcupti that [`candidates()`] finds. The
    /// binary must answer [`crate::crc::child_request`] first thing in `main`.
    pub fn all() -> Options {
        let libraries = || candidates(&|name| std::env::var_os(name));
        let crc = |program| CuptiCrc::new(program, libraries(), Deadlines::default());
        Options { kinds: BASIC_KINDS, cupti_crc: Program::this_binary().ok().map(crc) }
    }
}

/// Why a tap cannot be attached to.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error("the segment of process {pid} was cut while it was opened: somebody truncated its file")]
    Cut { pid: u32 },
}

/// What one step did, and what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events delivered by this step.
    pub delivered: u64,
    /// More is there already: step again at once.
    pub more: bool,
    /// The process has ended and everything that it left has been read; or the segment was cut.
    pub ended: bool,
    /// CUPTI's checksums that have not come back yet.
    pub pending_checksums: usize,
}

/// One reader's connection to one tap. Any number of sessions may read the same tap.
pub struct Session {
    found: Found,
    attached: Attached,
    command: String,
    /// PyTorch is in the process: its profiler wants the one subscription that the tap has.
    has_torch: bool,
    began: Now,
    /// Kinds that were asked for.
    wish: u64,
    model: Model,
    doubts: Doubts,
    names: Names,
    cubins: Cubins,
    lanes: Lanes,
    lease: Lease,
    watch: Watch,
    /// The last state seen while the process lived.
    last_state: Option<State>,
    /// What the tap said of itself when it was last seen whole.
    figures: (Status, Counters),
    cut: bool,
    gone: bool,
    ended: bool,
    loads_ns: u64,
}

impl Session {
    /// Finds the living tap of process `pid` and attaches to it.
    ///
    /// # Errors
    /// No such process, no tap in it, no permission, or another version's segment; the words say what to do.
    pub fn attach(pid: u32, options: Options, now: Now) -> Result<Session, SessionError> {
        Session::open(&discover::find(pid)?, options, now)
    }

    /// Attaches to a tap that was found, be its process alive or dead.
    ///
    /// # Errors
    /// The segment is gone, not readable, or another version's.
    pub fn open(found: &Found, options: Options, now: Now) -> Result<Session, SessionError> {
        let attached = Attached::open(found)?;
        let figures = figures(&attached).ok_or(SessionError::Cut { pid: found.pid })?;
        let wish = if found.alive { options.kinds } else { 0 };
        let mut lease = Lease::new(wish);
        lease.step(found, now);
        let mut model = Model::new(now);
        if wish & EventKind::Launch.bit() != 0 {
            model.expect_launches();
        }
        let doubts = Doubts::new(&figures.0, &figures.1, &attached.clock_points(), &mut model, now);
        Ok(Session {
            command: if found.local { crate::process::command(found.pid) } else { String::new() },
            has_torch: found.local && crate::process::maps_library(found.pid, "libtorch_cuda.so"),
            began: now,
            wish,
            model,
            doubts,
            names: Names::new(attached.definitions()),
            cubins: Cubins::new(attached.cubins(), options.cupti_crc),
            lanes: Lanes::new(&attached),
            lease,
            watch: Watch::new(found, &attached),
            last_state: None,
            figures,
            cut: false,
            gone: false,
            ended: false,
            loads_ns: 0,
            found: found.clone(),
            attached,
        })
    }

    /// Renews the lease and reads a bounded portion of what is new: names, then events, then cubins. Due every 500 ms
    /// at the latest, or the shim lets the lease lapse.
    ///
    /// # Errors
    /// The sink's first error. The step was done all the same, and the figures are whole.
    pub fn step(&mut self, now: Now, sink: &mut dyn EventSink) -> Result<Progress, RecordError> {
        // Looked at before draining: what a process wrote before it went is there to be read.
        self.look_at_the_process(now);
        let before = self.lanes.tally.delivered;
        let mut sink = Guarded::new(sink);
        let more_names = !self.cut && self.names.step(&mut self.model, &mut sink);
        // Events of names that are not read yet wait: they would count as unnamed.
        let more_events = more_names
            || (!self.cut && self.lanes.step(&self.attached, &mut self.names, &mut self.model, now, &mut sink));
        let (status, counters) = &self.figures;
        self.doubts.look_at_loss(status, counters, &self.lanes.tally, &mut self.model, now);
        let more_cubins = self.cubins.step(&mut self.model, &mut sink);
        self.cut |= self.attached.is_cut();
        let more = !self.cut && (more_events || more_cubins);
        self.ended = self.cut || (self.gone && !more);
        if self.ended || now.monotonic_ns.saturating_sub(self.loads_ns) >= LOADS_EVERY_NS {
            self.loads_ns = now.monotonic_ns;
            self.cubins.refresh_loads(&mut self.model);
        }
        sink.put(|sink| sink.step_ends());
        sink.finish()?;
        Ok(Progress {
            delivered: self.lanes.tally.delivered - before,
            more,
            ended: self.ended,
            pending_checksums: self.cubins.pending_checksums(),
        })
    }

    fn look_at_the_process(&mut self, now: Now) {
        match figures(&self.attached) {
            Some(figures) if !self.cut => self.figures = figures,
            _ => self.cut = true,
        }
        self.doubts.look_at_clock(&self.figures.1, &mut self.model, now);
        let status = &self.figures.0;
        self.gone = self.watch.is_gone(status.heartbeat_ns, now);
        if self.gone || self.cut {
            self.lease.release();
        } else {
            self.lease.step(&self.found, now);
        }
        self.last_state = status.state;
    }

    /// Everything known, as plain data.
    pub fn snapshot(&self, now: Now) -> Snapshot {
        report::snapshot(self, now)
    }

    /// The part of the snapshot that has no rows: cheap, however much was seen.
    pub fn standing(&self, now: Now) -> Standing {
        report::standing(self, now)
    }

    /// What the tap says of itself now, and which clock CUPTI reads: `wall` or `monotonic`.
    pub(crate) fn versions(&self) -> (Status, &'static str) {
        let status = self.attached.status();
        let source = report::clock_source(&status);
        (status, source)
    }

    /// How often each cubin was loaded so far, by its slot in the store.
    pub fn loads(&self) -> Vec<(u32, u64)> {
        self.model.modules.loads()
    }

    /// The process has ended, and had not said that it would: it was killed, it crashed, or it left by `_exit`.
    pub fn was_killed(&self) -> bool {
        self.ended && !self.cut && matches!(self.last_state, Some(State::Idle | State::Recording | State::BlackBox))
    }

    /// How busy each stream was; up to now where `stretch.end_ns` is 0.
    pub fn timeline(&self, stretch: Stretch, now: Now) -> Timeline {
        self.model.timeline(stretch, now)
    }

    /// How long a step of the job takes, where its work repeats itself.
    pub fn step_ns(&self, now: Now) -> Option<u64> {
        self.model.step_ns(now)
    }

    /// What a person wants to hear at once, each once: trouble, and what is not recorded as it was asked for. The
    /// snapshot has it too.
    pub fn remarks(&self, now: Now) -> Vec<Remark> {
        notes::remarks(self, &self.figures.0, now)
    }

    /// The tap's latest reading of both clocks.
    pub fn clock_point(&self) -> Option<ClockPoint> {
        let point = self.attached.clock().map(report::clock_point);
        // What a cut segment says is zeros.
        if self.attached.is_cut() { None } else { point }
    }

    /// The process has ended and everything that it left has been read; or the segment was cut.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Somebody truncated the segment while it was read: what had not been read by then is lost. Only where
    /// [`gputap_ringbuf::attach::guard::catch_sigbus`] was called; elsewhere it may be the end of this process.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The process id, as this reader sees it.
    pub fn pid(&self) -> u32 {
        self.found.pid
    }

    pub fn identity(&self) -> Identity {
        self.attached.identity()
    }
}

/// What the tap says of itself; `None` if its segment is cut.
fn figures(attached: &Attached) -> Option<(Status, Counters)> {
    let figures = (attached.status(), attached.counters());
    (!attached.is_cut()).then_some(figures)
}
