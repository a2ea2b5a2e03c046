//! Reaching a tap's control object through its file, and waiting for answers.

use super::{
    Answer, CONTROL_BYTES, Command,
    client::{ControlClient, ControlError},
};
use crate::{attach::MappedFile, discover::Found, process, words::Words};
use std::{
    thread,
    time::{Duration, Instant},
};

/// How often a reader looks for the answer.
const LOOK_EVERY: Duration = Duration::from_millis(1);

impl ControlClient {
    /// Takes a slot of the tap's control object; asks for nothing yet.
    pub fn open(found: &Found) -> Result<ControlClient, ControlError> {
        let words = MappedFile::open_writable(&found.control, CONTROL_BYTES)?;
        Self::take_slot(words, process::random())
    }
}

impl<W: Words> ControlClient<W> {
    /// Sends a command and waits for the answer for at most `timeout`.
    pub fn command(&self, command: Command, timeout: Duration) -> Result<Answer, ControlError> {
        let ticket = self.send(command)?;
        let start = Instant::now();
        loop {
            self.renew();
            if let Some(answer) = self.answer(ticket)? {
                return Ok(answer);
            }
            if start.elapsed() >= timeout {
                return Err(ControlError::NoAnswer { command: command.name(), waited_ms: timeout.as_millis() });
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}
