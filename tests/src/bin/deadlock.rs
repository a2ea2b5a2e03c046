//! The deadlock proof: `cargo run --release -p gputap-tests --bin deadlock -- --rounds 20`.
//!
//! Runs N rounds of a naive tap, which does a callback's work under the lock that it flushes under, and N rounds of
//! gputap, on a job that brings that callback from several threads: `--callback module_load` (the default: cubin CRCs, on
//! a job that loads modules lazily), `module_unload`, `context_create`, `context_destroy`, `launch`, `synchronize`, or
//! `all`. The last line is `naive hung A of N; gputap hung B of N`, over all of them; the exit code is 0 only when A = N
//! and B = 0.
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
    let mut total = Proof::default();
    for &callback in &settings.callbacks {
        let proof = prove(&Rounds { callback, ..settings.rounds.clone() }, settings.with_locking)?;
        if settings.callbacks.len() > 1 {
            println!("{}: {proof}", callback.name());
        }
        total.add(&proof);
    }
    println!("{total}");
    Ok(total.naive == total.rounds && total.locking == 0 && total.gputap == 0)
}

/// How many rounds there were, and how many of them hung.
#[derive(Default)]
struct Proof {
    rounds: usize,
    naive: usize,
    locking: usize,
    gputap: usize,
}

impl Proof {
    fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.naive += other.naive;
        self.locking += other.locking;
        self.gputap += other.gputap;
    }
}

impl std::fmt::Display for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Self { rounds, naive, gputap, .. } = self;
        write!(f, "naive hung {naive} of {rounds}; gputap hung {gputap} of {rounds}")
    }
}

fn prove(rounds: &Rounds, with_locking: bool) -> Result<Proof, DeadlockError> {
    let n = rounds.rounds;
    let naive = rounds.run(Tap::Naive)?;
    if let Some(stacks) = &naive.first_stacks {
        println!("stacks of the first hang under the naive tap:\n{stacks}");
    }
    let mut proof = Proof { rounds: n, naive: naive.hung, ..Proof::default() };
    if with_locking {
        let locking = rounds.run(Tap::Locking)?;
        println!("locking hung {} of {n} ({} callbacks)", locking.hung, locking.callbacks);
        proof.locking = locking.hung;
    }
    let gputap = rounds.run(Tap::Gputap)?;
    if let Some(stacks) = &gputap.first_stacks {
        println!("stacks of the first hang under gputap:\n{stacks}");
    }
    println!("gputap: {} modules loaded, {} kernels launched", gputap.module_loads, gputap.kernels);
    proof.gputap = gputap.hung;
    Ok(proof)
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
