//! `gputap record`: write what jobs do into a folder, and stay out of their way.

mod folder;
mod post_mortem;
mod recordings;
mod tap;

use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use gputap_reader::recording::{Settings, Triggers};
use gputap_reader::session::REST;

use crate::cli::{Keeping, Record};
use crate::error::Result;
use crate::job::{Waiter, code_of, words_for};
use crate::launch::{self, Prepared};
use crate::output::remark;
use crate::signals::Signals;
use crate::tap::{Attached, Choice, Family, choose};
use crate::view::Theme;
pub use folder::Folder;
use recordings::Recordings;

/// For what a job left behind, and for checksums that are still computed.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);

pub fn run(arguments: &Record, theme: Theme) -> Result<ExitCode> {
    if let Some(whose) = &arguments.post_mortem {
        return post_mortem::run(whose, arguments);
    }
    if !arguments.target.job.is_empty() {
        return run_job(arguments);
    }
    if arguments.all {
        let recordings = Recordings::of(folder(arguments)?, settings(&arguments.keeping))?;
        let recordings = recordings.following(Family::of_all(), arguments.wish.kinds());
        let into = arguments.output.display();
        remark(&format!("recording every tap of this machine into {into}; ^C ends it"));
        return run_until_the_end(recordings, arguments);
    }
    let attached = match arguments.target.pid {
        Some(pid) => Attached::to_pid(pid, arguments.wish.kinds())?,
        None => match choose(theme)? {
            Choice::Found(found) => Attached::open(&found, arguments.wish.kinds())?,
            Choice::Nobody => return Ok(ExitCode::SUCCESS),
        },
    };
    let mut recordings = Recordings::of(folder(arguments)?, settings(&arguments.keeping))?;
    remark(&format!("recording pid {} into {}; ^C ends it", attached.pid(), arguments.output.display()));
    recordings.add(attached)?;
    run_until_the_end(recordings, arguments)
}

fn folder(arguments: &Record) -> Result<Folder> {
    Folder::prepare(&arguments.output)
}

fn settings(keeping: &Keeping) -> Settings {
    let triggers = (!keeping.triggers.is_empty()).then(|| Triggers {
        triggers: keeping.triggers.clone(),
        last_ns: keeping.last,
        after_ns: keeping.after,
        once: keeping.once,
    });
    Settings { max_bytes: keeping.max_size, filter: keeping.filter.clone(), triggers }
}

/// Of processes that are not ours: until they have ended, or somebody ends it.
fn run_until_the_end(mut recordings: Recordings, arguments: &Record) -> Result<ExitCode> {
    let signals = Signals::all()?;
    let end = until(arguments.duration);
    let signal = loop {
        let more = recordings.step();
        let signal = signals.ending();
        let is_time = end.is_some_and(|end| Instant::now() >= end);
        if signal.is_some() || is_time || recordings.is_over() {
            break signal;
        }
        if !more {
            std::thread::sleep(REST);
        }
    };
    recordings.settle(DRAIN_WITHIN, false);
    let complete = recordings.finish();
    Ok(match signal {
        Some(signal) if signal != signal_hook::consts::SIGINT => ExitCode::from(128 + signal as u8),
        _ if complete => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// The job has our streams for itself, and its exit code is ours whatever becomes of the recording.
fn run_job(arguments: &Record) -> Result<ExitCode> {
    let kinds = arguments.wish.kinds();
    let Prepared { job, mut family } =
        launch::prepare(&arguments.target.job, arguments.launch.replace_injection, kinds)?;
    let folder = folder(arguments)?;
    let signals = Signals::all()?;
    let child = match job.spawn() {
        Ok(child) => child,
        Err(error) => {
            folder.remove_if_empty();
            return Err(error);
        }
    };
    family.started(child.id());
    let waiter = Waiter::new(child);
    let mut recordings = Recordings::of(folder, settings(&arguments.keeping))?.following(family, kinds);
    let status = follow(&waiter, &signals, &mut recordings, arguments.duration)?;
    recordings.job_ended();
    recordings.settle(DRAIN_WITHIN, true);
    recordings.finish();
    if !status.success() {
        remark(&format!("the job ended: {}", words_for(status)));
    }
    Ok(ExitCode::from(code_of(status)))
}

fn follow(
    waiter: &Waiter,
    signals: &Signals,
    recordings: &mut Recordings,
    mut duration: Option<f64>,
) -> Result<ExitStatus> {
    let mut end = None;
    loop {
        let more = recordings.step();
        // The time runs from the first tap on: a job may take long until it uses the GPU.
        if recordings.has_begun() {
            end = end.or_else(|| until(duration.take()));
        }
        if end.is_some_and(|end| Instant::now() >= end) || recordings.is_over() {
            end = None;
            recordings.settle(Duration::from_secs(1), false);
            recordings.finish();
            recordings.let_go();
        }
        if let Some(signal) = signals.take() {
            waiter.pass_on(signal);
        }
        if let Some(status) = waiter.within(if more { Duration::ZERO } else { REST })? {
            return Ok(status);
        }
    }
}

fn until(seconds: Option<f64>) -> Option<Instant> {
    seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds))
}
