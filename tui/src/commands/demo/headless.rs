//! The demo for scripts: run to the end, then say what was generated and what arrived.

use std::io;
use std::process::{ExitCode, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use gputap_sim_job::{ChildLine, JobReport};

use super::{HEADLESS_SECONDS, Stage, TITLE, report};
use gputap_reader::session::REST;

use crate::error::{Error, Result};
use crate::launch::Prepared;
use crate::output::{print, print_json, remark};
use crate::signals::Signals;
use crate::tap::{Launched, Source};
use crate::text::table;
use crate::watch;

const DRAIN_WITHIN: Duration = Duration::from_secs(20);
const TABLE_ROWS: usize = 20;

pub fn run(stage: &Stage) -> Result<ExitCode> {
    let signals = Signals::all()?;
    let seconds = stage.arguments.seconds.unwrap_or(HEADLESS_SECONDS);
    let Prepared { job, mut family } = stage.prepared(&stage.spec(seconds, true), false)?;
    let mut command = job.to_command();
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|source| Error::NotStarted { program: job.program, source })?;
    family.started(child.id());
    let pid = child.id();
    // While it is open the job runs, for its seconds at most.
    let mut stdin = child.stdin.take();
    let mut source = Launched::new(family, TITLE.into(), Instant::now(), |found| stage.open(found)).titled(TITLE);
    let ended = wait_for(child);
    let output = loop {
        let more = source.step()?;
        if signals.ending().is_some() {
            drop(stdin.take());
        }
        match ended.recv_timeout(if more { Duration::ZERO } else { REST }) {
            Ok(output) => break output.map_err(|source| Error::Wait { pid, source })?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::Wait { pid, source: io::Error::other("the thread that waits for it ended") });
            }
        }
    };
    let generated = job_report(&output)?;
    watch::drain(&mut source, DRAIN_WITHIN)?;
    let snapshot = source.snapshot();
    stage.finish(&mut source)?;
    let summary = report::Summary::new(&generated, &snapshot);
    if stage.arguments.json {
        print_json(&summary)?;
    } else {
        print(&table::of_snapshot(&snapshot, TABLE_ROWS))?;
        print(&table::others(&snapshot))?;
    }
    Ok(match summary.complaint() {
        None => ExitCode::SUCCESS,
        Some(words) => {
            remark(&words);
            ExitCode::FAILURE
        }
    })
}

fn wait_for(child: std::process::Child) -> Receiver<io::Result<Output>> {
    let (sender, ended) = sync_channel(1);
    thread::spawn(move || {
        // Nobody listens once gputap is on its way out.
        let _ = sender.send(child.wait_with_output());
    });
    ended
}

fn job_report(output: &Output) -> Result<JobReport> {
    let text = String::from_utf8_lossy(&output.stdout);
    let report = text.lines().find_map(|line| match ChildLine::parse(line) {
        ChildLine::Report(report) => Some(*report),
        _ => None,
    });
    report.ok_or_else(|| Error::SimJob { words: format!("it left no report ({})", output.status) })
}
