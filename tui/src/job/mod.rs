//! A job started from here: on our own streams, or on a pseudo-terminal of its own.

mod console;
mod exit;
mod wait;

use std::ffi::OsString;
use std::io::stderr;
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus};

pub use console::Console;
pub use exit::{code_of, words_for};
pub use wait::Waiter;

use crate::error::{Error, Result};

/// What to start, and the variables that put the tap into it.
#[derive(Clone, Debug)]
pub struct JobCommand {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub variables: Vec<(OsString, OsString)>,
}

impl JobCommand {
    /// `words` has at least the program; clap sees to it.
    pub fn new(words: &[OsString], variables: Vec<(OsString, OsString)>) -> JobCommand {
        let program = words.first().cloned().unwrap_or_default();
        JobCommand { program, arguments: words.iter().skip(1).cloned().collect(), variables }
    }

    pub fn to_command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// With our own streams, which the job has for itself.
    pub fn spawn(&self) -> Result<Child> {
        self.to_command().spawn().map_err(|source| self.not_started(source))
    }

    /// The same, but for standard output, which is ours: the job writes to standard error instead.
    pub fn spawn_beside_output(&self) -> Result<Child> {
        let stderr = stderr().as_fd().try_clone_to_owned().map_err(|source| self.not_started(source))?;
        self.to_command().stdout(stderr).spawn().map_err(|source| self.not_started(source))
    }

    /// As a person would read it.
    pub fn words(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.arguments);
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    fn not_started(&self, source: std::io::Error) -> Error {
        Error::NotStarted { program: self.program.clone(), source }
    }
}

/// Without waiting.
pub fn try_wait(child: &mut Child) -> Result<Option<ExitStatus>> {
    child.try_wait().map_err(|source| Error::Wait { pid: child.id(), source })
}
