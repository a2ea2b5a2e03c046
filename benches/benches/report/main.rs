//! How fast is a recording of millions of kernels read and summed up, in how much memory, and how does loading the JSON that
//! torch.profiler writes compare?
//!
//! `cargo bench -p gputap-benches --bench report`. Each row is a process of its own, so that its peak memory is its own;
//! three rounds, the median.
//!
//! ```text
//! cargo bench -p gputap-benches --bench report -- [--kernels N]
//! ```

mod kineto;
mod rows;

use gputap_sample::Sample;
use rows::{Row, measure};
use std::path::Path;

const KERNELS: u64 = 10_000_000;
/// Of the JSON that Python loads.
const JSON_EVENTS: u64 = 1_000_000;
const USAGE: &str = "usage: report [--kernels N]";

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.retain(|argument| argument != "--bench"); // cargo bench adds it.
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [rows::COMMAND, what, dir] => rows::serve(what, Path::new(dir)),
        ["--kernels", number] => compare(number.parse().unwrap_or_else(|_| usage())),
        [] => compare(KERNELS),
        _ => usage(),
    }
}

fn compare(kernels: u64) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("{cores} cores; load average {} before, when it should be near 0", load.split(' ').next().unwrap_or("?"));
    let (one, two, few) = (dir.path().join("one"), dir.path().join("two"), dir.path().join("few"));
    let wrote = Sample::large(kernels).write(&one).expect("room for a recording");
    let events = wrote.events();
    Sample { processes: 2, ..Sample::large(kernels) }.write(&two).expect("room for a recording");
    Sample::large(kernels / 10).write(&few).expect("room for a recording");
    let json = dir.path().join("kineto.json");
    kineto::write(&json, JSON_EVENTS).expect("room for the JSON");
    println!("{:<44} {:>9} {:>9} {:>11} {:>9} {:>9}", "", "time", "CPU", "events/CPUs", "peak", "file");
    measure("decode", "decode, one process", &one, events).print();
    measure("report", "decode and report, one process", &one, events).print();
    measure("by", "decode and report by stream, one process", &one, events).print();
    measure("report", "decode and report, two processes", &two, events).print();
    measure("report", "the same of a tenth of the kernels", &few, events / 10).print();
    match kineto::load(&json, JSON_EVENTS) {
        Some(row) => Row::print(&row),
        None => println!("python3 is not here: json.load is skipped"),
    }
}

fn usage() -> ! {
    eprintln!("{USAGE}");
    std::process::exit(2)
}
