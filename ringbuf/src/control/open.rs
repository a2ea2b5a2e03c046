//! Reaching a tap's control object through its file, and waiting for answers.

use super::{
    Answer, CONTROL_BYTES, Command,
    client::{ControlClient, ControlError},
    head,
};
use crate::{
    attach::{AttachError, MappedFile},
    discover::Found,
    process,
    sync::Ordering,
    words::{ReadWords, Words},
};
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
        let client = Self::take_slot(words.clone(), process::random())?;
        // A descriptor under /proc may be another tap's by now: the program was replaced by exec.
        if words.load(head::NONCE, Ordering::Relaxed) != found.nonce {
            return Err(AttachError::Gone { path: found.control.clone() }.into());
        }
        Ok(client)
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
