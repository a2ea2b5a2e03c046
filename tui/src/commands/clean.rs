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
    if removed.is_empty() {
        text += "nothing to remove: no tap of a dead process of this pid namespace is left\n";
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
