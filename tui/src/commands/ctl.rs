use std::process::ExitCode;
use std::time::Duration;

use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::control::client::ControlClient;
use gputap_ringbuf::control::{Answer, Command};
use gputap_ringbuf::discover;

use crate::cli::{Action, Ctl};
use crate::error::{Error, Result};
use crate::output::print;

pub fn run(arguments: &Ctl) -> Result<ExitCode> {
    let found = discover::find(arguments.pid)?;
    let command = command_for(arguments.action);
    let client = ControlClient::open(&found)?;
    let answer = client.command(command, Duration::from_secs_f64(arguments.timeout))?;
    // Read after the answer, the status is the one that the command led to.
    let status = Attached::open(&found)?.status();
    let state = status.state.map_or("unknown", |state| state.name());
    let mut why = status.reason.explanation().to_owned();
    if !status.detail.is_empty() {
        why = if why.is_empty() { status.detail } else { format!("{why}: {}", status.detail) };
    }
    let what = match answer {
        Answer::Done => {
            print(&format!("pid {}: {} done, the tap is {state}\n", arguments.pid, command.name()))?;
            return Ok(ExitCode::SUCCESS);
        }
        Answer::Refused => "refused",
        Answer::Failed => "failed",
    };
    Err(Error::NotDone { command: command.name(), pid: arguments.pid, what, state, why })
}

fn command_for(action: Action) -> Command {
    match action {
        Action::Start => Command::Start,
        Action::Stop => Command::Stop,
        Action::Yield => Command::Yield,
        Action::Resume => Command::Resume,
        Action::Flush => Command::Flush,
    }
}
