//! Perfetto's protobuf traces, for ui.perfetto.dev and its trace processor.
//!
//! A process becomes a process track with a track for each device; in it a track a stream, with further lanes where kernels
//! overlap, and curves. Threads have tracks for launches, calls of the API and ranges of NVTX. All times are wall time in
//! nanoseconds, so that processes of different boots and hosts stand where they belong; the trace says that its clock is
//! CLOCK_REALTIME. Processes are written one after the other, each a sequence of packets of its own: readers of trace files
//! sort by time. Memory: two windows of events ([`crate::sorted`]), what a sequence interned, and for flows a bit a
//! correlation id.

mod counters;
mod identity;
mod lanes;
mod process;
mod proto;
mod sequence;
#[cfg(test)]
mod tests;
mod tracks;

use crate::flows::Flows;
use crate::sorted::each_sorted;
use crate::times::Wall;
use crate::{ExportError, Exported, Options, Output};
use gputap_recording::{Recorded, Recording};
use gputap_ringbuf::event::ALL_KINDS;
use process::Drawing;
use proto::{CLOCK_BOOTTIME, CLOCK_REALTIME, ClockReading, ClockSnapshot, TracePacket};
use sequence::{Sequence, write_packet};
use std::collections::HashSet;
use std::path::Path;
use tracks::Tracks;

pub fn export(recording: &Recording, out: &Path, options: &Options) -> Result<Exported, ExportError> {
    let mut output = Output::create(out, options.overwrite)?;
    let mut exported = Exported::of(recording);
    clocks(recording, &mut output)?;
    let mut pids = HashSet::new();
    for (number, recorded) in (1..).zip(recording.processes()) {
        let pid = own_pid(recorded.process.pid, &mut pids);
        let sequence = Sequence::new(&mut output, number);
        one(recorded, sequence, pid, &mut exported)?;
    }
    exported.files.push(out.to_owned());
    exported.bytes = output.finish()?;
    Ok(exported)
}

fn one(recorded: &Recorded, sequence: Sequence<'_>, pid: i32, exported: &mut Exported) -> Result<(), ExportError> {
    let wall = Wall::of(recorded);
    let label = recorded.process.label();
    if !wall.is_known() {
        exported.notes.push(format!("{label}: no clock was recorded, its times are since the boot of its host"));
    }
    let tracks = Tracks::new(sequence, &recorded.process, wall, pid);
    let mut drawing = Drawing::new(tracks, Flows::find(recorded, true));
    each_sorted(recorded, ALL_KINDS, exported, |span, event, names| drawing.draw(span, event, names))?;
    drawing.finish()?;
    if drawing.tracks.without_place > 0 {
        let count = drawing.tracks.without_place;
        exported.notes.push(format!("{label}: {count} events overlap too many others to be drawn"));
    }
    Ok(())
}

/// The trace's time is wall time; the clock that a reader takes for it otherwise is told to be the same.
fn clocks(recording: &Recording, output: &mut Output) -> Result<(), ExportError> {
    let readings = recording.processes().iter().filter_map(|recorded| recorded.process.clock);
    let now_ns = readings.map(|clock| clock.realtime_ns).min().unwrap_or(1);
    let reading = |clock_id| ClockReading { clock_id: Some(clock_id), timestamp: Some(now_ns) };
    let snapshot = ClockSnapshot {
        clocks: vec![reading(CLOCK_REALTIME), reading(CLOCK_BOOTTIME)],
        primary_trace_clock: Some(CLOCK_REALTIME),
    };
    write_packet(output, &mut Vec::new(), &TracePacket { clock_snapshot: Some(snapshot), ..TracePacket::default() })
}

/// Readers tell processes by their pids. Two hosts, or containers, may have the same: the second gets a number that no
/// kernel gives out, and says which it had.
fn own_pid(pid: u32, taken: &mut HashSet<i32>) -> i32 {
    const FIRST_FREE: i32 = 1 << 30;
    let own = i32::try_from(pid).ok().filter(|&pid| pid > 0 && !taken.contains(&pid));
    let own = own.or_else(|| (FIRST_FREE..).find(|free| !taken.contains(free))).unwrap_or(i32::MAX);
    taken.insert(own);
    own
}
