//! How long does a recording take to become tables, how much memory, and how large are they?
//!
//! `cargo bench -p gputap-benches --bench tables`: a recording of 10 million kernels of one process is made in the system's
//! temporary folder (or `$TMPDIR`), then exported in each format, by a process of its own, several times in turns. For each:
//! the median, the least and the greatest time, the greatest peak of memory, and the bytes beside those of the recording.
//!
//! ```text
//! cargo bench -p gputap-benches --bench tables -- [--kernels N] [--rounds N]
//! ```

use gputap_export::table::ALL_TABLES;
use gputap_export::{Exported, Options, csv, json, parquet, pprof};
use gputap_recording::Recording;
use gputap_sample::Sample;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const FORMATS: [&str; 4] = ["parquet", "pprof", "csv", "json"];
/// The argument that makes the bench one export.
const ONE: &str = "one";
/// Of Parquet, at 10 million kernels.
const TARGET_S: f64 = 10.0;
const TARGET_MB: f64 = 500.0;
const TARGET_KERNELS: u64 = 10_000_000;

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.retain(|argument| argument != "--bench"); // cargo bench adds it.
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [ONE, format, recording, out] => one(format, Path::new(recording), Path::new(out)),
        _ => compare(number(&arguments, "--kernels", TARGET_KERNELS), number(&arguments, "--rounds", 3)),
    }
}

fn number(arguments: &[String], name: &str, default: u64) -> u64 {
    let at = arguments.iter().position(|argument| argument == name);
    at.and_then(|at| arguments.get(at + 1)).map_or(default, |value| value.parse().expect("a number"))
}

/// What an export says of itself.
struct Run {
    seconds: f64,
    peak_mb: f64,
    bytes: u64,
    events: u64,
}

fn compare(kernels: u64, rounds: u64) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let recording = dir.path().join("recording");
    Sample::large(kernels).write(&recording).expect("the recording is written");
    let recorded_bytes = bytes_in(&recording);
    let mut runs: Vec<Vec<Run>> = FORMATS.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (format, runs) in FORMATS.iter().zip(&mut runs) {
            runs.push(apart(format, &recording, &dir.path().join("out")));
        }
    }
    println!("{kernels} kernels; the recording has {:.1} MB", recorded_bytes as f64 / 1e6);
    println!(
        "{:8} {:>8} {:>15} {:>10} {:>9} {:>9} {:>10}",
        "", "median", "least-greatest", "events/s", "peak MB", "MB", "of rec."
    );
    for (format, mut runs) in FORMATS.iter().zip(runs) {
        runs.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        let (median, peak_mb) = (&runs[runs.len() / 2], runs.iter().map(|run| run.peak_mb).fold(0.0, f64::max));
        println!(
            "{format:8} {:>6.2} s {:>6.2} - {:.2} s {:>10.0} {peak_mb:>9.0} {:>9.1} {:>9.2}x",
            median.seconds,
            runs[0].seconds,
            runs[runs.len() - 1].seconds,
            median.events as f64 / median.seconds,
            median.bytes as f64 / 1e6,
            median.bytes as f64 / recorded_bytes as f64,
        );
        if *format == "parquet" && kernels == TARGET_KERNELS {
            let verdict = |met: bool| if met { "met" } else { "MISSED" };
            println!("  target: at most {TARGET_S} s: {}", verdict(median.seconds <= TARGET_S));
            println!("  target: below {TARGET_MB} MB: {}", verdict(peak_mb < TARGET_MB));
        }
    }
}

/// An export in a process of its own, so that its peak of memory is nobody else's.
fn apart(format: &str, recording: &Path, out: &Path) -> Run {
    let program = std::env::current_exe().expect("this program has a path");
    let output = Command::new(program).args([ONE, format]).args([recording, out]).output().expect("it runs again");
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [seconds, peak_mb, bytes, events] = numbers[..] else {
        panic!("{format}: {text}{}", String::from_utf8_lossy(&output.stderr));
    };
    let _ = std::fs::remove_dir_all(out).or_else(|_| std::fs::remove_file(out));
    Run { seconds, peak_mb, bytes: bytes as u64, events: events as u64 }
}

fn one(format: &str, recording: &Path, out: &Path) {
    let began = Instant::now();
    let recording = Recording::open(recording).expect("a recording");
    let exported = export(format, &recording, out);
    println!("{} {} {} {}", began.elapsed().as_secs_f64(), peak_mb(), exported.bytes, exported.events);
}

fn export(format: &str, recording: &Recording, out: &Path) -> Exported {
    let options = Options::default();
    match format {
        "parquet" => parquet::to_folder(recording, ALL_TABLES, out, &options),
        "csv" => csv::to_folder(recording, ALL_TABLES, out, &options),
        "json" => json::to_folder(recording, ALL_TABLES, out, &options),
        _ => pprof::to_file(recording, out, &options),
    }
    .expect("the export is written")
}

/// Of this process so far.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel says it");
    let kib: f64 = line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number");
    kib * 1024.0 / 1e6
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .map(
            |entry| {
                if entry.path().is_dir() { bytes_in(&entry.path()) } else { entry.metadata().map_or(0, |m| m.len()) }
            },
        )
        .sum()
}
