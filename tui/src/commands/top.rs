use std::process::ExitCode;
use std::time::{Duration, Instant};

use gputap_ringbuf::discover::Found;

use crate::cli::Top;
use crate::error::Result;
use crate::job::{Console, Waiter};
use crate::launch::{self, Prepared};
use crate::tap::{Attached, Choice, Launched, Source, choose};
use crate::view::Theme;
use crate::{terminal, watch};

pub fn run(arguments: &Top, theme: Theme) -> Result<ExitCode> {
    if !arguments.target.job.is_empty() {
        return run_job(arguments, theme);
    }
    let mut attached = match arguments.target.pid {
        Some(pid) => Attached::to_pid(pid, arguments.wish.kinds())?,
        None => match choose(theme)? {
            Choice::Found(found) => Attached::open(&found, arguments.wish.kinds())?,
            Choice::Nobody => return Ok(ExitCode::SUCCESS),
        },
    };
    if terminal::is_interactive() {
        watch::on_screen(&mut attached, theme, until(arguments.seconds))
    } else {
        watch::as_tables(&mut attached, until(arguments.seconds))
    }
}

fn run_job(arguments: &Top, theme: Theme) -> Result<ExitCode> {
    let kinds = arguments.wish.kinds();
    let Prepared { job, mut family } =
        launch::prepare(&arguments.target.job, arguments.launch.replace_injection, kinds)?;
    let open = |found: &Found| open(found, kinds);
    let words = job.words();
    if terminal::is_interactive() {
        let (rows, columns) = watch::console_size();
        let console = Console::spawn(&job, rows, columns)?;
        family.started(console.pid());
        let mut source = Launched::new(family, words, Instant::now(), open);
        let code = watch::job_on_screen(&mut source, &console, theme, until(arguments.seconds));
        source.discard();
        code
    } else {
        let child = job.spawn()?;
        family.started(child.id());
        let mut source = Launched::new(family, words, Instant::now(), open);
        let code = watch::job_as_table(&mut source, &Waiter::new(child), until(arguments.seconds));
        source.discard();
        code
    }
}

fn open(found: &Found, kinds: u64) -> Result<Box<dyn Source>> {
    Ok(Box::new(Attached::open(found, kinds)?))
}

fn until(seconds: Option<f64>) -> Option<Instant> {
    seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds))
}
