//! Running the binary as a person or a script does.
#![allow(dead_code, reason = "each test program uses a part of this")]

pub mod screen;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Long enough for a machine that does much else; a test that passes never waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// gputap with a cache of the tests' own and nothing of the caller's that would change what it does.
pub fn gputap() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gputap"));
    for (name, value) in environment() {
        command.env(name, value);
    }
    for name in REMOVED {
        command.env_remove(name);
    }
    command
}

pub fn environment() -> [(&'static str, String); 4] {
    let own_folder = env!("CARGO_TARGET_TMPDIR");
    [
        ("XDG_CACHE_HOME", own_folder.to_owned()),
        ("XDG_CONFIG_HOME", format!("{own_folder}/no-settings")),
        ("TERM", "xterm-256color".to_owned()),
        ("LC_ALL", "C.UTF-8".to_owned()),
    ]
}

pub const REMOVED: [&str; 12] = [
    "CUDA_INJECTION64_PATH",
    "NVTX_INJECTION64_PATH",
    "GPUTAP_CUPTI",
    "GPUTAP_START",
    "GPUTAP_KINDS",
    "GPUTAP_LAUNCHES",
    "GPUTAP_BACKING",
    "NO_COLOR",
    "COLORTERM",
    "COLORFGBG",
    "LC_CTYPE",
    "LANG",
];

pub fn run(arguments: &[&str]) -> Output {
    gputap().args(arguments).stdin(Stdio::null()).output().expect("gputap runs")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The shim and the fakes, where gputap put them.
pub struct Installed {
    pub shim: PathBuf,
    pub fake_cuda: PathBuf,
    pub fake_cupti: PathBuf,
}

pub fn installed() -> Installed {
    let variables = json(&run(&["env", "--json"]));
    let shim = PathBuf::from(variables["CUDA_INJECTION64_PATH"].as_str().expect("a path"));
    let fakes = shim.parent().expect("a folder").join("fakes");
    Installed { shim, fake_cuda: fakes.join("libcuda.so.1"), fake_cupti: fakes.join("libcupti.so.13") }
}

/// The simulated job as a command of its own.
pub fn job(words: &[&str]) -> Vec<String> {
    let mut line = vec![env!("CARGO_BIN_EXE_gputap").to_owned(), "__sim-job".to_owned()];
    line.push(format!("libcuda={}", installed().fake_cuda.display()));
    line.extend(words.iter().map(|word| (*word).to_owned()));
    line
}

/// A tapped job that runs until it is dropped.
pub struct TappedJob {
    pub child: Child,
}

impl TappedJob {
    pub fn start() -> TappedJob {
        let libraries = installed();
        let line = job(&["until_stdin_closes=true", "kernels_per_second=2000", "threads=2"]);
        let mut command = gputap();
        command.args(&line[1..]).env("CUDA_INJECTION64_PATH", libraries.shim).env("GPUTAP_CUPTI", libraries.fake_cupti);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the job starts");
        let job = TappedJob { child };
        eventually("the tap appears", || job.tap().is_some());
        job
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Its entry in `gputap ps --json`, once it is whole.
    pub fn tap(&self) -> Option<Value> {
        let taps = json(&run(&["ps", "--json"]));
        let taps = taps.as_array().expect("an array");
        taps.iter()
            .find(|tap| tap["pid"] == self.child.id() && tap["alive"] == true && tap["cupti_version"] != 0)
            .cloned()
    }
}

impl Drop for TappedJob {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Waits until `holds`, looking again and again, and fails with `what` at the deadline.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}");
        thread::yield_now();
    }
}
