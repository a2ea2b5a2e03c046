//! The job as a child process: words in, heartbeat lines and one line of JSON out.

use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::job::run_with_progress;
use crate::progress::Progress;
use crate::report::JobReport;
use crate::spec::JobSpec;

/// A line that a job in a child process writes to its stdout.
#[derive(Debug)]
pub enum ChildLine {
    /// `progress N N …`: each thread's count, [`Progress::DONE`] for one that has ended.
    Progress(Vec<u64>),
    /// The report, as JSON.
    Report(Box<JobReport>),
    /// Anything else.
    Other(String),
}

impl ChildLine {
    pub fn parse(line: &str) -> Self {
        if let Some(Ok(counts)) = line.strip_prefix("progress ").map(|n| n.split(' ').map(str::parse).collect()) {
            return Self::Progress(counts);
        }
        if line.starts_with('{')
            && let Ok(report) = serde_json::from_str(line)
        {
            return Self::Report(Box::new(report));
        }
        Self::Other(line.to_owned())
    }
}

/// Runs the job that `words` describe ([`JobSpec::from_words`]) as this process's work, and returns its exit code:
/// 0, 1 if the job failed, 2 if the words make no job.
pub fn child<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> ExitCode {
    let spec = match JobSpec::from_words(words) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("job: {error}");
            return ExitCode::from(2);
        }
    };
    static STOP: AtomicBool = AtomicBool::new(false);
    if spec.until_stdin_closes {
        std::thread::spawn(|| {
            let _ = std::io::copy(&mut std::io::stdin().lock().by_ref(), &mut std::io::sink());
            STOP.store(true, Ordering::Relaxed);
        });
    }
    let progress = Progress::new(spec.threads);
    let result = with_heartbeat(spec.heartbeat_ms, &progress, || run_with_progress(&spec, &STOP, &progress));
    let written = match result {
        Ok(report) => write_report(&spec, &report).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("job: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_report(spec: &JobSpec, report: &JobReport) -> std::io::Result<()> {
    let line = serde_json::to_string(report)? + "\n";
    match &spec.report_file {
        Some(path) => std::fs::write(path, line),
        None => std::io::stdout().lock().write_all(line.as_bytes()),
    }
}

/// Writes the progress lines while `work` runs.
fn with_heartbeat<R>(period_ms: u64, progress: &Progress, work: impl FnOnce() -> R) -> R {
    if period_ms == 0 {
        return work();
    }
    let ended = (Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut over = ended.0.lock().unwrap_or_else(PoisonError::into_inner);
            while !*over {
                let counts: Vec<_> = progress.counts().iter().map(u64::to_string).collect();
                // Who reads may be gone; the job goes on.
                let _ = writeln!(std::io::stdout().lock(), "progress {}", counts.join(" "));
                let waited = ended.1.wait_timeout(over, Duration::from_millis(period_ms));
                over = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        });
        let result = work();
        *ended.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        ended.1.notify_all();
        result
    })
}
