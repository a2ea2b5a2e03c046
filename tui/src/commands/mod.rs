//! A file a command.

mod clean;
mod completions;
mod config;
mod ctl;
mod cubins;
mod demo;
mod diff;
mod doctor;
mod env;
mod export;
mod man;
mod ps;
pub mod record;
mod report;
mod sim_job;
mod top;

use std::process::ExitCode;

use crate::cli::{Cli, Command};
use crate::error::Result;
use crate::settings::Settings;
use crate::terminal;

pub fn run(cli: Cli, settings: &Settings) -> Result<ExitCode> {
    let theme = terminal::theme(&cli.look);
    match cli.command {
        Command::Top(arguments) => top::run(&arguments, theme),
        Command::Record(arguments) => record::run(&arguments, theme),
        Command::Report(arguments) => report::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Ps(arguments) => ps::run(&arguments),
        Command::Ctl(arguments) => ctl::run(&arguments),
        Command::Env(arguments) => env::run(&arguments),
        Command::Cubins(arguments) => cubins::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments, theme),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Clean(_) => clean::run(),
        Command::Config(arguments) => config::run(&arguments, settings),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
        Command::CuptiCrc(arguments) => Ok(gputap_reader::crc::cupti_crc_child_main(&arguments.library)),
        Command::SimJob(arguments) => sim_job::run(&arguments),
    }
}
