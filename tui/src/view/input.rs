//! What a key does.

use std::time::Instant;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::pages::Tab;
use super::state::{Overlay, View};

/// What is left to do for the one who has the terminal and the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Nothing,
    Quit,
    /// ^C for the job, as its own terminal would give it.
    Interrupt,
    /// Ask the job to end, then quit.
    EndJob,
    /// Close the view and let the job go on in front.
    LeaveView,
}

pub fn key(view: &mut View, key: KeyEvent, now: Instant) -> Action {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') {
        return interrupt(view, now);
    }
    if view.filter_typed {
        type_filter(view, key.code);
        return Action::Nothing;
    }
    match view.overlay {
        Overlay::Leave => leave(view, key.code),
        Overlay::Help | Overlay::Detail => {
            view.overlay = Overlay::None;
            Action::Nothing
        }
        Overlay::None if control => {
            scroll_with_control(view, key.code);
            Action::Nothing
        }
        Overlay::None => plain(view, key.code, now),
    }
}

fn interrupt(view: &mut View, now: Instant) -> Action {
    if !view.guards_job() {
        return Action::Quit;
    }
    view.say("^C sent to the job", now);
    Action::Interrupt
}

fn plain(view: &mut View, code: KeyCode, now: Instant) -> Action {
    match code {
        KeyCode::Char('q') if view.guards_job() => view.overlay = Overlay::Leave,
        KeyCode::Char('q') => return Action::Quit,
        KeyCode::Char('?') | KeyCode::F(1) => view.overlay = Overlay::Help,
        KeyCode::Char(digit @ '1'..='9') => choose(view, digit, now),
        KeyCode::Tab => view.show(view.tab.turned(1)),
        KeyCode::BackTab => view.show(view.tab.turned(-1)),
        code if page_key(view, code, now) => {}
        KeyCode::Char('l') | KeyCode::Right => view.show(view.tab.turned(1)),
        KeyCode::Char('h') | KeyCode::Left => view.show(view.tab.turned(-1)),
        KeyCode::Char('s') => sort(view, now),
        KeyCode::Char('r') => reverse(view, now),
        KeyCode::Char(' ') => freeze(view, now),
        KeyCode::Char('/') => view.filter_typed = true,
        KeyCode::Enter if view.tab.has_detail() => open_detail(view),
        KeyCode::Esc => view.release(),
        code => scroll(view, code),
    }
    Action::Nothing
}

fn scroll(view: &mut View, code: KeyCode) {
    let page = view.page_rows() as isize;
    match code {
        KeyCode::Char('j') | KeyCode::Down => view.move_by(1),
        KeyCode::Char('k') | KeyCode::Up => view.move_by(-1),
        KeyCode::PageDown => view.move_by(page),
        KeyCode::PageUp => view.move_by(-page),
        KeyCode::Char('g') | KeyCode::Home => view.move_to_start(),
        KeyCode::Char('G') | KeyCode::End => view.move_to_end(),
        _ => {}
    }
}

fn scroll_with_control(view: &mut View, code: KeyCode) {
    let page = view.page_rows() as isize;
    match code {
        KeyCode::Char('d') => view.move_by((page / 2).max(1)),
        KeyCode::Char('u') => view.move_by(-(page / 2).max(1)),
        KeyCode::Char('f') => view.move_by(page),
        KeyCode::Char('b') => view.move_by(-page),
        _ => {}
    }
}

fn leave(view: &mut View, code: KeyCode) -> Action {
    view.overlay = Overlay::None;
    // The job may have ended while the question stood.
    let running = view.guards_job();
    match code {
        KeyCode::Char('e') if running => Action::EndJob,
        KeyCode::Char('f') if running => Action::LeaveView,
        KeyCode::Char('e' | 'f' | 'q') if !running => Action::Quit,
        _ => Action::Nothing,
    }
}

fn type_filter(view: &mut View, code: KeyCode) {
    let mut filter = view.filter.clone();
    match code {
        KeyCode::Char(c) => filter.push(c),
        KeyCode::Backspace if filter.is_empty() => view.filter_typed = false,
        KeyCode::Backspace => drop(filter.pop()),
        KeyCode::Enter => view.filter_typed = false,
        KeyCode::Esc => {
            filter.clear();
            view.filter_typed = false;
        }
        _ => {}
    }
    view.set_filter(filter);
}

/// The view's own keys, before those of all views; whether it has taken this one.
fn page_key(view: &mut View, code: KeyCode, now: Instant) -> bool {
    let page_rows = view.page_rows();
    let Some(words) = view.panes.key(view.tab.pane(), code, page_rows) else { return false };
    if !words.is_empty() {
        view.say(words, now);
    }
    true
}

fn choose(view: &mut View, digit: char, now: Instant) {
    match Tab::of_digit(digit) {
        Some(tab) => view.show(tab),
        None => view.say(format!("no view has the key {digit}"), now),
    }
}

fn sort(view: &mut View, now: Instant) {
    view.sort_by_next();
    if let Some(sort) = view.sort() {
        view.say(format!("sorted by {:?}", sort.column).to_lowercase(), now);
    }
}

fn reverse(view: &mut View, now: Instant) {
    view.reverse();
    let words = if view.table().reversed { "order reversed" } else { "natural order" };
    view.say(words, now);
}

fn freeze(view: &mut View, now: Instant) {
    view.frozen = !view.frozen;
    view.say(if view.frozen { "frozen: space goes on" } else { "live again" }, now);
}

fn open_detail(view: &mut View) {
    if view.selected().is_none() {
        view.move_by(0);
    }
    if view.selected().is_some() {
        view.overlay = Overlay::Detail;
    }
}
