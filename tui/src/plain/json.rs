use std::time::SystemTime;

use gputap_reader::model::snapshot::Snapshot;
use serde::Serialize;

use crate::error::{Error, Result};

#[derive(Serialize)]
struct Line<'a> {
    /// RFC 3339, UTC.
    time: String,
    #[serde(flatten)]
    snapshot: &'a Snapshot,
}

/// The whole snapshot in one line.
pub fn line(snapshot: &Snapshot, time: SystemTime) -> Result<String> {
    let line = Line { time: humantime::format_rfc3339_millis(time).to_string(), snapshot };
    let text = serde_json::to_string(&line).map_err(|error| Error::Output(error.into()))?;
    Ok(text + "\n")
}
