//! gputap: watch, record and control the tap in a process that uses an NVIDIA GPU.

#![forbid(unsafe_code)]

mod abilities;
mod cli;
mod commands;
mod error;
mod injection;
mod job;
mod launch;
mod output;
mod plain;
mod settings;
mod signals;
mod tap;
mod terminal;
mod text;
mod view;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

fn main() -> ExitCode {
    // Before anything else: this child of the reader exists to load foreign code, and needs nothing more.
    if let Some(library) = gputap_reader::crc::child_request(std::env::args_os()) {
        return gputap_reader::crc::cupti_crc_child_main(&library);
    }
    // A segment that somebody truncates is a word on the screen, not the end of this program. Where the kernel refuses,
    // all else works.
    let _ = gputap_ringbuf::attach::guard::catch_sigbus();
    let settings = settings::Settings::load();
    let matches = settings.as_defaults_of(cli::Cli::command()).get_matches();
    let cli = cli::Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let settings = settings.with_flags(&matches);
    if cli.command.heeds_settings() {
        settings.complaints.iter().for_each(|words| output::remark(words));
    }
    match commands::run(cli, &settings) {
        Ok(code) => code,
        Err(error::Error::NobodyReads) => ExitCode::SUCCESS,
        Err(error) => {
            let code = error.exit_code();
            output::remark(&anyhow::Error::new(error).to_string());
            ExitCode::from(code)
        }
    }
}
