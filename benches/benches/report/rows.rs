//! A row: a process of its own, with its time and its peak memory.

use gputap_recording::{Block, Recording};
use gputap_report::{By, Options, Report};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// First argument of the process that does a row's work.
pub const COMMAND: &str = "row";
/// Odd, so that the median is a round.
const ROUNDS: usize = 3;

pub struct Row {
    pub name: String,
    pub seconds: f64,
    /// Of all its threads: what counts where others use the machine too.
    pub cpu_seconds: f64,
    pub events: u64,
    pub peak_bytes: u64,
    pub file_bytes: u64,
}

impl Row {
    pub fn print(&self) {
        println!(
            "{:<44} {:>7.2} s {:>7.2} s {:>9.2} M {:>6.0} MB {:>6.0} MB",
            self.name,
            self.seconds,
            self.cpu_seconds,
            self.events as f64 / self.cpu_seconds / 1e6,
            self.peak_bytes as f64 / 1e6,
            self.file_bytes as f64 / 1e6
        );
    }
}

/// Does `what` with the recording in `dir`, several times.
pub fn measure(what: &str, name: &str, dir: &Path, events: u64) -> Row {
    let mut rounds: Vec<(f64, f64, u64)> = (0..ROUNDS).map(|_| round(what, dir, events)).collect();
    rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (seconds, cpu_seconds, _) = rounds[ROUNDS / 2];
    let peak_bytes = rounds.iter().map(|round| round.2).max().unwrap_or(0);
    Row { name: name.to_owned(), seconds, cpu_seconds, events, peak_bytes, file_bytes: bytes_in(dir) }
}

fn round(what: &str, dir: &Path, events: u64) -> (f64, f64, u64) {
    let own = std::env::current_exe().expect("the bench's own path");
    let output = Command::new(own).args([COMMAND, what]).arg(dir).output().expect("the bench starts itself");
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = words.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [seconds, cpu_seconds, peak_bytes, read] = numbers[..] else { panic!("{what}: {output:?}") };
    assert!(read <= events as f64 && read >= events as f64 * 0.9, "{what}: {read} events of {events}");
    (seconds, cpu_seconds, peak_bytes as u64)
}

/// In the row's own process: prints seconds, peak memory and how many events it saw.
pub fn serve(what: &str, dir: &Path) {
    let began = Instant::now();
    let events = match what {
        "decode" => decode(dir),
        "report" => report(dir, None),
        "by" => report(dir, Some(By::Stream)),
        _ => panic!("no such row: {what}"),
    };
    println!("{} {} {} {events}", began.elapsed().as_secs_f64(), cpu_seconds(), peak_bytes());
}

fn decode(dir: &Path) -> u64 {
    let recording = Recording::open(dir).expect("a recording");
    let mut events = 0;
    for one in recording.processes() {
        let mut stream = one.stream(u64::MAX);
        while let Some(block) = stream.next_block() {
            if let Block::Events(block) = block {
                events += block.len() as u64;
            }
        }
    }
    events
}

fn report(dir: &Path, by: Option<By>) -> u64 {
    let report = Report::of(dir, &Options { by, ..Options::default() }).expect("a report");
    report.events
}

/// Fields 14 and 15 of /proc/self/stat: ticks of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn bytes_in(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_in(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}
