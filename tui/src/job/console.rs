//! A job on a pseudo-terminal. A thread reads what it prints, always, so that it never waits for a screen; a terminal
//! emulator of bounded size keeps it.

use std::io::{self, Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use pty_process::blocking::{self, Pty};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use rustix::process::{Pid, Signal, kill_process_group};

use super::JobCommand;
use crate::error::Result;
use crate::signals::Signals;

const SCROLLBACK_LINES: usize = 2_000;
const END_OF_TEXT: u8 = 3;

pub struct Console {
    pty: Arc<Pty>,
    child: Mutex<Child>,
    output: Arc<Mutex<Output>>,
}

struct Output {
    emulator: vt100::Parser,
    /// Once the job goes on in front: pass everything on.
    passed_on: bool,
    at_end: bool,
}

impl Console {
    pub fn spawn(job: &JobCommand, rows: u16, columns: u16) -> Result<Console> {
        let failed = |source: pty_process::Error| job.not_started(io::Error::other(source));
        let (pty, child_end) = blocking::open().map_err(failed)?;
        let (rows, columns) = (at_least_one(rows), at_least_one(columns));
        pty.resize(pty_process::Size::new(rows.get(), columns.get())).map_err(failed)?;
        // What we catch is at its default in the job. Ignored, as in a shell's background, it would stay so for ever, and
        // no ^C could reach a job that has a terminal of its own.
        Signals::all()?;
        let child = blocking::Command::new(&job.program)
            .args(&job.arguments)
            .envs(job.variables.iter().map(|(name, value)| (name, value)))
            .spawn(child_end)
            .map_err(|error| match error {
                pty_process::Error::Io(source) => job.not_started(source),
                other => failed(other),
            })?;
        let emulator = vt100::Parser::new(rows, columns, SCROLLBACK_LINES);
        let output = Arc::new(Mutex::new(Output { emulator, passed_on: false, at_end: false }));
        let pty = Arc::new(pty);
        let reader = (Arc::clone(&pty), Arc::clone(&output));
        thread::Builder::new()
            .name("job-output".into())
            .spawn(move || read_all(&reader.0, &reader.1))
            .map_err(|source| job.not_started(source))?;
        Ok(Console { pty, child: Mutex::new(child), output })
    }

    pub fn pid(&self) -> u32 {
        self.child().id()
    }

    pub fn try_wait(&self) -> Result<Option<ExitStatus>> {
        super::try_wait(&mut self.child())
    }

    /// ^C, as a key: the job's terminal makes of it what the job has asked for.
    pub fn interrupt(&self) -> io::Result<()> {
        (&*self.pty).write_all(&[END_OF_TEXT])
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        let (rows, columns) = (at_least_one(rows), at_least_one(columns));
        let mut output = self.output();
        if output.emulator.screen().size() == (rows, columns) {
            return;
        }
        output.emulator.set_size(rows, columns);
        // A job that is gone has no use for the size.
        let _ = self.pty.resize(pty_process::Size::new(rows.get(), columns.get()));
    }

    /// The job's screen scrolled `back` lines, and how many of them there really were.
    pub fn lines(&self, back: usize) -> (Vec<Line<'static>>, usize) {
        let mut output = self.output();
        let screen = output.emulator.screen_mut();
        screen.set_scrollback(back);
        let back = screen.scrollback();
        let rows = screen.size().0.get();
        let lines = (0..rows).map(|row| line(screen, row)).collect();
        screen.set_scrollback(0);
        (lines, back)
    }

    /// The last lines that hold anything, for one who has left the view.
    pub fn last_lines(&self, lines_max: usize) -> Vec<String> {
        let mut output = self.output();
        let screen = output.emulator.screen_mut();
        let columns = screen.size().1.get();
        let mut lines: Vec<String> = screen.rows(0, columns).map(|row| row.trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines.split_off(lines.len().saturating_sub(lines_max))
    }

    /// From now on the job's output goes to our standard output.
    pub fn pass_on(&self) {
        self.output().passed_on = true;
    }

    /// All that the job printed has been read.
    pub fn at_end(&self) -> bool {
        self.output().at_end
    }

    fn signal(&self, signal: Signal) {
        let mut child = self.child();
        // Only while it has not been waited for is the pid its own.
        if let (Ok(None), Some(pid)) = (child.try_wait(), Pid::from_raw(child.id() as i32)) {
            // It leads a session, so its group has its number. That it is gone by now is what was wanted.
            let _ = kill_process_group(pid, signal);
        }
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_all(pty: &Pty, output: &Mutex<Output>) {
    let mut buffer = vec![0; 64 * 1024];
    let lock = || output.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        match (&mut &*pty).read(&mut buffer) {
            Ok(length @ 1..) => {
                let mut output = lock();
                if output.passed_on {
                    let mut stdout = io::stdout().lock();
                    // Whoever closed it does not want it; the job is read on, so that it never waits.
                    let _ = stdout.write_all(&buffer[..length]).and_then(|()| stdout.flush());
                } else {
                    output.emulator.process(&buffer[..length]);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // EIO is how a pseudo-terminal says that nobody holds its other end.
            Ok(0) | Err(_) => break lock().at_end = true,
        }
    }
}

fn line(screen: &vt100::Screen, row: u16) -> Line<'static> {
    let mut line = Line::default();
    for column in 0..screen.size().1.get() {
        let Some(cell) = screen.cell(row, column) else { break };
        if cell.is_wide_continuation() {
            continue;
        }
        let contents = if cell.has_contents() { cell.contents() } else { " " };
        let style = style(cell);
        match line.spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(contents),
            _ => line.push_span(Span::styled(contents.to_owned(), style)),
        }
    }
    line
}

fn style(cell: &vt100::Cell) -> Style {
    let mut style = Style::new();
    if let Some(color) = color(cell.fgcolor()) {
        style = style.fg(color);
    }
    if let Some(color) = color(cell.bgcolor()) {
        style = style.bg(color);
    }
    let modifiers = [
        (cell.bold(), Modifier::BOLD),
        (cell.dim(), Modifier::DIM),
        (cell.italic(), Modifier::ITALIC),
        (cell.underline(), Modifier::UNDERLINED),
        (cell.inverse(), Modifier::REVERSED),
    ];
    modifiers.into_iter().filter(|(on, _)| *on).fold(style, |style, (_, modifier)| style.add_modifier(modifier))
}

fn color(color: vt100::Color) -> Option<Color> {
    match color {
        vt100::Color::Default => None,
        vt100::Color::Idx(index) => Some(Color::Indexed(index)),
        vt100::Color::Rgb(r, g, b) => Some(Color::Rgb(r, g, b)),
    }
}

fn at_least_one(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN)
}
