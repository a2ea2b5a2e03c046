//! Writes a recording of a training job of three ranks, one of them slow, into DIR, and prints what it wrote as JSON: per
//! process its pid, rank, events by kind, and by mangled name the calls with right times and their time.
//!
//! `cargo run -p gputap-sample --example write -- DIR [KERNELS]`

use gputap_ringbuf::event::EventKind;
use gputap_sample::{Sample, Wrote};
use serde_json::{Map, Value, json};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let dir = words.next().ok_or("write DIR [KERNELS]")?;
    let kernels = words.next().map_or(Ok(30_000), |word| word.parse())?;
    let sample = Sample {
        processes: 3,
        kernels,
        launches: true,
        graphs: true,
        memory: true,
        flawed: true,
        hostile: true,
        straggler: Some((2, 30)),
        ..Sample::default()
    };
    let wrote = sample.write(Path::new(&dir))?;
    println!("{}", summary(&wrote));
    Ok(())
}

fn summary(wrote: &Wrote) -> Value {
    let one = |process: &gputap_sample::WroteProcess| {
        let events = EventKind::ALL.iter().map(|kind| (kind.name().to_owned(), process.by_kind[*kind as usize].into()));
        let events: Map<String, Value> = events.filter(|(_, count): &(String, Value)| *count != json!(0)).collect();
        let kernels: Map<String, Value> = process
            .kernels()
            .into_iter()
            .map(|(name, total)| (escaped(&name), json!([total.calls - total.flawed, total.total_ns])))
            .collect();
        json!({"pid": process.process.pid, "rank": process.process.rank, "events": events, "kernels": kernels})
    };
    wrote.processes.iter().map(one).collect()
}

/// Bytes that are not UTF-8 as `\xff`, as Python's `backslashreplace` has them.
fn escaped(bytes: &[u8]) -> String {
    let pieces = bytes.utf8_chunks();
    pieces
        .map(|piece| {
            piece.invalid().iter().fold(piece.valid().to_owned(), |text, byte| text + &format!("\\x{byte:02x}"))
        })
        .collect()
}
