//! The deadlock proof: `cargo run --release -p gputap-tests --bin deadlock -- --rounds 20`.
//!
//! Runs N rounds of a naive tap, which computes cubin CRCs under the lock that it flushes under, and N rounds of gputap,
//! on a job that loads modules lazily from several threads. The last line is `naive hung A of N; gputap hung B of N`;
//! the exit code is 0 only when A = N and B = 0. `--with-locking` also runs a tap whose callback takes a lock that no
//! flusher holds; it must not hang either.

use std::process::ExitCode;
use std::time::Duration;

use gputap_tests::deadlock::{DeadlockError, Rounds, Tap};
use gputap_tests::job_main;

const USAGE: &str = "usage: deadlock [--rounds N] [--seconds S] [--threads T] [--stall-ms MS] [--with-locking]";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == "--as-job").is_some() {
        return job_main(words);
    }
    let (rounds, with_locking) = match settings(words) {
        Ok(settings) => settings,
        Err(reason) => {
            eprintln!("{reason}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match prove(&rounds, with_locking) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("deadlock: {error}");
            ExitCode::from(2)
        }
    }
}

fn prove(rounds: &Rounds, with_locking: bool) -> Result<bool, DeadlockError> {
    let n = rounds.rounds;
    let naive = rounds.run(Tap::Naive)?;
    if let Some(stacks) = &naive.first_stacks {
        println!("stacks of the first hang under the naive tap:\n{stacks}");
    }
    let mut good = naive.hung == n;
    if with_locking {
        let locking = rounds.run(Tap::Locking)?;
        println!("locking hung {} of {n} ({} modules loaded)", locking.hung, locking.module_loads);
        good &= locking.hung == 0;
    }
    let gputap = rounds.run(Tap::Gputap)?;
    if let Some(stacks) = &gputap.first_stacks {
        println!("stacks of the first hang under gputap:\n{stacks}");
    }
    println!("gputap: {} modules loaded, {} kernels launched", gputap.module_loads, gputap.kernels);
    println!("naive hung {} of {n}; gputap hung {} of {n}", naive.hung, gputap.hung);
    Ok(good && gputap.hung == 0)
}

fn settings(mut words: impl Iterator<Item = String>) -> Result<(Rounds, bool), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let stall = Duration::from_secs(2);
    let mut rounds = Rounds { program, rounds: 5, seconds: 1.0, threads: 4, stall };
    let mut with_locking = false;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--rounds" => rounds.rounds = number(&value()?)?,
            "--seconds" => rounds.seconds = number(&value()?)?,
            "--threads" => rounds.threads = number(&value()?)?,
            "--stall-ms" => rounds.stall = Duration::from_millis(number(&value()?)?),
            "--with-locking" => with_locking = true,
            other => return Err(format!("{other:?} is not an option")),
        }
    }
    Ok((rounds, with_locking))
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}
