//! A segment whose blocks have right checksums and any content: read as a recording, to its end.
#![no_main]

use gputap_recording::format::{Kind, seal, segment_head};
use gputap_recording::{Block, Recording};
use gputap_ringbuf::event::ALL_KINDS;
use libfuzzer_sys::fuzz_target;
use std::path::Path;

const KINDS: [Kind; 5] = [Kind::Process, Kind::Names, Kind::Events, Kind::Module, Kind::Status];

fuzz_target!(|data: &[u8]| {
    let dir = std::env::temp_dir().join(format!("gputap-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder can be made");
    std::fs::write(dir.join("1.gtap"), segment(data)).expect("a file can be written");
    read(&dir);
});

/// Blocks as the input says: what they hold, a kind of events, how many, how long; what is left stands as it is.
fn segment(mut data: &[u8]) -> Vec<u8> {
    let mut file = segment_head(1).to_vec();
    seal(&mut file, Kind::Process, 0, 1, [0; 2], b"{\"pid\":1}");
    while let Some((&[what, event_kind, few, many, length], rest)) = data.split_first_chunk::<5>() {
        let Some(kind) = KINDS.get(usize::from(what)) else { break };
        let (payload, rest) = rest.split_at(rest.len().min(usize::from(length)));
        let count = u32::from(few) | u32::from(many) << 12;
        seal(&mut file, *kind, u16::from(event_kind), count, [0, u64::MAX], payload);
        data = rest;
    }
    file.extend_from_slice(data);
    file
}

fn read(dir: &Path) {
    let recording = Recording::open(dir).expect("there is a segment");
    for process in recording.processes() {
        let mut stream = process.stream(ALL_KINDS);
        while let Some(block) = stream.next_block() {
            if let Block::Events(events) = block {
                assert!(events.len() <= 1 << 16);
            }
        }
    }
}
