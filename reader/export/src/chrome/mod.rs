//! Chrome's JSON in the shape that Kineto (torch.profiler) writes, which HolisticTraceAnalysis and others read.
//!
//! One file a process: HolisticTraceAnalysis wants a folder with a file a rank, finds the rank by looking for `"rank": N` in
//! the lines, and takes the processes of one file for devices of one rank. A recording of several processes, or a name that
//! ends neither in `.json` nor in `.gz`, becomes a folder. Names that end in `.gz` are packed. Times are microseconds since `baseTimeNanoseconds`,
//! which is the same for all files of a month: with it a time keeps its nanoseconds in a double.

mod event;
mod json;
mod ranges;
#[cfg(test)]
mod tests;

use crate::flows::Flows;
use crate::folder::Folder;
use crate::sorted::each_sorted;
use crate::times::Wall;
use crate::{ExportError, Exported, Options, Output};
use event::{Lines, Zero, place};
use flate2::Compression;
use flate2::write::GzEncoder;
use gputap_recording::{Process, Recorded, Recording};
use gputap_ringbuf::event::{ALL_KINDS, Event, EventKind};
use json::{Micros, Object};
use ranges::Ranges;
use std::collections::{BTreeSet, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

const MONTH_NS: i64 = 30 * 86_400 * 1_000_000_000;

pub fn export(recording: &Recording, out: &Path, options: &Options) -> Result<Exported, ExportError> {
    let mut exported = Exported::of(recording);
    let base_ns = base_ns(recording);
    if let [only] = recording.processes()
        && !is_folder(out)
    {
        let output = Output::create(out, options.overwrite)?;
        one(only, only.process.rank.unwrap_or(0), output, base_ns, &mut exported)?;
    } else {
        folder(recording, out, options, base_ns, &mut exported)?;
    }
    Ok(exported)
}

/// The folder has its name only once all files are whole.
fn folder(
    recording: &Recording,
    out: &Path,
    options: &Options,
    base_ns: i64,
    exported: &mut Exported,
) -> Result<(), ExportError> {
    let folder = Folder::create(out, options.overwrite)?;
    let ranks = ranks(recording.processes());
    for (recorded, rank) in recording.processes().iter().zip(ranks) {
        let name = format!("rank-{rank:05}-pid-{}.json.gz", recorded.process.pid);
        one(recorded, rank, Output::create(&folder.root().join(name), options.overwrite)?, base_ns, exported)?;
    }
    exported.files = folder.finish(&exported.files)?;
    Ok(())
}

/// A file's name ends in `.json` or `.gz`, or readers do not take it.
fn is_folder(out: &Path) -> bool {
    !out.extension().is_some_and(|extension| extension == "json" || extension == "gz")
}

/// Recorded ranks, where each has its own; else the position. A reader keeps one file a rank.
fn ranks(processes: &[Recorded]) -> Vec<u32> {
    let recorded: HashSet<u32> = processes.iter().filter_map(|one| one.process.rank).collect();
    if recorded.len() == processes.len() {
        processes.iter().filter_map(|one| one.process.rank).collect()
    } else {
        (0..processes.len() as u32).collect()
    }
}

fn base_ns(recording: &Recording) -> i64 {
    let clocks = recording.processes().iter().filter_map(|recorded| recorded.process.clock);
    let earliest_ns = clocks.map(|clock| i64::try_from(clock.realtime_ns).unwrap_or(0)).min().unwrap_or(0);
    earliest_ns - earliest_ns % MONTH_NS
}

fn one(
    recorded: &Recorded,
    rank: u32,
    output: Output,
    base_ns: i64,
    exported: &mut Exported,
) -> Result<(), ExportError> {
    let path = output.path().to_owned();
    let wall = Wall::of(recorded);
    let mut file = File::new(output);
    file.text(&head(&recorded.process, rank, base_ns))?;
    let zero = Zero { wall, base_ns };
    let left_out = events(recorded, zero, &mut file, exported)?;
    file.text("\n]}\n")?;
    exported.bytes += file.finish()?;
    exported.files.push(path);
    let label = recorded.process.label();
    if !wall.is_known() {
        exported.notes.push(format!("{label}: no clock was recorded, its times are since the boot of its host"));
    }
    if left_out > 0 {
        exported.notes.push(format!("{label}: {left_out} ranges of NVTX have no end and were left out"));
    }
    Ok(())
}

/// How many ranges were left out.
fn events(recorded: &Recorded, zero: Zero, file: &mut File, exported: &mut Exported) -> Result<u64, ExportError> {
    let mut flows = Flows::find(recorded, false);
    // A launch and a call of the API are the same thing: a reader that joins by correlation must not find two.
    let kinds = if flows.from_launches { ALL_KINDS } else { ALL_KINDS & !EventKind::Launch.bit() };
    let process = &recorded.process;
    let mut lines = Lines::new(process, zero);
    let mut ranges = Ranges::default();
    let mut rows: BTreeSet<(i64, i64)> = BTreeSet::new();
    each_sorted(recorded, kinds, exported, |span, event, names| {
        if let Event::Marker(marker) = event {
            if let Some((span, begin)) = ranges.marker(marker) {
                lines.range(span, begin.name_id, begin.thread_id, names);
                file.event(&lines.line)?;
            }
            return Ok(());
        }
        if !lines.write(span, event, names) {
            return Ok(());
        }
        file.event(&lines.line)?;
        let at = place(event, process);
        if event.kind().bit() & GPU_KINDS != 0 && rows.len() < ROWS_MAX {
            rows.insert(at);
        }
        let (call, work) = (flows.take_call(event), flows.take_work(event));
        if let Some(id) = call.or(work) {
            lines.flow(call.is_some(), span.start_ns, id, at);
            file.event(&lines.line)?;
        }
        Ok(())
    })?;
    for line in titles(process, &rows) {
        file.event(&line)?;
    }
    Ok(ranges.left_out())
}

const GPU_KINDS: u64 =
    EventKind::Kernel.bit() | EventKind::Memcpy.bit() | EventKind::Memset.bit() | EventKind::Graph.bit();
/// Streams that get a title.
const ROWS_MAX: usize = 1 << 14;

/// Rows of a viewer have names: Kineto's are `python3` for the process, `GPU 0` for a device, `stream 7` for a stream.
fn titles(process: &Process, rows: &BTreeSet<(i64, i64)>) -> Vec<String> {
    let devices: BTreeSet<i64> = rows.iter().map(|(device, _)| *device).collect();
    let command = process.command.first().map_or("process", String::as_str);
    let mut titles = vec![title("process_name", (process.pid.into(), 0), command)];
    titles.extend(devices.iter().map(|&device| title("process_labels", (device, 0), &format!("GPU {device}"))));
    titles.extend(
        rows.iter().map(|&(device, stream)| title("thread_name", (device, stream), &format!("stream {stream}"))),
    );
    titles
}

fn title(name: &str, (pid, tid): (i64, i64), text: &str) -> String {
    let mut line = String::new();
    let mut event = Object::new(&mut line);
    event.text("ph", "M").text("name", name).number("pid", pid).number("tid", tid).number("ts", Micros(0));
    event.object("args", |args| {
        args.text(if name == "process_labels" { "labels" } else { "name" }, text);
    });
    event.end();
    line
}

fn head(process: &Process, rank: u32, base_ns: i64) -> String {
    let mut devices = String::new();
    for device in &process.devices {
        let comma = if devices.is_empty() { "" } else { ", " };
        devices.push_str(comma);
        let mut object = Object::new(&mut devices);
        object.number("id", device.ordinal).text("name", &device.name).text("uuid", &device.uuid);
        object.end();
    }
    let world_size = process.variables.get("WORLD_SIZE").and_then(|size| size.parse::<u32>().ok()).unwrap_or(1);
    let mut info = String::new();
    let mut object = Object::new(&mut info);
    object.text("backend", "nccl").number("rank", rank).number("world_size", world_size.max(rank + 1));
    object.end();
    let mut host = String::new();
    json::string(&mut host, &process.host);
    format!(
        "{{\n\"schemaVersion\": 1,\n\"deviceProperties\": [{devices}],\n\"distributedInfo\": {info},\n\
         \"displayTimeUnit\": \"ms\",\n\"baseTimeNanoseconds\": {base_ns},\n\"hostName\": {host},\n\"traceEvents\": [\n"
    )
}

/// A file of events, packed or not.
enum Sink {
    Plain(Output),
    Packed(Box<GzEncoder<Output>>),
}

struct File {
    sink: Sink,
    path: PathBuf,
    is_empty: bool,
}

impl File {
    fn new(output: Output) -> File {
        let path = output.path().to_owned();
        let packed = path.extension().is_some_and(|extension| extension == "gz");
        let sink = if packed {
            Sink::Packed(Box::new(GzEncoder::new(output, Compression::fast())))
        } else {
            Sink::Plain(output)
        };
        File { sink, path, is_empty: true }
    }

    /// A line, after a comma if it is not the first.
    fn event(&mut self, line: &str) -> Result<(), ExportError> {
        if !std::mem::take(&mut self.is_empty) {
            self.text(",\n")?;
        }
        self.text(line)
    }

    fn text(&mut self, text: &str) -> Result<(), ExportError> {
        let written = match &mut self.sink {
            Sink::Plain(output) => output.write_all(text.as_bytes()),
            Sink::Packed(encoder) => encoder.write_all(text.as_bytes()),
        };
        written.map_err(ExportError::file("write", &self.path))
    }

    fn finish(self) -> Result<u64, ExportError> {
        match self.sink {
            Sink::Plain(output) => output.finish(),
            Sink::Packed(encoder) => encoder.finish().map_err(ExportError::file("write", &self.path))?.finish(),
        }
    }
}
