//! What does a record cost the tapped process, and how near is that to what the machine and others can do?
//!
//! `cargo bench -p gputap-benches --bench ring`: every subject in turns, several rounds, one run. For each: the median,
//! the least and the greatest round, and the ratio to what it is compared with; then the targets, met or not.
//! benches/README.md says what each row means and how to get the peers.
//!
//! ```text
//! cargo bench -p gputap-benches --bench ring -- [--rounds N]
//! cargo bench -p gputap-benches --bench ring -- sustained [--runs N] [--seconds N]
//! ```

mod batches;
mod duplicates;
mod lanes;
mod peers;
mod queue;
mod reader_process;
mod readers;
mod stores;
mod sustained;
mod table;
mod tap;
mod targets;

use peers::Peers;
use stores::Stores;
use table::Table;

/// Odd, so that the median is a round.
const ROUNDS: usize = 11;
/// A segment may have 4 GiB, and each round stores 64 MiB.
const MAX_ROUNDS: usize = 51;
const USAGE: &str = "usage: ring [--rounds N] | ring sustained [--runs N] [--seconds N]";

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    arguments.retain(|argument| argument != "--bench"); // cargo bench adds it.
    match arguments.first().map(String::as_str) {
        Some(reader_process::COMMAND) => reader_process::serve(number(&arguments, reader_process::COMMAND, 0) as u32),
        Some("sustained") => sustained::run(number(&arguments, "--runs", 10), number(&arguments, "--seconds", 10)),
        None | Some("--rounds") => compare(number(&arguments, "--rounds", ROUNDS).min(MAX_ROUNDS)),
        Some(_) => usage(),
    }
}

fn compare(rounds: usize) {
    let load_before = load();
    let mut table = Table::default();
    let mut peers = Peers::find();
    let mut stores = Stores::new(rounds);
    for round in 0..rounds {
        lanes::round(&mut table);
        readers::round(&mut table);
        queue::round(&mut table);
        peers.round(&mut table);
        stores.round(&mut table, round);
        duplicates::round(&mut table);
    }
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    println!("{cores} cores; load average {load_before} before, when it should be near 0, and {} after", load());
    table.print();
    peers.print_skipped();
    targets::print(&table);
    tap::Tap::remove_findable();
}

/// Of the last minute: how many threads wanted a core.
fn load() -> String {
    let averages = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    averages.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn number(arguments: &[String], name: &str, default: usize) -> usize {
    let Some(at) = arguments.iter().position(|argument| argument == name) else { return default };
    match arguments.get(at + 1).and_then(|value| value.parse().ok()) {
        Some(number) if number > 0 => number,
        _ => usage(),
    }
}

fn usage() -> ! {
    eprintln!("{USAGE}");
    std::process::exit(2)
}
