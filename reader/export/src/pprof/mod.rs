//! GPU time for `pprof`: a profile whose stacks are kernel, stream, device, process.
//!
//! Two values a sample: how often a kernel ran and how long in all. Kernels of one stream follow each other, those of several
//! overlap, so that the times of a process' streams together may be longer than it ran.

mod frames;
mod profile;
mod times;

use crate::{ExportError, Exported, Options, Output};
use flate2::Compression;
use flate2::write::GzEncoder;
use frames::Frames;
use gputap_recording::{Process, Recording};
use profile::{Label, Mapping, Profile, Sample, ValueType};
use prost::Message;
use std::io::{self, Write};
use std::path::Path;
use times::{Times, Total};

/// Writes the profile, gzipped as pprof wants it, to `out`.
///
/// # Errors
/// `out` is there already and may not be replaced, or the file could not be written.
pub fn to_file(recording: &Recording, out: &Path, options: &Options) -> Result<Exported, ExportError> {
    let mut output = Output::create(out, options.overwrite)?;
    let mut exported = Exported::of(recording);
    let written = write(&build(recording, &mut exported), &mut output);
    output.wrote(written)?;
    exported.bytes = output.finish()?;
    exported.files.push(out.to_owned());
    Ok(exported)
}

/// Writes the profile to `out`, which errors call `as_path`.
///
/// # Errors
/// `out` takes no more.
pub fn to_stream(recording: &Recording, mut out: impl Write, as_path: &Path) -> Result<Exported, ExportError> {
    let mut exported = Exported::of(recording);
    let written = write(&build(recording, &mut exported), &mut out).and_then(|()| out.flush());
    written.map_err(ExportError::file("write", as_path))?;
    Ok(exported)
}

fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut encoder = GzEncoder::new(out, Compression::default());
    encoder.write_all(&profile.encode_to_vec())?;
    encoder.finish().map(|_| ())
}

fn build(recording: &Recording, exported: &mut Exported) -> Profile {
    let mut frames = Frames::new();
    let mut profile = Profile::default();
    let mut wall_span: Option<[u64; 2]> = None;
    for recorded in recording.processes() {
        let times = Times::of(recorded);
        let process = &recorded.process;
        profile.sample.extend(times.totals.iter().map(|total| sample(total, process, &mut frames)));
        let comments = comments(process, &times);
        profile.comment.extend(comments.iter().map(|comment| frames.text(comment)));
        if let (Some(clock), Some(span_ns)) = (process.clock, times.span_ns) {
            let [begin, end] = span_ns.map(|time_ns| clock.wall_ns(time_ns));
            let [first, last] = wall_span.unwrap_or([begin, end]);
            wall_span = Some([first.min(begin), last.max(end)]);
        }
        exported.events += times.kernels;
        exported.flawed += times.flawed;
        exported.notes.extend(times.problems.iter().map(ToString::to_string));
    }
    let [begin, end] = wall_span.unwrap_or_default();
    (profile.time_nanos, profile.duration_nanos) = (begin as i64, end.saturating_sub(begin) as i64);
    describe(&mut profile, &mut frames);
    frames.finish(&mut profile);
    profile
}

fn describe(profile: &mut Profile, frames: &mut Frames) {
    let count = ValueType { r#type: frames.text("kernels"), unit: frames.text("count") };
    let time = ValueType { r#type: frames.text("gpu_time"), unit: frames.text("nanoseconds") };
    profile.default_sample_type = time.r#type;
    profile.sample_type = vec![count, time.clone()];
    (profile.period_type, profile.period) = (Some(time), 1);
    profile.mapping = vec![Mapping { id: 1, filename: frames.text("GPU"), has_functions: true }];
}

fn sample(total: &Total, process: &Process, frames: &mut Frames) -> Sample {
    let (device, stream) = (total.place.device_id, total.place.stream_id);
    let owner = format!("{} on {} (pid {})", process.label(), process.host, process.pid);
    let mut stack = vec![frames.frame(&total.name, &total.system_name)];
    for frame in [format!("stream {stream}"), format!("device {device}"), owner] {
        stack.push(frames.frame(&frame, &frame));
    }
    let labels = [
        ("device", Some(device.to_string())),
        ("stream", Some(stream.to_string())),
        ("rank", process.rank.map(|rank| rank.to_string())),
        ("host", Some(process.host.clone())),
        ("pid", Some(process.pid.to_string())),
    ];
    let label = labels
        .into_iter()
        .filter_map(|(key, value)| value.map(|value| Label { key: frames.text(key), str: frames.text(&value) }))
        .collect();
    Sample { location_id: stack, value: vec![total.count as i64, total.time_ns as i64], label }
}

/// What the numbers do not say.
fn comments(process: &Process, times: &Times) -> Vec<String> {
    let mut comments = Vec::new();
    let whose = format!("{} on {}", process.label(), process.host);
    if times.flawed > 0 {
        comments.push(format!("{whose}: {} kernels have no believable times; counted, in no time", times.flawed));
    }
    let status = times.status.clone().unwrap_or_default();
    for loss in status.lost.iter().filter(|loss| loss.count > 0 || loss.unknown) {
        let more = if loss.unknown { " or more" } else { "" };
        comments.push(format!("{whose}: {}{more} records lost: {}", loss.count, loss.reason));
    }
    if !status.complete {
        comments.push(format!("{whose}: the recording did not end in order"));
    }
    comments
}
