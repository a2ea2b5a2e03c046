use std::path::PathBuf;
use std::process::ExitCode;

use gputap_ringbuf::discover;

use crate::error::Result;
use crate::output::print;

pub fn run() -> Result<ExitCode> {
    let removed = discover::sweep();
    let mut text = String::new();
    for segment in &removed {
        text += &format!("removed {}\n", segment.display());
    }
    let left = left();
    for segment in &left {
        let segment = segment.display();
        text += &format!("left {segment}: a reader has it open, or it is of another user or pid namespace\n");
    }
    if removed.is_empty() && left.is_empty() {
        text += "nothing to remove: no tap of a dead process of this pid namespace is left\n";
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Dead taps that are not removed.
fn left() -> Vec<PathBuf> {
    let is_left = |found: &discover::Found| !found.alive && found.segment.starts_with("/dev/shm");
    discover::discover().into_iter().filter(is_left).map(|found| found.segment).collect()
}
