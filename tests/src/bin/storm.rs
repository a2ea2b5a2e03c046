//! The storm: `cargo run --release -p gputap-tests --bin storm -- --kills 500 [--seed S]`.
//!
//! Kills N processes and threads that write and read taps, before and after every store of the protocol and at random
//! times, stops, parks, forks and replaces others, and accounts for every record. A kill is the end of a writer or
//! reader process by SIGKILL, or of a thread without any clean-up. The last line is
//! `kills N attempted X delivered Y lost Z corrupt 0 hung 0 leftovers 0`; the exit code is 0 only when X = Y + Z, with
//! at most one record in flight for each thread that was killed among the lost, the rest is zero, and each place in
//! the protocol was reached. `--break HOW` breaks the protocol, and the storm has to fail.

use std::process::ExitCode;

use gputap_tests::storm::{self, AS_READER, AS_WRITER, Sabotage, Settings};

const USAGE: &str = "usage: storm [--kills N] [--seed S]";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let result = match words.first().map(String::as_str) {
        Some(AS_WRITER | AS_READER) => storm::run_as(&words).map(|()| true),
        _ => match settings(words.into_iter()) {
            Ok(settings) => storm::run(settings),
            Err(reason) => {
                eprintln!("{reason}\n{USAGE}");
                return ExitCode::from(2);
            }
        },
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("storm: {error}");
            ExitCode::from(2)
        }
    }
}

fn settings(mut words: impl Iterator<Item = String>) -> Result<Settings, String> {
    let mut settings = Settings { kills: 500, seed: gputap_ringbuf::process::random(), sabotage: None };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--kills" => settings.kills = number(&value()?)?,
            "--seed" => settings.seed = number(&value()?)?,
            "--break" => {
                let name = value()?;
                let known = Sabotage::ALL.into_iter().find(|s| s.name() == name);
                settings.sabotage = Some(known.ok_or(format!("{name:?} is not a way to break it"))?);
            }
            other => return Err(format!("{other:?} is not an option")),
        }
    }
    Ok(settings)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}
