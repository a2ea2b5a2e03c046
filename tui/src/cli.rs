//! The command line.

mod lines;
mod look;
mod papers;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use gputap_export::Format as ExportFormat;
use gputap_reader::recording::{Filter, Trigger, parse_duration_ns};
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
  gputap report run1                    sum up what it did
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
    /// Sum up a recording: kernels, copies, busy and idle time, memory, ranks, loss
    Report(Report),
    /// Compare two recordings, kernel by kernel
    Diff(Diff),
    /// Write a recording in the format of another tool
    Export(Export),
    /// List the processes that have a tap
    Ps(Ps),
    /// List the cubins of a recording
    Cubins(Cubins),
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
#[command(after_help = "\
The job keeps its standard streams; gputap's own words go to standard error.
Examples:
  gputap record -- torchrun --nproc-per-node 8 train.py    all ranks, one folder
  gputap record --all --max-size 2G                        every tap on this machine, the newest 2 GB
  gputap record --trigger 'kernel>50ms' --trigger exit -p 1234
  gputap record --post-mortem 1234                         what a killed black box left")]
pub struct Record {
    #[command(flatten)]
    pub target: Target,
    /// Every tap on this machine that may be read, as they come and go
    #[arg(long, conflicts_with = "whom")]
    pub all: bool,
    /// What a process that was killed left in shared memory: the only one there is, or that of a pid or segment
    #[arg(
        long, value_name = "PID|SEGMENT", num_args = 0..=1, default_missing_value = "",
        conflicts_with_all = ["whom", "all", "duration", "triggers", "kinds", "launches"]
    )]
    pub post_mortem: Option<String>,
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
    #[command(flatten)]
    pub keeping: Keeping,
}

/// What is kept of what is read.
#[derive(Args, Clone, Debug)]
pub struct Keeping {
    /// Keep the newest of the recording within so many bytes (500M, 2G; at least 1M)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_size: Option<u64>,
    /// Leave out kernels whose demangled name does not match; they are counted
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<Filter>,
    /// Keep only the last seconds until this happens: kernel>10ms (one takes longer), idle>2s (the GPU rests longer), exit
    /// (a process is killed or crashes); may be given several times
    #[arg(long = "trigger", id = "triggers", value_name = "WHAT")]
    pub triggers: Vec<Trigger>,
    /// How much to keep of what was before a trigger
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_duration_ns)]
    pub last: u64,
    /// How much to keep of what comes after
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration_ns)]
    pub after: u64,
    /// End after the first trigger, rather than wait for the next
    #[arg(long, requires = "triggers")]
    pub once: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Times count from the first load of all. A cubin that cannot be read is told on standard error; the others are listed.
SHARED may include what the system reserves (1 KiB, from sm_90 on); STACK is - where a kernel calls itself.")]
pub struct Cubins {
    /// The folder that `gputap record` wrote
    pub dir: PathBuf,
    /// Of each cubin its kernels: registers, local memory and stack of a thread, static shared memory of a block
    #[arg(long)]
    pub kernels: bool,
    /// Those with this CRC-32, or with this CRC of CUPTI's, which several may share (hexadecimal)
    #[arg(long, value_name = "CRC", value_parser = crc)]
    pub crc: Option<u64>,
    /// One JSON object, with the kernels
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Busy time counts once what overlaps. Percentiles are within 1 %; sums and counts are exact. Records whose times cannot be
believed count as calls, and are in no time. Exit code 2 where there is nothing to report on.

Examples:
  gputap report run1                              all of it
  gputap report run1 --between 12.5 20            from 12.5 s to 20 s after the recording began
  gputap report run1 --between 12:03:04 12:04     by the time of day in UTC
  gputap report run1 --filter 'gemm|flash' --csv  some kernels, for a spreadsheet")]
pub struct Report {
    /// The folder of the recording
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// One JSON object
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// The table of kernels (with --by: of the groups) as CSV, times in nanoseconds
    #[arg(long)]
    pub csv: bool,
    /// Add kernels up by this, too
    #[arg(long, value_name = "WHAT")]
    pub by: Option<By>,
    /// Only what starts between two times: seconds since the recording began, times of day in UTC, or RFC 3339
    #[arg(long, num_args = 2, value_names = ["T1", "T2"], allow_hyphen_values = true)]
    pub between: Vec<String>,
    /// Only kernels whose readable name this regular expression finds
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<String>,
    /// Rows of a table; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Stream,
    Device,
    Rank,
    /// Nodes of graphs, by graph
    Graph,
    /// The cubin that defines the kernel
    Cubin,
}

#[derive(Args, Debug)]
#[command(after_help = "\
With --fail-over: exit code 1 where the total GPU time, or a call of a kernel with more than 1 % of it, is longer by more.
Exit code 2 where a recording cannot be read.")]
pub struct Diff {
    /// The recording to compare with
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The recording that may have changed
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// Fail where something got slower by more than so much, as 5%
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub fail_over: Option<f64>,
    /// Only kernels whose readable name this regular expression finds
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<String>,
    /// Rows of a table; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rows: usize,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Formats:
  perfetto   one file for ui.perfetto.dev: streams, flows from launches, curves, NVTX
  chrome     JSON as torch.profiler writes it, for HolisticTraceAnalysis: a folder with a file for each process,
             or, of one process, a file whose name ends in .json or .gz
  parquet    a folder of tables for DuckDB, pandas and Spark
  pprof      GPU time by kernel, for go tool pprof
  csv, json  the tables as text")]
pub struct Export {
    /// The folder of the recording
    pub recording: PathBuf,
    /// perfetto, chrome, parquet, pprof, csv or json
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub to: ExportFormat,
    /// The file or folder to write [default: named after the format, here]; -: one table to standard output (csv, json, pprof)
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Which table goes to standard output
    #[arg(long, value_name = "NAME", default_value = "kernels")]
    pub table: String,
    /// Replace a file that is there already
    #[arg(short, long)]
    pub force: bool,
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

fn crc(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "not a hexadecimal number of at most 64 bits".to_owned())
}

/// `500M`, `2G`: thousands; `1GiB`: 1024s.
fn size(text: &str) -> Result<u64, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let unit_bytes = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1048576.0,
        "gib" => 1073741824.0,
        "tib" => 1099511627776.0,
        _ => return Err(format!("{unit:?} is no unit of size: k, M, G, T, MiB, GiB")),
    };
    let number: f64 = number.trim().parse().map_err(|_| "not a size, as in 500M or 2G".to_owned())?;
    let bytes = number * unit_bytes;
    if (1e6..=1e18).contains(&bytes) { Ok(bytes as u64) } else { Err("must be at least 1M".to_owned()) }
}

fn format(text: &str) -> Result<ExportFormat, String> {
    ExportFormat::from_name(text).map_err(|error| error.to_string())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 1e9 { Ok(seconds) } else { Err("must be more than 0 and at most 1e9".to_owned()) }
}

/// `5%` and `5` are 0.05.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=1e6).contains(&percent) => Ok(percent / 100.0),
        _ => Err("must be a number of percent, 0 or more, as 5%".to_owned()),
    }
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
        assert!(parse("gputap top run1").is_ok(), "a recording");
        assert!(parse("gputap top run1 -p 12").is_err());
        assert!(parse("gputap top run1 -- prog").is_err());
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
    fn a_crc_is_hexadecimal() {
        let crc = |text: &str| match parse(&format!("gputap cubins run --crc {text}")).map(|cli| cli.command) {
            Ok(Command::Cubins(cubins)) => cubins.crc,
            Ok(other) => panic!("{other:?}"),
            Err(_) => None,
        };
        assert_eq!(crc("0x1A2b"), Some(0x1a2b));
        assert_eq!(crc("10"), Some(0x10));
        assert_eq!([crc("0x"), crc("g"), crc("0x10000000000000000")], [None; 3]);
    }

    #[test]
    fn a_recording_is_of_one_thing_and_says_what_to_keep() {
        let record = |words: &str| match parse(&format!("gputap record {words}")).map(|cli| cli.command) {
            Ok(Command::Record(record)) => Ok(record),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        };
        let kept = record("--all --max-size 1.5GiB --trigger kernel>10ms --trigger exit --last 3 --once").unwrap();
        assert_eq!((kept.all, kept.keeping.max_size), (true, Some(3 << 29)));
        assert_eq!(kept.keeping.triggers, [Trigger::Kernel { longer_ns: 10_000_000 }, Trigger::Exit]);
        assert_eq!((kept.keeping.last, kept.keeping.after), (3_000_000_000, 5_000_000_000));
        assert_eq!(record("--post-mortem").unwrap().post_mortem.as_deref(), Some(""));
        assert_eq!(record("--post-mortem 12 -o x").unwrap().post_mortem.as_deref(), Some("12"));
        for wrong in [
            "--all -p 1",
            "--all -- x",
            "--post-mortem 1 -p 1",
            "--once",
            "--max-size 10",
            "--filter (",
            "--trigger heat",
        ] {
            assert!(record(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn exports_are_asked_for_by_format() {
        let cli = parse("gputap export run --to perfetto -o out --force").unwrap();
        let Command::Export(export) = cli.command else { panic!("{cli:?}") };
        assert_eq!(
            (export.to, export.output, export.force),
            (ExportFormat::Perfetto, Some(PathBuf::from("out")), true)
        );
        let error = parse("gputap export run --to svg").unwrap_err().to_string();
        assert!(error.contains("\"svg\"") && error.contains("perfetto, chrome, parquet"), "{error}");
        // The help names every format.
        let help = Cli::command().find_subcommand_mut("export").expect("export").render_long_help().to_string();
        assert_eq!(ExportFormat::ALL.iter().find(|format| !help.contains(format.name())), None);
    }

    #[test]
    fn numbers_have_ranges() {
        for line in ["demo --seconds 0", "demo --seconds nan", "demo --threads 0", "ctl 1 explode", "top -p x"] {
            assert!(parse(&format!("gputap {line}")).is_err(), "{line}");
        }
        assert!(parse("gputap ctl 1 yield --timeout 0.5").is_ok());
        for line in [
            "diff a b --fail-over -1%",
            "diff a b --fail-over x",
            "diff a",
            "report a --between 1",
            "report a --json --csv",
        ] {
            assert!(parse(&format!("gputap {line}")).is_err(), "{line}");
        }
        let Ok(Command::Diff(diff)) = parse("gputap diff a b --fail-over 2.5%").map(|cli| cli.command) else {
            panic!()
        };
        assert_eq!(diff.fail_over, Some(0.025));
    }
}
