//! Folders named by what all rows below them have in common, as Hive does it.

use gputap_recording::Process;
use std::path::{Path, PathBuf};

/// What Hive calls the partition of rows that have no value.
const NONE: &str = "__HIVE_DEFAULT_PARTITION__";
/// Of a value, encoded; file systems take names of 255 bytes.
const VALUE_MAX_BYTES: usize = 200;

/// The folder of the process' rows in the `dataset`.
pub fn folder(dataset: &Path, process: &Process) -> PathBuf {
    let rank = process.rank.map(|rank| rank.to_string()).unwrap_or_default();
    dataset.join(format!("host={}", value(&process.host))).join(format!("rank={}", value(&rank)))
}

/// What tells the process' file from those of other processes, and of other recordings of it; without an extension.
pub fn file_name(process: &Process) -> String {
    let began_ns = process.clock.map_or(0, |clock| clock.realtime_ns);
    format!("pid-{}-{}-{began_ns}", process.pid, encode(&process.nonce))
}

/// A value of a partition as a part of a folder's name.
fn value(value: &str) -> String {
    match value {
        "" => NONE.to_owned(),
        // A host of this very name is not without a name.
        NONE => format!("%5F{}", &NONE[1..]),
        value => encode(value),
    }
}

/// Percent-encoded but for letters, digits and `-._~`; cut where it is too long for a file's name.
fn encode(value: &str) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(char::from(byte)),
            byte => encoded += &format!("%{byte:02X}"),
        }
        if encoded.len() > VALUE_MAX_BYTES - 3 {
            break;
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_as_hive_does() {
        assert_eq!(value("node-a.example_1"), "node-a.example_1");
        assert_eq!(value("../a/b=c %ü"), "..%2Fa%2Fb%3Dc%20%25%C3%BC");
        assert_eq!(value(""), "__HIVE_DEFAULT_PARTITION__");
        assert_eq!(value("__HIVE_DEFAULT_PARTITION__"), "%5F_HIVE_DEFAULT_PARTITION__");
        assert!(value(&"ü".repeat(1000)).len() <= VALUE_MAX_BYTES);
    }

    #[test]
    fn a_process_has_its_place() {
        let process = Process { host: "a/b".to_owned(), pid: 7, nonce: "../0f".to_owned(), ..Process::default() };
        let place = folder(Path::new("out/kernels"), &process).join(file_name(&process));
        assert_eq!(place, Path::new("out/kernels/host=a%2Fb/rank=__HIVE_DEFAULT_PARTITION__/pid-7-..%2F0f-0"));
    }
}
