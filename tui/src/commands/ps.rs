use std::process::ExitCode;

use gputap_reader::clock::Now;
use gputap_reader::list::{Tap, list};

use crate::cli::Ps;
use crate::error::Result;
use crate::output::{print, print_json};
use crate::text::{self, table};

const COMMAND_MAX_COLUMNS: usize = 100;

pub fn run(arguments: &Ps) -> Result<ExitCode> {
    let taps = list(Now::read());
    if arguments.json {
        print_json(&taps)?;
    } else if taps.is_empty() {
        print("no process has a tap\n")?;
    } else {
        print(&in_words(&taps))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn in_words(taps: &[Tap]) -> String {
    let titles = ["PID", "STATE", "UP", "CUPTI", "CUBINS", "RECORDS", "COMMAND", "REASON"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(taps.iter().map(row));
    table::aligned(&rows) + &notes(taps)
}

fn notes(taps: &[Tap]) -> String {
    let of = |tap: &Tap| {
        let lines = tap.general_notes.iter().map(|note| format!("note on {}: {}\n", tap.pid, text::clean(note)));
        lines.collect::<String>()
    };
    taps.iter().map(of).collect()
}

fn row(tap: &Tap) -> Vec<String> {
    let state = if tap.alive { tap.state.clone() } else { "ended".to_owned() };
    let why = if tap.error.is_empty() { &tap.reason } else { &tap.error };
    vec![
        tap.pid.to_string(),
        state,
        text::age(tap.uptime_ns),
        text::cupti_version(tap.cupti_version),
        text::count(tap.modules),
        text::count(tap.attempted),
        text::clip(&tap.command, COMMAND_MAX_COLUMNS),
        text::clean(why),
    ]
}
