//! The deadlock proof: `cargo run --release -p gputap-tests --bin deadlock -- --rounds 20`.
//!
//! Runs N rounds of a naive tap, which does a callback's work under the lock that it flushes under, and N rounds of
//! gputap, on a job that brings that callback from several threads: `--callback module_load` (the default: cubin CRCs, on
//! a job that loads modules lazily), `module_unload`, `context_create`, `context_destroy`, `launch`, `synchronize`, or
//! `all`. A line for each says `naive hung A of N; gputap hung B of N`; the exit code is 0 only when A = N and B = 0.
//! `--with-locking` also runs a tap whose callback takes a lock that no flusher holds; it must not hang either.

use std::process::ExitCode;
use std::time::Duration;

use gputap_tests::deadlock::{Callback, DeadlockError, Rounds, Tap};
use gputap_tests::job_main;

const USAGE: &str = "usage: deadlock [--callback NAME|all] [--rounds N] [--seconds S] [--threads T] [--stall-ms MS] \
                     [--with-locking]";

struct Settings {
    rounds: Rounds,
    callbacks: Vec<Callback>,
    with_locking: bool,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == "--as-job").is_some() {
        return job_main(words);
    }
    let settings = match settings(words) {
        Ok(settings) => settings,
        Err(reason) => {
            eprintln!("{reason}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match prove_all(&settings) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("deadlock: {error}");
            ExitCode::from(2)
        }
    }
}

fn prove_all(settings: &Settings) -> Result<bool, DeadlockError> {
    let mut good = true;
    for &callback in &settings.callbacks {
        good &= prove(&Rounds { callback, ..settings.rounds.clone() }, settings.with_locking)?;
    }
    Ok(good)
}

fn prove(rounds: &Rounds, with_locking: bool) -> Result<bool, DeadlockError> {
    let n = rounds.rounds;
    let callback = rounds.callback.name();
    let naive = rounds.run(Tap::Naive)?;
    if let Some(stacks) = &naive.first_stacks {
        println!("stacks of the first hang under the naive tap:\n{stacks}");
    }
    let mut good = naive.hung == n;
    if with_locking {
        let locking = rounds.run(Tap::Locking)?;
        println!("{callback}: locking hung {} of {n} ({} callbacks)", locking.hung, locking.callbacks);
        good &= locking.hung == 0;
    }
    let gputap = rounds.run(Tap::Gputap)?;
    if let Some(stacks) = &gputap.first_stacks {
        println!("stacks of the first hang under gputap:\n{stacks}");
    }
    println!("gputap: {} modules loaded, {} kernels launched", gputap.module_loads, gputap.kernels);
    println!("{callback}: naive hung {} of {n}; gputap hung {} of {n}", naive.hung, gputap.hung);
    Ok(good && gputap.hung == 0)
}

fn settings(mut words: impl Iterator<Item = String>) -> Result<Settings, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let stall = Duration::from_secs(2);
    let callback = Callback::ModuleLoad;
    let rounds = Rounds { callback, program, rounds: 5, seconds: 1.0, threads: 4, stall };
    let mut settings = Settings { rounds, callbacks: vec![callback], with_locking: false };
    let rounds = &mut settings.rounds;
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--rounds" => rounds.rounds = number(&value()?)?,
            "--seconds" => rounds.seconds = number(&value()?)?,
            "--threads" => rounds.threads = number(&value()?)?,
            "--stall-ms" => rounds.stall = Duration::from_millis(number(&value()?)?),
            "--callback" => settings.callbacks = callbacks(&value()?)?,
            "--with-locking" => settings.with_locking = true,
            other => return Err(format!("{other:?} is not an option")),
        }
    }
    Ok(settings)
}

fn callbacks(name: &str) -> Result<Vec<Callback>, String> {
    if name == "all" {
        return Ok(Callback::ALL.to_vec());
    }
    Callback::from_name(name).map(|callback| vec![callback]).ok_or(format!("{name:?} is not a callback"))
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}
