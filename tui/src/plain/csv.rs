//! Rows by RFC 4180: a row a kernel at each refresh, everything since the tap was attached to.

use std::io;
use std::time::SystemTime;

use csv::{Terminator, WriterBuilder};
use gputap_reader::model::snapshot::{KernelRow, Snapshot};

use crate::error::{Error, Result};
use crate::text::{self, loss};

const TITLES: [&str; 17] = [
    "time",
    "pid",
    "kernel",
    "share",
    "calls",
    "total_ns",
    "mean_ns",
    "min_ns",
    "p50_ns",
    "p99_ns",
    "max_ns",
    "flagged",
    "registers_per_thread",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "lost",
    "mangled",
];

pub fn rows(snapshot: &Snapshot, time: SystemTime, titles: bool) -> Result<String> {
    let written = || -> csv::Result<Vec<u8>> {
        let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
        if titles {
            writer.write_record(TITLES)?;
        }
        let time = humantime::format_rfc3339_millis(time).to_string();
        for kernel in &snapshot.kernels {
            writer.write_record(row(snapshot, kernel, &time))?;
        }
        writer.into_inner().map_err(|error| error.into_error().into())
    };
    let bytes = written().map_err(|error| Error::Output(io::Error::other(error)))?;
    String::from_utf8(bytes).map_err(|error| Error::Output(io::Error::other(error)))
}

/// In the order of `TITLES`. Names are cleaned: a spreadsheet minds control characters as much as a terminal does.
fn row(snapshot: &Snapshot, kernel: &KernelRow, time: &str) -> [String; TITLES.len()] {
    [
        time.to_owned(),
        snapshot.target.pid.to_string(),
        text::clean(&kernel.name),
        format!("{:.6}", kernel.share),
        kernel.calls.to_string(),
        kernel.total_ns.to_string(),
        format!("{:.1}", kernel.mean_ns),
        kernel.min_ns.to_string(),
        kernel.p50_ns.to_string(),
        kernel.p99_ns.to_string(),
        kernel.max_ns.to_string(),
        kernel.flagged.to_string(),
        kernel.registers_per_thread.to_string(),
        kernel.static_shared_bytes.to_string(),
        kernel.dynamic_shared_bytes.to_string(),
        loss::total(&snapshot.counts.lost).to_string(),
        text::clean(&kernel.mangled),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn rows_are_what_a_reader_of_csv_gets_back() {
        let name = "void f<\"a, b\">(int)\n";
        let kernel = KernelRow { name: name.into(), calls: 3, total_ns: 12, mean_ns: 4.0, ..Default::default() };
        let snapshot = Snapshot { kernels: vec![kernel; 2], ..Default::default() };
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_764_604_800_250);
        let first = rows(&snapshot, time, true).unwrap();
        assert_eq!(first.matches("\r\n").count(), 3, "{first:?}");
        let mut reader = csv::Reader::from_reader(first.as_bytes());
        assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>(), TITLES);
        let row = reader.records().next().unwrap().unwrap();
        let of = |title: &str| &row[TITLES.iter().position(|known| *known == title).unwrap()];
        assert_eq!(of("time"), "2025-12-01T16:00:00.250Z");
        assert_eq!(of("kernel"), "void f<\"a, b\">(int)\u{fffd}");
        assert_eq!((of("calls"), of("total_ns"), of("mean_ns")), ("3", "12", "4.0"));
        assert!(!rows(&snapshot, time, false).unwrap().contains("total_ns"));
    }
}
