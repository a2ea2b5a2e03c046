//! An application in a child process that makes calls of every kind, a word at a time, as `app.rs` does for the basic
//! ones; and that tells what the fake CUPTI showed the tap of them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Instant;

use fake_cupti::counters::Counters;
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::Found;
use gputap_tests::{Watched, artifact, child_command};

use super::inside::{ANSWER, NAME, SHOWN};
use super::told::Told;
use crate::job::tap;
use crate::reading::{self, LIMIT};

/// The application, as its test sees it.
pub struct Actor {
    child: Watched,
    /// What the fake CUPTI showed the tap, as far as the application was asked.
    pub shown: Vec<Told>,
}

/// Which libcupti the tap finds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// One that keeps what it shows.
    Witness,
    /// The fake one itself.
    Fake,
}

impl Actor {
    /// Starts the application and its driver, which has two devices.
    pub fn start(front: Front, env: &[(&str, &str)]) -> Self {
        let mut actor = Self::start_without_driver("gputap_shim", front, env);
        actor.act("init");
        actor
    }

    pub fn start_without_driver(shim: &str, front: Front, env: &[(&str, &str)]) -> Self {
        let mut command = child_command(NAME);
        tap(&mut command, shim, &[]);
        let built = |name: &str| -> PathBuf { artifact(name).expect("built") };
        if front == Front::Witness {
            command.env("GPUTAP_CUPTI", built("cupti_witness")).env("CUPTI_WITNESS_OF", built("fake_cupti"));
        }
        command.env("NVTX_INJECTION64_PATH", built(shim)).env("FAKE_CUDA_DEVICES", "2");
        // Little to make ready, and no flush but those that a test asks for.
        command.envs([("GPUTAP_LANE_MB", "1"), ("GPUTAP_CUBIN_MB", "8"), ("GPUTAP_FLUSH_MS", "60000")]);
        for (name, value) in env {
            // An empty value stands for none.
            match value.is_empty() {
                true => command.env_remove(name),
                false => command.env(name, OsString::from(value)),
            };
        }
        let child = Watched::spawn(&mut command).expect("the application starts");
        Self { child, shown: Vec::new() }
    }

    pub fn found(&self) -> Found {
        reading::wait_for_tap(self.child.pid())
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub fn attached(&self) -> Attached {
        Attached::open(&self.found()).expect("a whole segment")
    }

    /// Tells the application something and waits for its answer.
    pub fn ask(&mut self, words: &str) -> String {
        writeln!(self.child.stdin.as_mut().expect("open"), "{words}").expect("the application reads");
        let deadline = Instant::now() + LIMIT;
        while let Some(line) = self.child.next_line(deadline) {
            if let Some(answer) = line.strip_prefix(ANSWER) {
                return answer.to_owned();
            }
            self.shown.extend(line.strip_prefix(SHOWN).map(|line| Told::parse(line).expect("a line of ours")));
        }
        panic!("no answer to {words:?}; the application's threads:\n{}", self.child.stacks());
    }

    /// Has the application do something in which every call must succeed.
    pub fn act(&mut self, words: &str) {
        assert_eq!(self.ask(words), "ok", "{words}");
    }

    /// What the application has done since the last question, by its own count.
    pub fn tally(&mut self) -> BTreeMap<String, u64> {
        let answer = self.ask("tally");
        let one = |word: &str| {
            let (name, count) = word.split_once('=').expect("name=count");
            (name.to_owned(), count.parse().expect("a number"))
        };
        answer.split_whitespace().map(one).collect()
    }

    /// What the fake CUPTI has done.
    pub fn counters(&mut self) -> Counters {
        let answer = self.ask("counters");
        let mut numbers = answer.split(' ').map(|number| number.parse().expect("a number"));
        let mut next = || numbers.next().expect("a number for each");
        Counters {
            buffers_requested: next(),
            buffers_completed: next(),
            records_written: next(),
            records_delivered: next(),
            records_unfinished: next(),
            records_dropped: next(),
            callbacks: next(),
            flushes: next(),
            buffers_kept: next(),
            records_kept: next(),
            completers: next(),
            ..Counters::default()
        }
    }

    /// Numbers that a preloaded library has counted.
    pub fn watched(&mut self, function: &str) -> u64 {
        self.ask(&format!("watched {function}")).parse().expect("a number")
    }

    /// Tells the application to leave, and waits for that.
    pub fn end(mut self) -> ExitStatus {
        writeln!(self.child.stdin.as_mut().expect("open"), "exit").expect("the application reads");
        let deadline = Instant::now() + LIMIT;
        while self.child.next_line(deadline).is_some() {}
        assert!(self.child.exited(), "not over; its threads:\n{}", self.child.stacks());
        self.child.end().expect("reaped").0
    }
}
