//! Showing a source: as the live view on a terminal, as plain tables elsewhere.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::terminal::size;

use gputap_reader::session::REST;

use crate::cli::Refresh;
use crate::error::{Error, Result};
use crate::job::{Console, Waiter, code_of};
use crate::output::print;
use crate::plain::{Plan, Printer};
use crate::signals::Signals;
use crate::tap::Source;
use crate::terminal::Screen;
use crate::view::{self, Leaving, Options, Theme};

/// Between two pictures of the live view, where nobody said how often.
const DRAW: Duration = Duration::from_millis(200);
/// Of the job's output, once the view is gone.
const LAST_LINES: usize = 20;
/// What a job printed last may still be on its way.
const OUTPUT_WITHIN: Duration = Duration::from_secs(1);

/// How the live view is to be.
pub struct Looks {
    pub theme: Theme,
    pub refresh: Refresh,
}

/// The size that a job's terminal begins with; the view corrects it when it draws.
pub fn console_size() -> (u16, u16) {
    let (columns, rows) = size().unwrap_or((80, 24));
    (rows, columns)
}

/// A tap of a process that was started elsewhere, on a terminal.
pub fn on_screen(source: &mut dyn Source, looks: &Looks, until: Option<Instant>) -> Result<ExitCode> {
    let signals = Signals::of_a_view()?;
    let options = Options { theme: looks.theme, refresh: looks.refresh.or(DRAW), until, stay: true, for_show: false };
    Ok(exit_code_after(look(source, None, &signals, &options)?))
}

/// The view, on the terminal that is ours for as long as it lasts.
fn look(source: &mut dyn Source, console: Option<&Console>, signals: &Signals, options: &Options) -> Result<Leaving> {
    let mut screen = Screen::take()?;
    view::run(&mut screen.terminal, source, console, signals, options)
}

/// A job that was started here, on a terminal.
pub fn job_on_screen(
    source: &mut dyn Source,
    console: &Console,
    looks: &Looks,
    until: Option<Instant>,
) -> Result<ExitCode> {
    let signals = Signals::all()?;
    let options = Options { theme: looks.theme, refresh: looks.refresh.or(DRAW), until, stay: true, for_show: false };
    let leaving = look(source, Some(console), &signals, &options)?;
    print_last_lines(console)?;
    match (leaving, console.try_wait()?) {
        (Leaving::Signal(_), None) => console.terminate(),
        (_, Some(status)) => return Ok(ExitCode::from(code_of(status))),
        (_, None) => return in_front(console, &signals),
    }
    Ok(exit_code_after(leaving))
}

/// A job that was started to be looked at and for nothing else: leaving is leaving.
pub fn demo_on_screen(
    source: &mut dyn Source,
    console: &Console,
    looks: &Looks,
    until: Option<Instant>,
) -> Result<ExitCode> {
    let signals = Signals::all()?;
    let options = Options { theme: looks.theme, refresh: looks.refresh.or(DRAW), until, stay: true, for_show: true };
    Ok(exit_code_after(look(source, Some(console), &signals, &options)?))
}

/// Pictures in lines; to be used where no live view can be, or is wanted.
pub fn as_lines(source: &mut dyn Source, plan: Plan, until: Option<Instant>) -> Result<ExitCode> {
    let signals = Signals::all()?;
    let mut printer = Printer::new(plan, Instant::now());
    loop {
        let more = source.step()?;
        let now = Instant::now();
        let over = source.ended() || until.is_some_and(|until| now >= until);
        let signal = signals.ending();
        if over || signal.is_some() || printer.is_due(now) {
            printer.print(&source.snapshot(), now)?;
        }
        if let Some(signal) = signal {
            return Ok(exit_code_after(Leaving::Signal(signal)));
        }
        if over || printer.is_done() {
            return Ok(ExitCode::SUCCESS);
        }
        if !more {
            thread::sleep(REST);
        }
    }
}

/// A job on our own streams, and its picture once it has ended, or at `until`; before that too, unless only `at_end`.
pub fn job_as_lines(
    source: &mut dyn Source,
    waiter: &Waiter,
    signals: &Signals,
    plan: Plan,
    at_end: bool,
    mut until: Option<Instant>,
) -> Result<ExitCode> {
    let mut printer = Printer::new(plan, Instant::now());
    let status = loop {
        let more = source.step()?;
        let now = Instant::now();
        let over = until.is_some_and(|until| now >= until);
        if over || (!at_end && printer.is_due(now)) {
            until = until.filter(|_| !over);
            printer.print(&source.snapshot(), now)?;
        }
        if let Some(signal) = signals.take() {
            waiter.pass_on(signal);
        }
        if let Some(status) = waiter.within(if more { Duration::ZERO } else { REST })? {
            break status;
        }
    };
    drain(source, Duration::from_secs(5))?;
    if !printer.is_done() {
        match printer.print(&source.snapshot(), Instant::now()) {
            Ok(()) | Err(Error::NobodyReads) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(ExitCode::from(code_of(status)))
}

/// A job on our own streams that is not watched any more.
pub fn job_alone(waiter: &Waiter, signals: &Signals) -> Result<ExitCode> {
    loop {
        if let Some(signal) = signals.take() {
            waiter.pass_on(signal);
        }
        if let Some(status) = waiter.within(REST)? {
            return Ok(ExitCode::from(code_of(status)));
        }
    }
}

/// Reads what a job that has ended left, for a bounded time.
pub fn drain(source: &mut dyn Source, within: Duration) -> Result<()> {
    let deadline = Instant::now() + within;
    loop {
        let more = source.step()?;
        if (source.ended() && source.pending_checksums() == 0) || Instant::now() >= deadline {
            return Ok(());
        }
        if !more {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Without the view: the job's output is passed on, and what is asked of us is asked of it.
fn in_front(console: &Console, signals: &Signals) -> Result<ExitCode> {
    console.pass_on();
    let status = loop {
        match signals.take() {
            Some(signal_hook::consts::SIGINT) => {
                // If it cannot be written to, the job is about to be waited for.
                let _ = console.interrupt();
            }
            Some(_) => console.terminate(),
            None => {}
        }
        if let Some(status) = console.try_wait()? {
            break status;
        }
        thread::sleep(REST);
    };
    let deadline = Instant::now() + OUTPUT_WITHIN;
    while !console.at_end() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    Ok(ExitCode::from(code_of(status)))
}

fn print_last_lines(console: &Console) -> Result<()> {
    let lines = console.last_lines(LAST_LINES);
    if lines.is_empty() { Ok(()) } else { print(&(lines.join("\n") + "\n")) }
}

fn exit_code_after(leaving: Leaving) -> ExitCode {
    match leaving {
        Leaving::Signal(signal) => ExitCode::from(128_u8.saturating_add(signal.try_into().unwrap_or(0))),
        Leaving::Quit | Leaving::Foreground => ExitCode::SUCCESS,
    }
}
