//! The command line.

mod lines;
mod look;
mod papers;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use gputap_ringbuf::event::{EventKind, kinds_of};

pub use lines::{Format, Lines, Refresh, Rows};
pub use look::{Look, ThemeChoice, When};
pub use papers::{Completions, Config, Man, Shell};

/// Watch which kernels use the GPU in a running job, without touching it.
///
/// A small library in the job copies what CUPTI says into shared memory and never waits; gputap reads it from there.
#[derive(Debug, Parser)]
#[command(name = "gputap", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  gputap demo                           a simulated job, no GPU needed
  gputap top -- python3 train.py        start a job and watch it
  gputap top -p 1234                    watch a job that has a tap
  gputap top run1                       play a recording
  gputap record -o run1 -- ./a.out      start a job and write down what it does
  gputap top --launches -- ./a.out      show what was launched and has not finished, too")]
pub struct Cli {
    #[command(flatten)]
    pub look: Look,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch the kernels of a job, live
    Top(Top),
    /// Write what a job does into a folder
    Record(Record),
    /// List the processes that have a tap
    Ps(Ps),
    /// Tell a tap to start, stop, give way to another profiler, take over again, or flush
    Ctl(Ctl),
    /// Print the variables that put a tap into a job started by other means
    Env(Env),
    /// Show all of it on a simulated job, without a GPU
    Demo(Demo),
    /// Check what a tap needs on this machine
    Doctor(Doctor),
    /// Remove what taps of dead processes left in shared memory
    Clean(Clean),
    /// Print the settings, and where each comes from
    Config(Config),
    /// Print what completes gputap's command line in a shell
    Completions(Completions),
    /// Print gputap's manual page, or write all of them
    Man(Man),
    /// Print CUPTI's checksum of the cubin on standard input (the reader's own child)
    #[command(name = "__cupti-crc", hide = true)]
    CuptiCrc(CuptiCrc),
    /// Be the simulated job of the demo
    #[command(name = "__sim-job", hide = true)]
    SimJob(SimJob),
}

impl Command {
    /// Whether to say what is wrong with the settings before it runs: not where it only prints what is built in, says
    /// it itself, or is a child of ours.
    pub fn heeds_settings(&self) -> bool {
        !matches!(
            self,
            Command::Config(_) | Command::Completions(_) | Command::Man(_) | Command::CuptiCrc(_) | Command::SimJob(_)
        )
    }
}

#[derive(Args, Clone, Debug)]
#[group(id = "whom", multiple = false)]
pub struct Target {
    /// The process that has a tap (with neither PID nor COMMAND: the only one there is, or choose)
    #[arg(short, long, value_name = "PID")]
    pub pid: Option<u32>,
    /// The job to start, with its arguments; its exit code becomes gputap's
    #[arg(last = true, value_name = "COMMAND", num_args = 1..)]
    pub job: Vec<OsString>,
}

/// What to ask the tap for.
#[derive(Args, Clone, Copy, Debug)]
pub struct Wish {
    /// Kinds of events to record: a list of kernel, memcpy, memset, sync, graph (whole graphs in place of their kernels),
    /// memory, pool, overhead, runtime, driver, nvtx, launch; or all
    #[arg(long, value_name = "LIST", default_value = "kernel,memcpy,memset", value_parser = kinds)]
    kinds: u64,
    /// Record each launch too: shows what was launched and has not finished (the job must have been started with it)
    #[arg(long)]
    launches: bool,
}

impl Wish {
    /// A mask of kinds.
    pub fn kinds(&self) -> u64 {
        if self.launches { self.kinds | EventKind::Launch.bit() } else { self.kinds }
    }
}

#[derive(Args, Clone, Debug)]
pub struct Launch {
    /// Put the tap in even if CUDA_INJECTION64_PATH names another tool's library
    #[arg(long)]
    pub replace_injection: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Not on a terminal, a table is printed at each refresh (of a started job: one, at its end).
With --json or --csv, what a started job writes goes to standard error.

Examples:
  gputap top -p 1234 --once              one table, after a second
  gputap top -p 1234 --json -n 60        a snapshot a second, for a minute
  gputap top --csv -- ./a.out > k.csv    what the kernels have taken so far, each second")]
pub struct Top {
    /// A recording to play, a folder that `gputap record` wrote
    #[arg(value_name = "RECORDING", conflicts_with_all = ["pid", "job", "all"])]
    pub recording: Option<PathBuf>,
    /// Follow all processes that have a tap, side by side
    #[arg(long, conflicts_with_all = ["pid", "job"])]
    pub all: bool,
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub launch: Launch,
    #[command(flatten)]
    pub wish: Wish,
    #[command(flatten)]
    pub lines: Lines,
    #[command(flatten)]
    pub plain: Rows,
    /// End after so many seconds
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub seconds: Option<f64>,
}

#[derive(Args, Debug)]
#[command(after_help = "The job keeps its standard streams; gputap's own words go to standard error.")]
pub struct Record {
    #[command(flatten)]
    pub target: Target,
    #[command(flatten)]
    pub launch: Launch,
    #[command(flatten)]
    pub wish: Wish,
    /// The folder to write, which must be new or empty
    #[arg(short, long, value_name = "DIR", default_value_os_t = PathBuf::from("gputap-recording"))]
    pub output: PathBuf,
    /// Record for so long, from the first tap on; a started job goes on unrecorded
    #[arg(short, long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<f64>,
}

#[derive(Args, Debug)]
pub struct Ps {
    /// One JSON array
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Returns when the tap has done it: exit code 0, or 1 with the reason.
Before torch.profiler, Nsight or another CUPTI tool starts in the job: gputap ctl PID yield")]
pub struct Ctl {
    /// The tapped process
    pub pid: u32,
    /// What it is to do
    pub action: Action,
    /// How long to wait for the tap's answer
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub timeout: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Action {
    /// Record even while nobody reads; ends stop
    Start,
    /// Record nothing, whoever reads, until start
    Stop,
    /// Leave CUPTI to another profiler
    Yield,
    /// Take CUPTI up again
    Resume,
    /// Hand over what CUPTI holds now
    Flush,
}

#[derive(Args, Debug)]
#[command(after_help = "For a shell: eval \"$(gputap env)\"")]
pub struct Env {
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Not on a terminal, a table is printed at each refresh.")]
pub struct Demo {
    /// End after so many seconds
    #[arg(long, value_name = "N", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Draw nothing
    #[arg(long)]
    pub headless: bool,
    /// Print one JSON object at the end: what was generated, and what arrived (implies --headless)
    #[arg(long)]
    pub json: bool,
    /// Record as well, into this folder
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub lines: Lines,
    #[command(flatten)]
    pub load: Load,
}

/// How much the simulated job does.
#[derive(Args, Clone, Debug)]
pub struct Load {
    /// Kernels a second of all threads together; 0 for as many as possible
    #[arg(long, value_name = "N", default_value_t = 12_000)]
    pub rate: u64,
    /// Threads that launch kernels
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,
    /// Load and unload modules all the time
    #[arg(long)]
    pub churn: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "Exit code 1 when a problem was found.")]
pub struct Doctor {
    /// One JSON array
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct Clean {}

#[derive(Args, Debug)]
pub struct CuptiCrc {
    /// The libcupti to ask
    pub library: PathBuf,
}

#[derive(Args, Debug)]
pub struct SimJob {
    /// Talk as a training run does
    #[arg(long)]
    pub talk: bool,
    /// What to do, as field=value
    pub words: Vec<String>,
}

/// Allocations from a pool say little without what becomes of the pool.
fn kinds(text: &str) -> Result<u64, String> {
    match kinds_of(text).map_err(|error| error.to_string())? {
        0 => Err("names no kind".to_owned()),
        kinds if kinds & EventKind::Memory.bit() != 0 => Ok(kinds | EventKind::Pool.bit()),
        kinds => Ok(kinds),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 1e9 { Ok(seconds) } else { Err("must be more than 0 and at most 1e9".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use gputap_ringbuf::event::{ALL_KINDS, BASIC_KINDS};

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_job_keeps_its_own_arguments() {
        let cli = parse("gputap record -o run -d 2.5 -- prog -o x --color never -- y").unwrap();
        let Command::Record(record) = cli.command else { panic!("{cli:?}") };
        assert_eq!(record.target.job, ["prog", "-o", "x", "--color", "never", "--", "y"]);
        assert_eq!(record.output, PathBuf::from("run"));
        assert_eq!(record.duration, Some(2.5));
    }

    #[test]
    fn a_pid_or_a_job() {
        assert!(parse("gputap top").is_ok());
        assert!(parse("gputap top -p 12").is_ok());
        assert!(parse("gputap top -- prog").is_ok());
        assert!(parse("gputap top -p 12 -- prog").is_err());
        assert!(parse("gputap top prog").is_err(), "a forgotten -- is an error, not another target");
    }

    #[test]
    fn kinds_are_asked_for_by_name() {
        let wish = |line: &str| match parse(line).map(|cli| cli.command) {
            Ok(Command::Top(top)) => Ok(top.wish.kinds()),
            Ok(Command::Record(record)) => Ok(record.wish.kinds()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        };
        let (sync, memory, pool) = (EventKind::Sync.bit(), EventKind::Memory.bit(), EventKind::Pool.bit());
        let launch = EventKind::Launch.bit();
        assert_eq!(wish("gputap top"), Ok(BASIC_KINDS));
        assert_eq!(wish("gputap record --launches -- prog"), Ok(BASIC_KINDS | launch));
        assert_eq!(wish("gputap record --kinds sync,memory --launches"), Ok(sync | memory | pool | launch));
        assert_eq!(wish("gputap top --kinds all"), Ok(ALL_KINDS));
        let error = wish("gputap top --kinds kernel,warps").expect_err("no such kind");
        assert!(error.contains("\"warps\"") && error.contains("kernel, memcpy") && error.contains("nvtx"), "{error}");
        assert!(wish("gputap top --kinds ,").is_err_and(|error| error.contains("names no kind")));
        // The help names every kind.
        let help = Cli::command().find_subcommand_mut("top").expect("top").render_long_help().to_string();
        let missing = EventKind::ALL.iter().find(|kind| !help.contains(kind.name()));
        assert_eq!(missing, None);
    }

    #[test]
    fn numbers_have_ranges() {
        for line in ["demo --seconds 0", "demo --seconds nan", "demo --threads 0", "ctl 1 explode", "top -p x"] {
            assert!(parse(&format!("gputap {line}")).is_err(), "{line}");
        }
        assert!(parse("gputap ctl 1 yield --timeout 0.5").is_ok());
    }
}
