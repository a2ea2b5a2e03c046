//! Waiting for a job while doing something else.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::SIGINT;

use crate::error::{Error, Result};

/// A job on our own streams, waited for by a thread of its own.
pub struct Waiter {
    pid: u32,
    ended: Receiver<io::Result<ExitStatus>>,
}

impl Waiter {
    pub fn new(mut child: Child) -> Waiter {
        let pid = child.id();
        let (sender, ended) = sync_channel(1);
        let waiting = move || {
            // Nobody listens once gputap is on its way out.
            let _ = sender.send(child.wait());
        };
        thread::spawn(waiting);
        Waiter { pid, ended }
    }

    /// How the job ended, if it does so within `timeout`. To be asked no more after that.
    pub fn within(&self, timeout: Duration) -> Result<Option<ExitStatus>> {
        match self.ended.recv_timeout(timeout) {
            Ok(Ok(status)) => Ok(Some(status)),
            Ok(Err(source)) => Err(Error::Wait { pid: self.pid, source }),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Error::Wait { pid: self.pid, source: io::Error::other("it has been waited for already") })
            }
        }
    }

    /// Gives a signal that we got to the job too, unless the terminal has done so: a ^C goes to all in front.
    pub fn pass_on(&self, signal: i32) {
        if signal == SIGINT && in_front() {
            return;
        }
        if let (Some(pid), Some(signal)) = (Pid::from_raw(self.pid as i32), Signal::from_named_raw(signal)) {
            // That it has just ended is no failure.
            let _ = kill_process(pid, signal);
        }
    }
}

fn in_front() -> bool {
    let Ok(terminal) = std::fs::File::open("/dev/tty") else { return false };
    tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp())
}
