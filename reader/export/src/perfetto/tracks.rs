//! The tracks of one process: made when something is first drawn on them.

use super::identity::Identity;
use super::lanes::Lanes;
use super::proto::{
    CounterDescriptor, INSTANT, MERGE_NONE, ORDER_EXPLICIT, ProcessDescriptor, SLICE_BEGIN, SLICE_END,
    ThreadDescriptor, TrackDescriptor, UNIT_SIZE_BYTES,
};
use super::sequence::{Detail, Drawn, Sequence, Text, Value};
use crate::ExportError;
use crate::times::{Span, Wall};
use gputap_recording::Process;
use std::collections::HashMap;

/// A recording that names more streams and threads than this is broken or hostile: beyond, nothing is drawn and all counted.
const GROUPS_MAX: usize = 1 << 13;

/// What has lanes of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    Stream {
        device: u32,
        context: u32,
        stream: u32,
    },
    /// Launches, by the kernel's id of the thread.
    Launches {
        thread: u32,
    },
    /// Calls of the API, by CUPTI's number of the thread.
    Calls {
        thread: u32,
    },
    /// Ranges of NVTX, by CUPTI's number of the thread.
    Nvtx {
        thread: u32,
    },
    /// The host waits for the device; which thread does is not recorded.
    Waits {
        context: u32,
    },
    Overhead {
        thread: u32,
    },
}

/// What a track lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Parent {
    Process,
    Device(u32),
    Thread(u32),
}

/// A curve, of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Curve {
    Busy,
    Copies,
    Memory,
    Pools,
}

struct Rows {
    lanes: Lanes,
    uuids: Vec<u64>,
}

/// What is drawn on a track.
pub struct Mark<'e> {
    pub category: &'static str,
    pub name: Text<'e>,
    pub details: &'e [(&'static str, Detail<'e>)],
    pub flow: Option<u64>,
    pub ends_flow: Option<u64>,
}

pub struct Tracks<'a> {
    sequence: Sequence<'a>,
    pub identity: Identity,
    wall: Wall,
    process: &'a Process,
    pid: i32,
    rows: HashMap<Group, Rows>,
    parents: HashMap<Parent, u64>,
    curves: HashMap<(u32, Curve), u64>,
    ended: Vec<(usize, u64)>,
    /// Drawn slices and instants, and those that found no place.
    pub drawn: u64,
    pub without_place: u64,
}

impl<'a> Tracks<'a> {
    /// `pid` is the process' own, or another one where two processes of a trace have the same.
    pub fn new(sequence: Sequence<'a>, process: &'a Process, wall: Wall, pid: i32) -> Tracks<'a> {
        Tracks {
            sequence,
            identity: Identity::of(process),
            wall,
            process,
            pid,
            rows: HashMap::new(),
            parents: HashMap::new(),
            curves: HashMap::new(),
            ended: Vec::new(),
            drawn: 0,
            without_place: 0,
        }
    }

    /// A slice; the lane it is on, if there was room for one. An end of `u64::MAX` is not known yet.
    pub fn slice(&mut self, group: Group, span: Span, mark: &Mark<'_>) -> Result<Option<usize>, ExportError> {
        let Span { start_ns, end_ns } = span;
        self.mark(group, start_ns, SLICE_BEGIN, mark, |lanes, end| lanes.begin(start_ns, end_ns, end))
    }

    pub fn instant(&mut self, group: Group, time_ns: u64, mark: &Mark<'_>) -> Result<Option<usize>, ExportError> {
        self.mark(group, time_ns, INSTANT, mark, |lanes, end| lanes.instant(time_ns, end))
    }

    /// Ends a slice whose end was not known.
    pub fn end(&mut self, group: Group, lane: usize, time_ns: u64) -> Result<(), ExportError> {
        let Some(rows) = self.rows.get_mut(&group) else { return Ok(()) };
        let (uuid, end_ns) = (rows.uuids[lane], rows.lanes.end(lane, time_ns));
        self.draw_end(uuid, end_ns, &[])
    }

    pub fn count(&mut self, device: u32, curve: Curve, time_ns: u64, value: Value) -> Result<(), ExportError> {
        let uuid = match self.curves.get(&(device, curve)) {
            Some(&uuid) => uuid,
            None if self.curves.len() < GROUPS_MAX => self.describe_curve(device, curve)?,
            None => return Ok(()),
        };
        self.sequence.count(self.wall.at(time_ns), uuid, value)
    }

    /// Ends what is open; what has no end of its own ends with the recording, and says so.
    pub fn finish(&mut self, latest_ns: u64) -> Result<(), ExportError> {
        let unknown = [("end", Detail::Text(Text::Fixed("not recorded")))];
        for mut rows in std::mem::take(&mut self.rows).into_values() {
            let open: Vec<usize> = rows.lanes.endless();
            rows.lanes.finish(latest_ns, |at, end_ns| self.ended.push((at, end_ns)));
            for (at, end_ns) in std::mem::take(&mut self.ended) {
                let details: &[_] = if open.contains(&at) { &unknown } else { &[] };
                self.draw_end(rows.uuids[at], end_ns, details)?;
            }
        }
        Ok(())
    }

    fn mark(
        &mut self,
        group: Group,
        time_ns: u64,
        kind: i32,
        mark: &Mark<'_>,
        place: impl FnOnce(&mut Lanes, &mut dyn FnMut(usize, u64)) -> Option<usize>,
    ) -> Result<Option<usize>, ExportError> {
        if self.rows.len() >= GROUPS_MAX && !self.rows.contains_key(&group) {
            self.without_place += 1;
            return Ok(None);
        }
        let rows =
            self.rows.entry(group).or_insert_with(|| Rows { lanes: Lanes::new(group.nests()), uuids: Vec::new() });
        let mut ended = std::mem::take(&mut self.ended);
        ended.clear();
        let lane = place(&mut rows.lanes, &mut |at, end_ns| ended.push((at, end_ns)));
        let Some(lane) = lane else {
            self.without_place += 1;
            return Ok(None);
        };
        let known = rows.uuids.get(lane).copied();
        let uuid = known.map_or_else(|| self.describe_lane(group, lane), Ok)?;
        for &(_, end_ns) in &ended {
            self.draw_end(uuid, end_ns, &[])?;
        }
        self.ended = ended;
        self.drawn += 1;
        self.sequence.draw(&Drawn {
            kind,
            wall_ns: self.wall.at(time_ns),
            track_uuid: uuid,
            category: Some(mark.category),
            name: Some(mark.name),
            details: mark.details,
            flow: mark.flow,
            ends_flow: mark.ends_flow,
        })?;
        Ok(Some(lane))
    }

    fn draw_end(&mut self, uuid: u64, end_ns: u64, details: &[(&'static str, Detail<'_>)]) -> Result<(), ExportError> {
        self.sequence.draw(&Drawn {
            kind: SLICE_END,
            wall_ns: self.wall.at(end_ns),
            track_uuid: uuid,
            category: None,
            name: None,
            details,
            flow: None,
            ends_flow: None,
        })
    }

    fn describe_lane(&mut self, group: Group, lane: usize) -> Result<u64, ExportError> {
        let (what, numbers) = group.numbers();
        let parent_uuid = self.parent(group.parent())?;
        let uuid = self.identity.track(what, [numbers[0], numbers[1], numbers[2], lane as u64]);
        let name = if lane == 0 { group.title() } else { format!("{}, lane {}", group.title(), lane + 1) };
        let thread = match group {
            Group::Launches { thread } if lane == 0 && thread != 0 => Some(ThreadDescriptor {
                pid: Some(self.pid),
                tid: Some(thread.into()),
                thread_name: Some(name.clone()),
            }),
            _ => None,
        };
        self.sequence.describe(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name),
            parent_uuid: Some(parent_uuid),
            thread,
            sibling_order_rank: Some(group.rank() + lane as i32),
            sibling_merge_behavior: Some(MERGE_NONE),
            ..TrackDescriptor::default()
        })?;
        if let Some(rows) = self.rows.get_mut(&group) {
            rows.uuids.push(uuid);
        }
        Ok(uuid)
    }

    fn describe_curve(&mut self, device: u32, curve: Curve) -> Result<u64, ExportError> {
        let (name, unit, unit_name) = match curve {
            Curve::Busy => ("GPU busy %", None, Some("%")),
            Curve::Copies => ("copies, bytes/s", None, Some("bytes/s")),
            Curve::Memory => ("memory in use", Some(UNIT_SIZE_BYTES), None),
            Curve::Pools => ("memory used in pools", Some(UNIT_SIZE_BYTES), None),
        };
        let uuid = self.identity.track("curve", [device.into(), curve as u64, 0, 0]);
        let parent_uuid = self.parent(Parent::Device(device))?;
        self.sequence.describe(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent_uuid: Some(parent_uuid),
            counter: Some(CounterDescriptor { unit, unit_name: unit_name.map(str::to_owned) }),
            sibling_order_rank: Some(curve as i32),
            ..TrackDescriptor::default()
        })?;
        self.curves.insert((device, curve), uuid);
        Ok(uuid)
    }

    fn parent(&mut self, parent: Parent) -> Result<u64, ExportError> {
        if let Some(&uuid) = self.parents.get(&parent) {
            return Ok(uuid);
        }
        let track = match parent {
            Parent::Process => self.process_track(),
            Parent::Device(device) => self.child("device", device, self.device_title(device), 0)?,
            Parent::Thread(0) => self.child("thread", 0, "no thread".to_owned(), 1)?,
            Parent::Thread(thread) => self.child("thread", thread, format!("thread {thread} (CUPTI's number)"), 2)?,
        };
        let uuid = track.uuid.unwrap_or_default();
        self.sequence.describe(track)?;
        self.parents.insert(parent, uuid);
        Ok(uuid)
    }

    fn process_track(&self) -> TrackDescriptor {
        let name = format!("{}, {}", self.process.label(), self.process.command.join(" "));
        let mut process_labels = vec![format!("host {}", self.process.host)];
        if i64::from(self.pid) != i64::from(self.process.pid) {
            process_labels.push(format!("pid {} there", self.process.pid));
        }
        TrackDescriptor {
            uuid: Some(self.identity.track("process", [0; 4])),
            name: Some(name.clone()),
            process: Some(ProcessDescriptor {
                pid: Some(self.pid),
                cmdline: self.process.command.clone(),
                process_name: Some(name),
                process_labels,
            }),
            child_ordering: Some(ORDER_EXPLICIT),
            ..TrackDescriptor::default()
        }
    }

    fn child(&mut self, what: &str, number: u32, name: String, rank: i32) -> Result<TrackDescriptor, ExportError> {
        let parent_uuid = self.parent(Parent::Process)?;
        Ok(TrackDescriptor {
            uuid: Some(self.identity.track(what, [number.into(), 0, 0, 0])),
            name: Some(name),
            parent_uuid: Some(parent_uuid),
            child_ordering: Some(ORDER_EXPLICIT),
            sibling_order_rank: Some(rank),
            ..TrackDescriptor::default()
        })
    }

    fn device_title(&self, device: u32) -> String {
        match self.process.devices.iter().find(|known| known.ordinal == device) {
            Some(known) => format!("GPU {device}, {}", known.name),
            None => format!("GPU {device}"),
        }
    }
}

impl Group {
    /// Calls lie inside each other; kernels of a stream never do, and the ends of ranges are not known when they begin.
    fn nests(self) -> bool {
        matches!(self, Group::Calls { .. } | Group::Overhead { .. })
    }

    fn parent(self) -> Parent {
        match self {
            Group::Stream { device, .. } => Parent::Device(device),
            Group::Launches { .. } | Group::Waits { .. } => Parent::Process,
            Group::Calls { thread } | Group::Nvtx { thread } | Group::Overhead { thread } => Parent::Thread(thread),
        }
    }

    /// What tells it from all others of the process.
    fn numbers(self) -> (&'static str, [u64; 3]) {
        match self {
            Group::Stream { device, context, stream } => ("stream", [device, context, stream].map(u64::from)),
            Group::Launches { thread } => ("launches", [thread.into(), 0, 0]),
            Group::Calls { thread } => ("calls", [thread.into(), 0, 0]),
            Group::Nvtx { thread } => ("nvtx", [thread.into(), 0, 0]),
            Group::Waits { context } => ("waits", [context.into(), 0, 0]),
            Group::Overhead { thread } => ("overhead", [thread.into(), 0, 0]),
        }
    }

    fn title(self) -> String {
        match self {
            Group::Stream { context, stream, .. } => format!("stream {stream}, context {context}"),
            Group::Launches { thread: 0 } => "launches, thread unknown".to_owned(),
            Group::Launches { thread } => format!("thread {thread}, launches"),
            Group::Calls { .. } => "CUDA API".to_owned(),
            Group::Nvtx { .. } => "NVTX".to_owned(),
            Group::Waits { context } => format!("host waits, context {context}"),
            Group::Overhead { .. } => "overhead".to_owned(),
        }
    }

    /// Curves have the ranks below; lanes follow their group.
    fn rank(self) -> i32 {
        let kind = match self {
            Group::Stream { stream, .. } => 1 + i32::try_from(stream).unwrap_or(i32::MAX).min(1 << 20),
            Group::Nvtx { .. } => 1,
            Group::Calls { .. } => 2,
            Group::Overhead { .. } => 3,
            Group::Launches { .. } => 4,
            Group::Waits { .. } => 5,
        };
        kind * super::lanes::LANES_MAX as i32
    }
}
