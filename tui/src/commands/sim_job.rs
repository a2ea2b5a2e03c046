//! The demo's job: a training loop on the fake driver.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use gputap_sim_job::{JobSpec, Progress, run_with_progress};

use crate::cli::SimJob;
use crate::error::{Error, Result};
use crate::output::print;

const LINE_EVERY: Duration = Duration::from_millis(500);
/// Driver calls of a thread between two lines of a training log.
const CALLS_PER_STEP: u64 = 200;

pub fn run(arguments: &SimJob) -> Result<ExitCode> {
    if arguments.talk { talk(arguments) } else { Ok(gputap_sim_job::child(&arguments.words)) }
}

/// Prints what a training run prints, since a log pane without a log shows nothing.
fn talk(arguments: &SimJob) -> Result<ExitCode> {
    let failed = |words: String| Error::SimJob { words };
    let spec = JobSpec::from_words(&arguments.words).map_err(|error| failed(error.to_string()))?;
    let progress = Progress::new(spec.threads);
    // The view ends it with a signal, whose default does the rest.
    let stop = AtomicBool::new(false);
    print(&format!("training a small GPT with {} threads on a simulated GPU\n", spec.threads))?;
    let (done, is_done) = channel::<()>();
    let report = std::thread::scope(|scope| {
        let progress = &progress;
        scope.spawn(move || {
            while is_done.recv_timeout(LINE_EVERY) == Err(RecvTimeoutError::Timeout) {
                // Whoever listened has gone; the job has its own end.
                let _ = print(&line(progress));
            }
        });
        let report = run_with_progress(&spec, &stop, progress);
        drop(done);
        report
    });
    let report = report.map_err(|error| failed(error.to_string()))?;
    print(&format!("done: {} steps, {} kernels\n", report.steps, report.kernels))?;
    Ok(ExitCode::SUCCESS)
}

fn line(progress: &Progress) -> String {
    let counts = progress.counts();
    let calls = counts.iter().filter(|&&count| count != Progress::DONE).max().copied().unwrap_or(0);
    let step = calls / CALLS_PER_STEP;
    let loss = 2.0 + 8.8 * (-(step as f64) / 300.0).exp();
    format!("step {step:>7}  loss {loss:.4}  lr 3.0e-04\n")
}
