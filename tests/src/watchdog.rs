//! A child process with a deadline.
//!
//! Guarantees: no wait is longer than asked for; the child's output is read all the while, so that it never waits for
//! us; the child is dead and reaped when a [`Watched`] is gone.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::stacks;

#[derive(Debug, thiserror::Error)]
pub enum WatchdogError {
    #[error("the child cannot be started or waited for: {0}")]
    Io(#[from] std::io::Error),
    #[error("the child (pid {pid}) was not over after {waited:?} and was killed; stderr:\n{stderr}\nstacks:\n{stacks}")]
    Deadline { pid: u32, waited: Duration, stderr: String, stacks: String },
}

/// What a child left behind.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

enum Event {
    Line(String),
    Exited,
}

/// A child whose lines and end can be waited for.
pub struct Watched {
    child: Child,
    events: Receiver<Event>,
    stderr: Option<JoinHandle<String>>,
    exited: bool,
    /// The child's stdin: closed when dropped.
    pub stdin: Option<ChildStdin>,
}

impl Watched {
    pub fn spawn(command: &mut Command) -> std::io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (events, received) = channel();
        if let Some(stdout) = child.stdout.take() {
            let events = events.clone();
            std::thread::spawn(move || {
                let lines = BufReader::new(stdout).lines().map_while(Result::ok);
                lines.map(Event::Line).try_for_each(|line| events.send(line))
            });
        }
        let stderr = child.stderr.take().map(|mut stderr| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = stderr.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        let pid = child.id();
        std::thread::spawn(move || {
            wait_unreaped(pid);
            let _ = events.send(Event::Exited);
        });
        let stdin = child.stdin.take();
        Ok(Self { child, events: received, stderr, exited: false, stdin })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of stdout, or None at the deadline or once the child is over; [`Watched::exited`] tells which.
    pub fn next_line(&mut self, deadline: Instant) -> Option<String> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Line(line)) => return Some(line),
                // Lines that the child wrote may still be under way.
                Ok(Event::Exited) => self.exited = true,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Whether the child is over.
    pub fn exited(&self) -> bool {
        self.exited
    }

    /// The stacks of all the child's threads.
    pub fn stacks(&self) -> String {
        stacks::dump(self.pid())
    }

    /// Kills the child if it still runs, and gives its end and what it wrote on stderr.
    pub fn end(mut self) -> std::io::Result<(ExitStatus, String)> {
        if !self.exited {
            self.child.kill()?;
        }
        let status = self.child.wait()?;
        let stderr = self.stderr.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        Ok((status, stderr))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Already reaped after `end`, where both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `command` to its end. One that is not over after `limit` is killed, its stacks in the error.
pub fn run_under_watchdog(command: &mut Command, limit: Duration) -> Result<Finished, WatchdogError> {
    let mut child = Watched::spawn(command)?;
    child.stdin = None;
    let deadline = Instant::now() + limit;
    let mut stdout = String::new();
    while let Some(line) = child.next_line(deadline) {
        stdout.push_str(&line);
        stdout.push('\n');
    }
    if child.exited() {
        let (status, stderr) = child.end()?;
        return Ok(Finished { status, stdout, stderr });
    }
    let (pid, stacks) = (child.pid(), child.stacks());
    let (_, stderr) = child.end()?;
    Err(WatchdogError::Deadline { pid, waited: limit, stderr, stacks })
}

/// Waits for a child of ours to end, and leaves it to be reaped by its owner, so that its pid stays its own.
fn wait_unreaped(pid: u32) {
    // SAFETY: an all-zero siginfo_t is a valid value of this plain C structure.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: `info` may be written; WNOWAIT leaves the child as it is.
        let code = unsafe { libc::waitid(libc::P_PID, pid, &raw mut info, libc::WEXITED | libc::WNOWAIT) };
        if code == 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return;
        }
    }
}
