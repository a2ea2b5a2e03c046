//! The peer: kernels as torch.profiler's `export_chrome_trace` writes them, loaded by Python.

use crate::rows::Row;
use gputap_ringbuf::event::{Event, KernelEvent};
use gputap_sample::{Given, Sample};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::Command;

const LOAD: &str = "
import json, sys, time
began = time.perf_counter()
events = json.load(open(sys.argv[1]))['traceEvents']
seconds = time.perf_counter() - began
cpu = time.process_time()
peak = [line for line in open('/proc/self/status') if line.startswith('VmHWM')][0].split()[1]
print(seconds, cpu, int(peak) * 1024, len(events))
";

/// `events` kernels, one object each.
pub fn write(path: &Path, events: u64) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    out.write_all(b"{\"schemaVersion\": 1, \"traceEvents\": [\n")?;
    let (mut names, mut left, mut result) = (HashMap::new(), events, Ok(()));
    Sample { hostile: false, flawed: false, ..Sample::large(events) }.events(0, |given| match given {
        Given::Name(id, name) => drop(names.insert(id, String::from_utf8_lossy(name).into_owned())),
        Given::Event(Event::Kernel(kernel)) if left > 0 && result.is_ok() => {
            let separator = if left == events { "" } else { ",\n" };
            left -= 1;
            let name = names.get(&kernel.name_id).map_or("", String::as_str);
            result = out.write_all(separator.as_bytes()).and_then(|()| object(&mut out, kernel, name));
        }
        _ => {}
    });
    result?;
    out.write_all(b"\n]}\n")?;
    out.flush()
}

fn object(out: &mut impl Write, kernel: &KernelEvent, name: &str) -> io::Result<()> {
    let us = |ns: u64| ns as f64 / 1e3;
    let ([gx, gy, gz], [bx, by, bz]) = (kernel.grid, kernel.block);
    write!(
        out,
        "  {{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\", \"pid\": {}, \"tid\": {},\n    \"ts\": {:.3}, \
         \"dur\": {:.3},\n    \"args\": {{\n      \"External id\": {}, \"queued\": 0, \"device\": {}, \"context\": {},\n      \
         \"stream\": {}, \"correlation\": {},\n      \"registers per thread\": {},\n      \"shared memory\": {},\n      \
         \"blocks per SM\": 1.5, \"warps per SM\": 12.0,\n      \"grid\": [{gx}, {gy}, {gz}],\n      \"block\": [{bx}, {by}, \
         {bz}],\n      \"est. achieved occupancy %\": 25\n    }}\n  }}",
        kernel.device_id,
        kernel.stream_id,
        us(kernel.start_ns),
        us(kernel.end_ns - kernel.start_ns),
        kernel.correlation_id,
        kernel.device_id,
        kernel.context_id,
        kernel.stream_id,
        kernel.correlation_id,
        kernel.registers_per_thread,
        kernel.static_shared_bytes + kernel.dynamic_shared_bytes,
    )
}

/// None where there is no Python.
pub fn load(path: &Path, events: u64) -> Option<Row> {
    let output = Command::new("python3").args(["-c", LOAD]).arg(path).output().ok()?;
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = words.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [seconds, cpu_seconds, peak_bytes, loaded] = numbers[..] else { panic!("python3: {output:?}") };
    assert_eq!(loaded as u64, events);
    Some(Row {
        name: "python3, json.load of a tenth, as Kineto".to_owned(),
        seconds,
        cpu_seconds,
        events,
        peak_bytes: peak_bytes as u64,
        file_bytes: std::fs::metadata(path).map_or(0, |meta| meta.len()),
    })
}
