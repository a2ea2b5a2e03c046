//! Which of the taps that are there: the only one, or the one that a person chooses.

use std::io::{self, IsTerminal};

use gputap_reader::process::command;
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::{self, Found};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::text::{Line, Span};
use ratatui::{Frame, Terminal};

use crate::error::{Error, Result};
use crate::terminal::{self, Screen};
use crate::text;
use crate::view::{Theme, glyphs};

pub enum Choice {
    Found(Found),
    /// The person went without choosing.
    Nobody,
}

/// A tap to choose, in words.
struct Candidate {
    found: Found,
    state: &'static str,
    command: String,
}

/// Where several may be followed side by side.
pub enum Choices {
    One(Choice),
    All,
}

pub fn choose(theme: Theme) -> Result<Choice> {
    Ok(match choose_from(theme, false)? {
        Choices::One(choice) => choice,
        Choices::All => Choice::Nobody,
    })
}

/// One, or all of them.
pub fn choose_several(theme: Theme) -> Result<Choices> {
    choose_from(theme, true)
}

fn choose_from(theme: Theme, offer_all: bool) -> Result<Choices> {
    let candidates: Vec<Candidate> =
        discover::discover().into_iter().filter(|found| found.alive).map(Candidate::new).collect();
    match candidates.len() {
        0 => Err(Error::NoTaps),
        1 => Ok(Choices::One(candidates.into_iter().next().map_or(Choice::Nobody, |only| Choice::Found(only.found)))),
        _ if terminal::is_interactive() && io::stderr().is_terminal() => ask(candidates, theme, offer_all),
        _ => Err(Error::SeveralTaps { list: list(&candidates) }),
    }
}

impl Candidate {
    fn new(found: Found) -> Candidate {
        let status = Attached::open(&found).map(|attached| attached.status());
        let state = match &status {
            Ok(status) => status.state.map_or("unknown", |state| state.name()),
            Err(_) => "not readable",
        };
        let command = if found.local { command(found.pid) } else { "(in another pid namespace)".to_owned() };
        Candidate { found, state, command }
    }
}

fn list(candidates: &[Candidate]) -> String {
    let row = |candidate: &Candidate| {
        vec![format!("  {}", candidate.found.pid), candidate.state.to_owned(), text::clip(&candidate.command, 100)]
    };
    text::table::aligned(&candidates.iter().map(row).collect::<Vec<_>>())
}

fn ask(candidates: Vec<Candidate>, theme: Theme, offer_all: bool) -> Result<Choices> {
    let mut screen = Screen::take()?;
    let choice = match pick(&mut screen.terminal, &candidates, theme, offer_all)? {
        Pick::This(at) => candidates.into_iter().nth(at).map_or(Choice::Nobody, |chosen| Choice::Found(chosen.found)),
        Pick::All => return Ok(Choices::All),
        Pick::None => Choice::Nobody,
    };
    Ok(Choices::One(choice))
}

fn pick(
    terminal: &mut Terminal<impl ratatui::backend::Backend<Error = io::Error>>,
    candidates: &[Candidate],
    theme: Theme,
    offer_all: bool,
) -> Result<Pick> {
    let mut at = 0;
    loop {
        terminal.draw(|frame| draw(frame, candidates, at, theme, offer_all)).map_err(Error::Terminal)?;
        let Event::Key(key) = event::read().map_err(Error::Terminal)? else { continue };
        if key.kind == KeyEventKind::Release {
            continue;
        }
        if let Some(pick) = step(key, &mut at, candidates.len() - 1, offer_all) {
            return Ok(pick);
        }
    }
}

enum Pick {
    This(usize),
    All,
    None,
}

fn step(key: KeyEvent, at: &mut usize, last: usize, offer_all: bool) -> Option<Pick> {
    match key.code {
        KeyCode::Enter => return Some(Pick::This(*at)),
        KeyCode::Char('a') if offer_all => return Some(Pick::All),
        KeyCode::Char('q') | KeyCode::Esc => return Some(Pick::None),
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Some(Pick::None),
        KeyCode::Char('j') | KeyCode::Down => *at = (*at + 1).min(last),
        KeyCode::Char('k') | KeyCode::Up => *at = at.saturating_sub(1),
        KeyCode::Char('g') | KeyCode::Home => *at = 0,
        KeyCode::Char('G') | KeyCode::End => *at = last,
        _ => {}
    }
    None
}

fn draw(frame: &mut Frame, candidates: &[Candidate], at: usize, theme: Theme, offer_all: bool) {
    let area = frame.area();
    let mut put = |y: u16, line: Line| {
        if y < area.height && area.width > 0 {
            frame.buffer_mut().set_line(area.x, area.y + y, &line, area.width);
        }
    };
    put(0, Line::from(vec![Span::styled(" gputap ", theme.badge()), Span::styled("  which process?", theme.strong())]));
    let page = usize::from(area.height.saturating_sub(3)).max(1);
    let first = (at + 1).saturating_sub(page);
    for (y, candidate) in candidates.iter().enumerate().skip(first).take(page) {
        let pid = text::pad(&candidate.found.pid.to_string(), 9, true);
        let state = text::pad(candidate.state, 10, false);
        let command = text::clean(&candidate.command);
        let mut line = Line::from(vec![
            Span::raw(format!("{pid}  ")),
            Span::styled(state, theme.state(candidate.state)),
            Span::raw(format!("  {command}")),
        ]);
        if y == at {
            let words: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
            line = Line::styled(text::pad(&words, area.width.into(), false), theme.selected());
        }
        put((y - first) as u16 + 2, line);
    }
    let all = if offer_all { "a all of them   " } else { "" };
    let keys = format!(" {} watch it   {all}↑ ↓ move   q quit", theme.key("⏎"));
    put(area.height.saturating_sub(1), Line::styled(keys, theme.faint()));
    if theme.ascii {
        glyphs::to_ascii(frame.buffer_mut());
    }
}
