//! How long an export takes, and how much memory.
//!
//! `cargo bench -p gputap-benches --bench export -- [KERNELS] [FORMAT ...]`

use gputap_export::{Format, Options, export};
use gputap_recording::Recording;
use gputap_sample::Sample;
use std::path::Path;
use std::time::Instant;

const KERNELS: u64 = 10_000_000;
const TARGET_SECONDS: f64 = 20.0;
const TARGET_PARQUET_SECONDS: f64 = 10.0;
const TARGET_PEAK_MB: f64 = 500.0;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let kernels = words.iter().find_map(|word| word.parse().ok()).unwrap_or(KERNELS);
    let dir = tempfile::tempdir().expect("a folder");
    for launches in [false, true] {
        let recording = dir.path().join(format!("recording-{launches}"));
        let sample = Sample { launches, ..Sample::large(kernels) };
        let wrote = sample.write(&recording).expect("a recording");
        println!("{} events{}", wrote.events(), if launches { ", with a launch for each" } else { "" });
        for &format in Format::ALL.iter().filter(|format| wanted(&words, format.name())) {
            measure(&recording, format, &dir.path().join("out"));
        }
        std::fs::remove_dir_all(&recording).expect("the recording goes");
    }
}

fn wanted(words: &[String], format: &str) -> bool {
    let names: Vec<&String> = words.iter().filter(|word| word.parse::<u64>().is_err()).collect();
    names.is_empty() || names.iter().any(|name| *name == format)
}

fn measure(recording: &Path, format: Format, out: &Path) {
    forget_peak();
    let began = Instant::now();
    let recording = Recording::open(recording).expect("a recording");
    let exported = export(&recording, format, out, &Options::default()).expect("an export");
    let (seconds, peak_mb) = (began.elapsed().as_secs_f64(), peak_mb());
    let target_seconds = if format == Format::Parquet { TARGET_PARQUET_SECONDS } else { TARGET_SECONDS };
    let verdict = if seconds <= target_seconds && peak_mb <= TARGET_PEAK_MB { "reached" } else { "MISSED" };
    println!(
        "{:9} {seconds:6.1} s  {peak_mb:5.0} MB at most  {:6.0} MB written  target {target_seconds} s and {TARGET_PEAK_MB} MB: {verdict}",
        format.name(),
        exported.bytes as f64 / 1e6,
    );
    let removed = if out.is_dir() { std::fs::remove_dir_all(out) } else { std::fs::remove_file(out) };
    removed.expect("the export goes");
}

/// The kernel's count of the largest resident size begins again.
fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux lets a process forget its peak");
}

fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0 / 1e6
}
