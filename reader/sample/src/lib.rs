//! Synthetic recordings for tests and benches, as a training job makes them: the same settings give the same events.
//!
//! Each process is a rank on a device of its own. A step has 450 kernels of 30 names in three streams, that overlap; copies,
//! sets, a synchronization and a range of NVTX. All ranks meet at the end of each step, in a collective, where they wait for
//! the slowest. [`Sample::write`] makes files of it, [`Sample::events`] gives the same events without.

mod names;
mod process;
mod random;
mod rank;
mod step;
mod wrote;

pub use names::{HUGE_NAME_BYTES, hostile, of_a_step};
pub use rank::Given;
pub use step::{COLLECTIVE, COMPUTE, COPY, GRAPH_NODES, KERNELS as KERNELS_PER_STEP, SIDE};
pub use wrote::{CopyTotal, KernelTotal, Pause, Wrote, WroteProcess};

use gputap_recording::{Limits, Loss, Module, Status, WriteError, Writer};
use gputap_ringbuf::event::Event;
use std::path::Path;

/// CLOCK_MONOTONIC when the first step of all ranks begins.
pub const BEGAN_NS: u64 = 5_000_000_000_000;
/// The wall time of the same instant: 2026-12-01 12:00:00 UTC.
pub const BEGAN_REALTIME_NS: u64 = 1_796_126_400_000_000_000;
/// Steps between two statuses.
const STATUS_EVERY: u64 = 100;

/// What to make.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Ranks, on one host, each with a device of its own.
    pub processes: u32,
    /// Of all processes together; whole steps, so up to 450 a process more.
    pub kernels: u64,
    pub seed: u64,
    /// An event for each launch.
    pub launches: bool,
    /// The last 60 kernels of a step are nodes of a graph.
    pub graphs: bool,
    /// Allocations and releases.
    pub memory: bool,
    /// One kernel in 10,007 has times that are flawed, each in one of three ways.
    pub flawed: bool,
    /// Each hostile name runs once in the first step.
    pub hostile: bool,
    /// Rank and percent: its kernels, but for collectives, take so much longer.
    pub straggler: Option<(u32, u64)>,
    /// After every so many steps the device rests, 20 ms and each time 1 ms more; 0 for never.
    pub pause_every: u64,
    /// The last segment ends in the middle of things: no last status.
    pub unfinished: bool,
    pub lost: Vec<Loss>,
    pub limits: Limits,
}

impl Default for Sample {
    fn default() -> Sample {
        Sample {
            processes: 2,
            kernels: 45_000,
            seed: 1,
            launches: false,
            graphs: true,
            memory: true,
            flawed: true,
            hostile: true,
            straggler: Some((1, 12)),
            pause_every: 20,
            unfinished: false,
            lost: vec![Loss { reason: "overwritten".to_owned(), count: 0, unknown: false }],
            limits: Limits::default(),
        }
    }
}

impl Sample {
    /// A job of `kernels` kernels in one process, for benches.
    pub fn large(kernels: u64) -> Sample {
        Sample { processes: 1, kernels, straggler: None, pause_every: 500, ..Sample::default() }
    }

    /// Writes the recording into `dir`.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn write(&self, dir: &Path) -> Result<Wrote, WriteError> {
        let processes = (0..self.processes).map(|rank| self.write_rank(dir, rank)).collect::<Result<_, _>>()?;
        std::fs::write(dir.join("index.json"), self.index_json()).map_err(|source| WriteError {
            action: "write",
            path: dir.join("index.json"),
            source,
        })?;
        Ok(Wrote { processes })
    }

    /// The names and events of a rank, in the order in which they are written.
    pub fn events(&self, rank: u32, mut give: impl FnMut(Given<'_>)) {
        let mut generator = rank::Rank::new(self, rank);
        while generator.step(&mut give) {}
    }

    /// The functions of each cubin, by its checksum.
    pub fn cubins(&self) -> Vec<(u32, Vec<Vec<u8>>)> {
        let names = self.names();
        names.chunks(8).zip(1..).map(|(functions, number)| (0xc0b1_0000 + number, functions.to_vec())).collect()
    }

    fn names(&self) -> Vec<Vec<u8>> {
        let mut names = of_a_step();
        if self.hostile {
            names.extend(hostile());
        }
        names
    }

    fn write_rank(&self, dir: &Path, rank: u32) -> Result<WroteProcess, WriteError> {
        let process = process::of_rank(self, rank);
        let folder = dir.join(format!("pid-{}-{}", process.pid, process.nonce));
        let mut wrote = WroteProcess::new(process.clone(), &self.names());
        let mut writer = Writer::create(&folder, process, self.limits, BEGAN_NS)?;
        for module in self.modules() {
            writer.module(module)?;
        }
        let mut generator = rank::Rank::new(self, rank);
        let mut failure = Ok(());
        loop {
            let more = generator.step(&mut |given| {
                if failure.is_ok() {
                    failure = write_one(&mut writer, given, &mut wrote);
                }
            });
            std::mem::replace(&mut failure, Ok(()))?;
            writer.tick(generator.now_ns())?;
            if !more {
                break;
            }
            if generator.steps().is_multiple_of(STATUS_EVERY) {
                writer.status(self.status(generator.now_ns(), wrote.events, false))?;
            }
        }
        wrote.pauses = generator.pauses().to_vec();
        let status = self.status(generator.now_ns(), wrote.events, true);
        if self.unfinished {
            // What waits is written, as before a kill, but nobody says that it is all.
            writer.status(Status { complete: false, ..status })?;
        } else {
            writer.finish(status)?;
        }
        Ok(wrote)
    }

    fn status(&self, time_ns: u64, delivered: u64, complete: bool) -> Status {
        let lost: u64 = self.lost.iter().map(|loss| loss.count).sum();
        Status {
            time_ns,
            attempted: delivered + lost,
            delivered,
            lost: self.lost.clone(),
            state: if complete { "exited" } else { "recording" }.to_owned(),
            complete,
            ..Status::default()
        }
    }

    fn modules(&self) -> Vec<Module> {
        let module = |(slot, (crc32, functions)): (u32, (u32, Vec<Vec<u8>>))| Module {
            slot,
            crc32,
            size_bytes: 4096 * functions.len() as u64,
            file: Some(format!("{crc32:08x}-{}.cubin", 4096 * functions.len())),
            loads: 1,
            first_load_ns: BEGAN_NS,
            cupti_crc: Some(u64::from(crc32) ^ 0xffff),
        };
        (0..).zip(self.cubins()).map(module).collect()
    }

    /// As the recorder writes it. The cubins themselves are not there.
    fn index_json(&self) -> String {
        let entry = |(crc32, functions): &(u32, Vec<Vec<u8>>)| {
            let size = 4096 * functions.len();
            let names: Vec<String> = functions.iter().map(|name| json_text(name)).collect();
            format!(
                "{{\"file\":\"{crc32:08x}-{size}.cubin\",\"size_bytes\":{size},\"loads\":1,\"crc32\":{crc32},\
                 \"cupti_crc\":{},\"cupti_crc_reason\":\"\",\"architecture\":\"sm_90\",\"line_info\":false,\
                 \"parse_error\":\"\",\"function_count\":{},\"functions\":[{}],\"first_load_ns\":{BEGAN_NS}}}",
                u64::from(*crc32) ^ 0xffff,
                functions.len(),
                names.join(",")
            )
        };
        let entries: Vec<String> = self.cubins().iter().map(entry).collect();
        format!("{{\"version\":3,\"cubins\":[{}]}}\n", entries.join(","))
    }
}

fn write_one(writer: &mut Writer, given: Given<'_>, wrote: &mut WroteProcess) -> Result<(), WriteError> {
    match given {
        Given::Name(id, mangled) => writer.name(id, mangled),
        Given::Text(id, text) => writer.text(id, text),
        Given::Event(event) => {
            wrote.count(event);
            writer.event(event)?;
        }
    }
    Ok(())
}

fn json_text(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text += &format!("\\u{:04x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text + "\""
}

/// Whether `event`'s times can be believed: started, ended, in this order.
pub fn is_timed(start_ns: u64, end_ns: u64) -> bool {
    start_ns > 0 && end_ns >= start_ns
}

/// The events alone, in memory: for small samples.
pub fn collect(sample: &Sample, rank: u32) -> Vec<Event> {
    let mut events = Vec::new();
    sample.events(rank, |given| {
        if let Given::Event(event) = given {
            events.push(*event);
        }
    });
    events
}

#[cfg(test)]
mod tests;
