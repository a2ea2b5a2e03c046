//! gputap on a pseudo-terminal, its screen read and its keys pressed.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread;

use pty_process::Size;
use pty_process::blocking::{Command, Pts, Pty, open};
use rustix::termios::{Termios, tcgetattr};

use super::{REMOVED, environment, eventually};

pub struct Terminal {
    pty: Arc<Pty>,
    /// Kept open, so that the terminal's settings outlive the program on it.
    _child_end: Pts,
    child: Child,
    emulator: Arc<Mutex<vt100::Parser>>,
    before: Termios,
}

impl Terminal {
    pub fn run(arguments: &[&str], rows: u16, columns: u16) -> Terminal {
        Terminal::run_with(arguments, &[], rows, columns)
    }

    pub fn run_with(arguments: &[&str], variables: &[(&str, &str)], rows: u16, columns: u16) -> Terminal {
        let (pty, child_end) = open().expect("a pseudo-terminal");
        pty.resize(Size::new(rows, columns)).expect("a size");
        let before = tcgetattr(&child_end).expect("settings");
        let mut command = Command::new(env!("CARGO_BIN_EXE_gputap")).args(arguments).envs(environment());
        for name in REMOVED {
            command = command.env_remove(name);
        }
        command = command.envs(variables.iter().copied());
        let child = command.spawn_borrowed(&child_end).expect("gputap starts");
        let emulator = vt100::Parser::new(number(rows), number(columns), 1000);
        let (pty, emulator) = (Arc::new(pty), Arc::new(Mutex::new(emulator)));
        let reader = (Arc::clone(&pty), Arc::clone(&emulator));
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = (&mut &*reader.0).read(&mut buffer) {
                reader.1.lock().unwrap().process(&buffer[..length]);
            }
        });
        Terminal { pty, _child_end: child_end, child, emulator, before }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn text(&self) -> String {
        self.emulator.lock().unwrap().screen().contents()
    }

    pub fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).expect("keys are taken");
    }

    pub fn resize(&self, rows: u16, columns: u16) {
        self.emulator.lock().unwrap().set_size(number(rows), number(columns));
        self.pty.resize(Size::new(rows, columns)).expect("a size");
    }

    pub fn wait_for(&self, words: &str) {
        self.wait_until(words, |text| text.contains(words));
    }

    pub fn wait_until(&self, what: &str, holds: impl Fn(&str) -> bool) {
        let mut last = String::new();
        let shown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(what, || {
                last = self.text();
                holds(&last)
            });
        }));
        assert!(shown.is_ok(), "the screen never showed {what:?}:\n{last}");
    }

    /// Waits for the end and looks whether the terminal is as it was.
    pub fn ended_and_restored(mut self) -> ExitStatus {
        let mut status = None;
        eventually("gputap ends", || {
            status = self.child.try_wait().expect("it can be waited for");
            status.is_some()
        });
        let seen = |of: fn(&vt100::Screen) -> bool| of(self.emulator.lock().unwrap().screen());
        eventually("the alternate screen is left", || !seen(vt100::Screen::alternate_screen));
        eventually("the cursor is shown", || !seen(vt100::Screen::hide_cursor));
        let after = tcgetattr(&self._child_end).expect("settings");
        assert_eq!(format!("{:?}", self.before), format!("{after:?}"), "the terminal's settings");
        status.expect("waited for")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that failed leaves nothing running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs gputap on a terminal until that shows `words`, then closes the terminal as a window is closed; how it ends.
pub fn hang_up_on(arguments: &[&str], words: &str) -> ExitStatus {
    let (mut pty, child_end) = open().expect("a pseudo-terminal");
    pty.resize(Size::new(24, 80)).expect("a size");
    let command = Command::new(env!("CARGO_BIN_EXE_gputap")).args(arguments).envs(environment());
    let mut child = command.spawn(child_end).expect("gputap starts");
    let mut emulator = vt100::Parser::new(number(24), number(80), 0);
    let mut buffer = [0; 4096];
    while !emulator.screen().contents().contains(words) {
        let length = pty.read(&mut buffer).expect("gputap draws");
        emulator.process(&buffer[..length]);
    }
    drop(pty);
    let mut status = None;
    let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually("gputap ends with its terminal", || {
            status = child.try_wait().expect("it can be waited for");
            status.is_some()
        });
    }));
    let _ = child.kill();
    let _ = child.wait();
    assert!(waited.is_ok(), "gputap goes on without a terminal");
    status.expect("waited for")
}

fn number(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("not zero")
}
