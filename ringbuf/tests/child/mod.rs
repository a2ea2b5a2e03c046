//! A child process: this test binary again, told by a variable what to be, and asked through its streams.
#![allow(dead_code, reason = "each file of tests uses its part")]

use gputap_ringbuf::{
    backing::create::{BackingChoice, Created, create},
    header::{
        identity::Backing,
        status::{Reason, State},
    },
    housekeeping::{Ahead, Housekeeper, Step},
    layout::{CHUNK_WORDS, Sizes},
    tap::TapWriter,
};
use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

const VARIABLE: &str = "GPUTAP_TEST_CHILD";
const DEADLINE: Duration = Duration::from_secs(30);

pub struct Child {
    process: std::process::Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Child {
    pub fn start(role: &str) -> Child {
        Self::start_under(&[], role)
    }

    /// Started by another program: `unshare` with its options.
    pub fn start_under(wrapper: &[&str], role: &str) -> Child {
        let own = std::env::current_exe().unwrap();
        let mut command = match wrapper {
            [] => Command::new(&own),
            [program, options @ ..] => {
                let mut command = Command::new(program);
                command.args(options).arg(&own);
                command
            }
        };
        // A log of the whole is worth more than one of the part that went well.
        let command = command.args(["--exact", "child", "--nocapture", "--test-threads", "1"]).env(VARIABLE, role);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        Child { process, input, output: BufReader::new(output) }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The next line that the role said (the test harness prints lines of its own).
    pub fn line(&mut self) -> String {
        let mut lines = (&mut self.output).lines().map(|l| l.unwrap());
        lines.find_map(|l| Some(l.split_once("child: ")?.1.to_owned())).expect("a line of the child")
    }

    pub fn ask(&mut self, question: &str) -> String {
        writeln!(self.input, "{question}").unwrap();
        self.line()
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What this process is to be; empty in the test itself.
pub fn role() -> Vec<String> {
    let role = std::env::var(VARIABLE).unwrap_or_default();
    role.split_whitespace().map(str::to_owned).collect()
}

pub fn say(text: impl std::fmt::Display) {
    println!("child: {text}");
    std::io::stdout().flush().unwrap();
}

/// What the parent asks, until it is gone.
pub fn questions() -> impl Iterator<Item = String> {
    std::io::stdin().lines().map_while(Result::ok)
}

/// Stays until the parent is gone or kills us.
pub fn stay() {
    let _ = questions().count();
}

/// Clean-up is of the whole machine: tests that make or sweep segments take turns.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < DEADLINE, "waited in vain for {what}");
        std::thread::yield_now();
    }
}

/// Says so on the real standard error, which the test harness does not keep for itself.
pub fn skip(what: &str, why: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "SKIPPED {what}: {why}");
}

/// Whether `unshare` with these options works here; says so where it does not.
pub fn can_unshare(what: &str, options: &[&str]) -> bool {
    match Command::new("unshare").args(options).arg("true").output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => skip(what, String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => skip(what, format_args!("no unshare: {error}")),
    }
    false
}

pub const SMALL: Sizes = Sizes {
    lanes: 2,
    lane_words: 4 * CHUNK_WORDS,
    cubin_slots: 64,
    cubin_bytes: 4 << 20,
    definition_slots: 64,
    definition_bytes: 1 << 20,
};

pub fn backing(name: &str) -> BackingChoice {
    match name {
        "shm" => BackingChoice::Only(Backing::Shm),
        "memfd" => BackingChoice::Only(Backing::Memfd),
        _ => BackingChoice::Auto,
    }
}

/// A tap of this process with all its room reserved, and readable.
pub fn small_tap(backing: BackingChoice) -> (TapWriter, Created) {
    let created = create(SMALL, backing).unwrap();
    let tap = TapWriter::new(&created);
    let ahead = Ahead { lanes: 2, cubin_bytes: 4 << 20, definition_bytes: 1 << 20, step_bytes: 8 << 20 };
    let Created { words, layout, identity, reserver, control } = created;
    let mut housekeeper = Housekeeper::new(reserver, ahead);
    while let Step::Reserved = housekeeper.step(&tap) {}
    tap.status().set_state(State::Idle, Reason::None, "");
    tap.publish();
    let reserver = housekeeper.into_reserver();
    (tap, Created { words, layout, identity, reserver, control })
}

pub fn named(created: &Created, what: &str) -> String {
    let i = created.identity;
    format!("/dev/shm/gputap-{}-{}-{:016x}.{what}", i.pid_namespace, i.pid, i.nonce)
}
