use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gputap_ringbuf::discover::Found;

use crate::cli::{Format, Refresh, Top};
use crate::error::{Error, Result};
use crate::job::{Console, JobCommand, Waiter};
use crate::launch::{self, Prepared};
use crate::plain::Plan;
use crate::signals::Signals;
use crate::tap::{Attached, Choice, Choices, Everywhere, Family, Launched, Replay, Source, choose_several};
use crate::view::Theme;
use crate::watch::Looks;
use crate::{terminal, watch};

pub fn run(arguments: &Top, theme: Theme) -> Result<ExitCode> {
    if !arguments.target.job.is_empty() {
        return run_job(arguments, theme);
    }
    if let Some(recording) = &arguments.recording {
        return show(&mut replay(recording)?, arguments, theme);
    }
    if arguments.all {
        return all(arguments, theme);
    }
    let mut attached = match arguments.target.pid {
        Some(pid) => Attached::to_pid(pid, arguments.wish.kinds())?,
        None => match choose_several(theme)? {
            Choices::One(Choice::Found(found)) => Attached::open(&found, arguments.wish.kinds())?,
            Choices::All => return all(arguments, theme),
            Choices::One(Choice::Nobody) => return Ok(ExitCode::SUCCESS),
        },
    };
    show(&mut attached, arguments, theme)
}

fn all(arguments: &Top, theme: Theme) -> Result<ExitCode> {
    let kinds = arguments.wish.kinds();
    show(&mut Everywhere::new(|found: &Found| open(found, kinds)), arguments, theme)
}

/// People type a pid where a folder is meant.
fn replay(path: &Path) -> Result<Replay> {
    if path.is_dir() { Replay::open(path) } else { Err(Error::NoFolder { path: path.to_owned() }) }
}

fn show(source: &mut dyn Source, arguments: &Top, theme: Theme) -> Result<ExitCode> {
    if is_live(arguments) {
        watch::on_screen(source, &looks(arguments, theme), until(arguments.seconds))
    } else {
        watch::as_lines(source, plan(arguments, theme), until(arguments.seconds))
    }
}

fn is_live(arguments: &Top) -> bool {
    terminal::is_interactive() && !arguments.plain.are_wanted()
}

fn looks(arguments: &Top, theme: Theme) -> Looks {
    Looks { theme, refresh: arguments.lines.refresh }
}

fn plan(arguments: &Top, theme: Theme) -> Plan {
    Plan::new(&arguments.lines, arguments.plain.format(), arguments.plain.limit(), theme)
}

fn run_job(arguments: &Top, theme: Theme) -> Result<ExitCode> {
    let kinds = arguments.wish.kinds();
    let Prepared { job, mut family } =
        launch::prepare(&arguments.target.job, arguments.launch.replace_injection, kinds)?;
    let open = |found: &Found| open(found, kinds);
    let words = job.words();
    if is_live(arguments) {
        let (rows, columns) = watch::console_size();
        let console = Console::spawn(&job, rows, columns)?;
        family.started(console.pid());
        let mut source = Launched::new(family, words, Instant::now(), open);
        let code = watch::job_on_screen(&mut source, &console, &looks(arguments, theme), until(arguments.seconds));
        source.discard();
        code
    } else {
        run_job_in_lines(arguments, theme, &job, family, open)
    }
}

fn run_job_in_lines(
    arguments: &Top,
    theme: Theme,
    job: &JobCommand,
    mut family: Family,
    open: impl FnMut(&Found) -> Result<Box<dyn Source>>,
) -> Result<ExitCode> {
    // Rows and the job's words in one stream would be neither.
    let child = if arguments.plain.format() == Format::Table { job.spawn() } else { job.spawn_beside_output() }?;
    family.started(child.id());
    let mut source = Launched::new(family, job.words(), Instant::now(), open);
    let waiter = Waiter::new(child);
    let plan = plan(arguments, theme);
    // Where nothing was asked for, a table amid the job's own words would only disturb.
    let at_end = arguments.plain.once || !(arguments.plain.are_wanted() || arguments.lines.refresh != Refresh::Auto);
    let signals = Signals::all()?;
    match watch::job_as_lines(&mut source, &waiter, &signals, plan, at_end, until(arguments.seconds)) {
        Err(Error::NobodyReads) => {
            // Its tap need not record for us any more.
            drop(source);
            watch::job_alone(&waiter, &signals)
        }
        code => {
            source.discard();
            code
        }
    }
}

fn open(found: &Found, kinds: u64) -> Result<Box<dyn Source>> {
    Ok(Box::new(Attached::open(found, kinds)?))
}

fn until(seconds: Option<f64>) -> Option<Instant> {
    seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds))
}
