//! What a process' files are called.

use gputap_recording::Process;

/// Of an encoded text in a name; file systems take names of 255 bytes.
const TEXT_MAX_BYTES: usize = 100;

/// Tells the process' file from those of other processes, hosts, and recordings of the same process; without an extension.
pub fn file_name(process: &Process) -> String {
    let host = if process.host.is_empty() { "unknown".to_owned() } else { encode(&process.host) };
    let rank = process.rank.map(|rank| format!(".rank-{rank}")).unwrap_or_default();
    let began_ns = process.clock.map_or(0, |clock| clock.realtime_ns);
    format!("{host}{rank}.pid-{}-{}-{began_ns}", process.pid, encode(&process.nonce))
}

/// Percent-encoded but for letters, digits and `-._~`; cut where it is too long. Readers pass over files whose names begin
/// with a dot or an underscore.
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'~' => encoded.push(char::from(byte)),
            b'.' | b'_' if at > 0 => encoded.push(char::from(byte)),
            byte => encoded += &format!("%{byte:02X}"),
        }
        if encoded.len() > TEXT_MAX_BYTES - 3 {
            break;
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_percent_encoded() {
        assert_eq!(encode("node-a.example_1"), "node-a.example_1");
        assert_eq!(encode("../a/b=c %ü"), "%2E.%2Fa%2Fb%3Dc%20%25%C3%BC");
        assert_eq!(encode("_hidden"), "%5Fhidden");
        assert!(encode(&"ü".repeat(1000)).len() <= TEXT_MAX_BYTES);
    }

    #[test]
    fn a_process_has_its_name() {
        let process = Process { host: "a/b".to_owned(), pid: 7, nonce: "../0f".to_owned(), ..Process::default() };
        assert_eq!(file_name(&process), "a%2Fb.pid-7-%2E.%2F0f-0");
        let process = Process { rank: Some(3), host: String::new(), ..process };
        assert_eq!(file_name(&process), "unknown.rank-3.pid-7-%2E.%2F0f-0");
    }
}
