//! An attached tap, recorded on the side or not.

use std::thread;
use std::time::{Duration, Instant};

use gputap_reader::clock::Now;
use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::model::timeline::{Stretch, Timeline};
use gputap_reader::recording::{Recorder, Recording};
use gputap_reader::session::{NoSink, Options, Progress, Remark, Session, SessionError, Standing};
use gputap_ringbuf::attach::AttachError;
use gputap_ringbuf::discover::Found;

use super::Source;
use crate::error::Result;

/// A step takes at most about so long, however much there is: keys and signals wait for it.
const STEP_MAX: Duration = Duration::from_millis(30);
/// A process that has just begun with CUDA has its tap within this.
const MADE_WITHIN: Duration = Duration::from_secs(1);

pub struct Attached {
    session: Session,
    recorder: Option<Recorder>,
    progress: Progress,
}

impl Attached {
    /// To a living process, whose tap may be in the making; asks for these kinds.
    pub fn to_pid(pid: u32, kinds: u64) -> Result<Attached> {
        let deadline = Instant::now() + MADE_WITHIN;
        loop {
            match Session::attach(pid, Options { kinds, ..Options::all() }, Now::read()) {
                Err(SessionError::Attach(AttachError::Header { .. } | AttachError::Gone { .. }))
                    if Instant::now() < deadline =>
                {
                    thread::sleep(STEP_MAX);
                }
                attached => return Ok(Attached::new(attached?)),
            }
        }
    }

    /// Dead taps too, as long as their segment is there.
    pub fn open(found: &Found, kinds: u64) -> Result<Attached> {
        Attached::open_with(found, Options { kinds, ..Options::all() })
    }

    pub fn open_with(found: &Found, options: Options) -> Result<Attached> {
        Ok(Attached::new(Session::open(found, options, Now::read())?))
    }

    fn new(session: Session) -> Attached {
        Attached { session, recorder: None, progress: Progress::default() }
    }

    /// From here on all that is read is written too.
    pub fn record_into(mut self, recording: &Recording) -> Result<Attached> {
        self.recorder = Some(recording.recorder(&self.session, Now::read())?);
        Ok(self)
    }

    pub fn pid(&self) -> u32 {
        self.session.pid()
    }

    /// To be told once each: trouble, and what is not recorded as it was asked for.
    pub fn remarks(&self) -> Vec<Remark> {
        self.session.remarks(Now::read())
    }

    pub fn standing(&self) -> Standing {
        self.session.standing(Now::read())
    }

    pub fn is_cut(&self) -> bool {
        self.session.is_cut()
    }
}

impl Source for Attached {
    /// An error is the recording's, which takes nothing more after it; what was read is counted all the same, and later
    /// steps go on.
    fn step(&mut self) -> Result<bool> {
        let until = Instant::now() + STEP_MAX;
        loop {
            let now = Now::read();
            let stepped = match &mut self.recorder {
                Some(recorder) => {
                    recorder.look(&self.session);
                    self.session.step(now, recorder)
                }
                None => self.session.step(now, &mut NoSink),
            };
            let session = &self.session;
            let kept = stepped.and_then(|progress| {
                self.progress = progress;
                self.recorder.as_mut().map_or(Ok(()), |recorder| recorder.keep(now, session))
            });
            kept?;
            if !self.progress.more || Instant::now() >= until {
                return Ok(self.progress.more);
            }
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        self.session.snapshot(Now::read())
    }

    fn ended(&self) -> bool {
        self.session.has_ended()
    }

    fn pending_checksums(&self) -> usize {
        self.progress.pending_checksums
    }

    fn finish(&mut self) -> Result<()> {
        let recorder = self.recorder.take();
        Ok(recorder.map_or(Ok(()), |recorder| recorder.finish(Now::read(), &self.session))?)
    }

    fn timeline(&mut self, stretch: Stretch) -> Timeline {
        self.session.timeline(stretch, Now::read())
    }

    fn step_ns(&mut self) -> Option<u64> {
        self.session.step_ns(Now::read())
    }

    fn discard(&mut self) {
        let found = self.session.found();
        // Named objects of our own host only; anything else goes with its process.
        if self.session.has_ended() && !self.session.is_cut() && found.segment.starts_with("/dev/shm") {
            for path in [&found.control, &found.segment] {
                // Swept by somebody else, or not ours to remove: `gputap clean` will tell.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}
