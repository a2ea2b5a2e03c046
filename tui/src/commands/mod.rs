//! A file a command.

mod clean;
mod ctl;
mod demo;
mod doctor;
mod env;
mod ps;
pub mod record;
mod sim_job;
mod top;

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::error::Result;
use crate::terminal;

pub fn run(cli: Cli) -> Result<ExitCode> {
    let theme = terminal::theme(&cli.look);
    match cli.command {
        Command::Top(arguments) => top::run(&arguments, theme),
        Command::Record(arguments) => record::run(&arguments, theme),
        Command::Ps(arguments) => ps::run(&arguments),
        Command::Ctl(arguments) => ctl::run(&arguments),
        Command::Env(arguments) => env::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments, theme),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Clean(_) => clean::run(),
        Command::CuptiCrc(arguments) => Ok(gputap_reader::crc::cupti_crc_child_main(&arguments.library)),
        Command::SimJob(arguments) => sim_job::run(&arguments),
    }
}
