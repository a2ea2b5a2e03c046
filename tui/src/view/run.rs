//! The loop: step the source, take keys, draw. It waits for keys with a timeout and is never busy without cause.

use std::io;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::Backend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::{Rect, Size};
use rustix::io::Errno;
use signal_hook::consts::SIGHUP;

use gputap_reader::session::REST;

use super::draw::{draw, timeline_columns};
use super::input::{self, Action};
use super::layout::Areas;
use super::pages::Tab;
use super::state::{Job, View};
use super::theme::Theme;
use crate::error::{Error, Result};
use crate::job::Console;
use crate::signals::Signals;
use crate::tap::Source;

/// Events taken between two pictures: a pasted page must not hold up the tap.
const EVENTS_MAX: usize = 64;
/// After SIGTERM a job has this long for what it must still do.
const END_WITHIN: Duration = Duration::from_secs(10);

pub struct Options {
    pub theme: Theme,
    /// Between two pictures that nothing hastens.
    pub refresh: Duration,
    /// End the view by itself then.
    pub until: Option<Instant>,
    /// Once the target is gone: keep the last picture until a key, or quit.
    pub stay: bool,
    /// The job is there for the view's sake: keys that leave do not ask about it.
    pub for_show: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    Quit,
    /// The job goes on in front of this terminal.
    Foreground,
    /// By this signal.
    Signal(i32),
}

pub fn run<B>(
    terminal: &mut Terminal<B>,
    source: &mut dyn Source,
    console: Option<&Console>,
    signals: &Signals,
    options: &Options,
) -> Result<Leaving>
where
    B: Backend<Error = io::Error>,
{
    match watch(terminal, source, console, signals, options) {
        // The terminal was closed, and the signal that says so is on its way.
        Err(Error::Terminal(error)) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => {
            Ok(Leaving::Signal(SIGHUP))
        }
        left => left,
    }
}

fn watch<B>(
    terminal: &mut Terminal<B>,
    source: &mut dyn Source,
    console: Option<&Console>,
    signals: &Signals,
    options: &Options,
) -> Result<Leaving>
where
    B: Backend<Error = io::Error>,
{
    let job = if console.is_some() { Job::Running } else { Job::Foreign };
    let mut view = View::new(job);
    view.for_show = options.for_show;
    let mut session = Session { view, console, kill_at: None, quit_at_end: false, dirty: true };
    let mut draw_at = Instant::now();
    loop {
        let more = source.step()?;
        let now = Instant::now();
        session.follow_job(source, now)?;
        if let Some(signal) = signals.ending() {
            return Ok(Leaving::Signal(signal));
        }
        let over = options.until.is_some_and(|until| now >= until) || (source.ended() && !options.stay);
        if over || (session.quit_at_end && session.view.job != Job::Running) {
            return Ok(Leaving::Quit);
        }
        if session.dirty || now >= draw_at {
            session.picture(terminal, source, options.theme, now)?;
            draw_at = now + options.refresh;
        }
        let wait = if more { Duration::ZERO } else { REST.min(draw_at.saturating_duration_since(now)) };
        if let Some(leaving) = session.take_events(wait)? {
            return Ok(leaving);
        }
    }
}

struct Session<'a> {
    view: View,
    console: Option<&'a Console>,
    kill_at: Option<Instant>,
    quit_at_end: bool,
    /// A key changed something: draw at once.
    dirty: bool,
}

impl Session<'_> {
    fn follow_job(&mut self, source: &dyn Source, now: Instant) -> Result<()> {
        let Some(console) = self.console else { return Ok(()) };
        if self.view.job != Job::Running {
            return Ok(());
        }
        if let Some(status) = console.try_wait()?
            && source.ended()
        {
            self.view.job = Job::Ended(crate::job::words_for(status));
            self.dirty = true;
        }
        if self.kill_at.is_some_and(|at| now >= at) {
            self.kill_at = None;
            console.kill();
            self.view.say("the job did not end: killed", now);
        }
        Ok(())
    }

    fn picture<B>(
        &mut self,
        terminal: &mut Terminal<B>,
        source: &mut dyn Source,
        theme: Theme,
        now: Instant,
    ) -> Result<()>
    where
        B: Backend<Error = io::Error>,
    {
        let Size { width, height } = terminal.size().map_err(Error::Terminal)?;
        let areas = Areas::of(Rect::new(0, 0, width, height));
        self.view.update(source.snapshot());
        self.view.set_page(if self.view.tab == Tab::Output { areas.body.height.into() } else { areas.table_rows() });
        if let Some(console) = self.console {
            console.resize(areas.body.height, areas.body.width);
        }
        self.ask(source, areas.body.width, now);
        terminal.draw(|frame| draw(frame, &self.view, theme, now)).map_err(Error::Terminal)?;
        self.dirty = false;
        Ok(())
    }

    /// What the view on the screen shows beside the snapshot.
    fn ask(&mut self, source: &mut dyn Source, width: u16, now: Instant) {
        if let (Tab::Output, Some(console)) = (self.view.tab, self.console) {
            (self.view.log, self.view.log_back) = console.lines(self.view.log_back);
        }
        let (pane, frozen) = (self.view.tab.pane(), self.view.frozen);
        self.view.panes.serve(source, pane, timeline_columns(width), frozen, now);
    }

    fn take_events(&mut self, mut wait: Duration) -> Result<Option<Leaving>> {
        for _ in 0..EVENTS_MAX {
            if !event::poll(wait).map_err(Error::Terminal)? {
                break;
            }
            wait = Duration::ZERO;
            self.dirty = true;
            match event::read().map_err(Error::Terminal)? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    let now = Instant::now();
                    let action = input::key(&mut self.view, key, now);
                    if let Some(leaving) = self.act(action, now) {
                        return Ok(Some(leaving));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn act(&mut self, action: Action, now: Instant) -> Option<Leaving> {
        match (action, self.console) {
            (Action::Nothing, _) => None,
            (Action::Quit, _) => Some(Leaving::Quit),
            (Action::LeaveView, _) => Some(Leaving::Foreground),
            (Action::Interrupt, Some(console)) => {
                if let Err(error) = console.interrupt() {
                    self.view.say(format!("^C did not reach the job: {error}"), now);
                }
                None
            }
            (Action::EndJob, Some(console)) => {
                console.terminate();
                self.kill_at = Some(now + END_WITHIN);
                self.quit_at_end = true;
                self.view.say("asked the job to end", now);
                None
            }
            (Action::Interrupt | Action::EndJob, None) => Some(Leaving::Quit),
        }
    }
}
