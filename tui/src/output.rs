//! Words on standard output. A reader that has seen enough (`| head`) is no failure.

use std::io::{self, Write};

use crate::error::{Error, Result};

pub fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Error::NobodyReads),
        written => written.map_err(Error::Output),
    }
}

pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::Output(error.into()))?;
    print(&(text + "\n"))
}

/// gputap's own words, beside a job that has standard output for itself. Where nobody hears them there is nobody to
/// tell that either.
pub fn remark(words: &str) {
    let mut stderr = io::stderr().lock();
    for line in words.lines() {
        let _ = writeln!(stderr, "gputap: {line}");
    }
}
