//! The running sums of one process.

use crate::busy::{Ran, Work};
use crate::gather::Devices;
use crate::groups::Groups;
use crate::kernel_names::{Kernels, OTHER};
use crate::select::By;
use gputap_reader::model::snapshot::{Flags, Total};
use gputap_reader::model::{Copies, Flaw, Memory, Timing};
use gputap_recording::{Names, Status};
use gputap_ringbuf::event::{Event, EventKind, GraphEvent, KernelEvent, MemcpyEvent, MemsetEvent};
use regex_lite::Regex;

/// Kinds of events that a report is made of.
const KINDS: u64 = EventKind::Kernel.bit()
    | EventKind::Memcpy.bit()
    | EventKind::Memset.bit()
    | EventKind::Graph.bit()
    | EventKind::Memory.bit();

/// Sets of memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sets {
    pub sets: u64,
    pub bytes: u64,
    pub total: Total,
}

#[derive(Debug)]
pub struct Tally {
    /// Of the process.
    number: u16,
    /// The time asked for: begin and length.
    begin_ns: u64,
    length_ns: u64,
    only_kernels: bool,
    pub kernels: Kernels,
    pub groups: Option<Groups>,
    pub copies: Copies,
    pub sets: Sets,
    pub graphs: Total,
    pub memory: Memory,
    pub flags: Flags,
    /// Records without any time, which are in no time that is asked for.
    pub placeless: u64,
    /// First start and last end of what ran.
    pub span_ns: Option<[u64; 2]>,
    /// How far it has been read.
    pub progress_ns: u64,
    pub status: Option<Status>,
    pub events: u64,
}

/// What every process' tally is made with.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub limits: Option<[u64; 2]>,
    pub filter: Option<Regex>,
    pub by: Option<By>,
}

impl Tally {
    pub fn new(number: u16, wanted: &Wanted) -> Tally {
        let [begin_ns, end_ns] = wanted.limits.unwrap_or([0, u64::MAX]);
        Tally {
            number,
            begin_ns,
            length_ns: end_ns - begin_ns,
            only_kernels: wanted.filter.is_some(),
            kernels: Kernels::new(wanted.filter.clone()),
            groups: Groups::new(wanted.by),
            copies: Copies::default(),
            sets: Sets::default(),
            graphs: Total::default(),
            memory: Memory::default(),
            flags: Flags::default(),
            placeless: 0,
            span_ns: None,
            progress_ns: 0,
            status: None,
            events: 0,
        }
    }

    /// Kinds of events to be read.
    pub fn kinds(&self) -> u64 {
        if self.only_kernels { EventKind::Kernel.bit() } else { KINDS }
    }

    /// The end of the recording, as far as is known.
    pub fn last_ns(&self) -> u64 {
        let told_ns = self.status.as_ref().map_or(0, |status| status.time_ns);
        told_ns.max(self.span_ns.map_or(0, |[_, last]| last))
    }

    /// Counts events up to the first kernel of an unknown name; how many those were.
    pub fn known(&mut self, events: &[Event], devices: &mut Devices) -> usize {
        for (position, event) in events.iter().enumerate() {
            match event {
                Event::Kernel(kernel) => match self.kernels.number(kernel.name_id) {
                    Some(number) => self.kernel(event, kernel, number, devices),
                    None => return position,
                },
                other => self.other(other, devices),
            }
        }
        events.len()
    }

    /// Counts events whose names may be new.
    pub fn new_names(&mut self, events: &[Event], names: &Names, devices: &mut Devices) {
        for event in events {
            match event {
                Event::Kernel(kernel) => {
                    self.kernels.learn(kernel.name_id, names);
                    let number = self.kernels.number(kernel.name_id).unwrap_or(OTHER);
                    self.kernel(event, kernel, number, devices);
                }
                other => self.other(other, devices),
            }
        }
    }

    fn kernel(&mut self, event: &Event, kernel: &KernelEvent, number: usize, devices: &mut Devices) {
        let timing = Timing::of(event);
        let known = &mut self.kernels.all[number];
        if !known.is_wanted {
            return;
        }
        let ran = Ran { process: self.number, work: Work::Kernel, index: number as u32 };
        let is_in = self.ran(kernel.device_id, [kernel.start_ns, kernel.end_ns], timing, ran, devices);
        if is_in {
            self.kernels.all[number].stats.count(kernel, timing);
            if let Some(groups) = &mut self.groups {
                groups.kernel(kernel, number, timing);
            }
        }
    }

    fn other(&mut self, event: &Event, devices: &mut Devices) {
        if self.only_kernels {
            return;
        }
        let timing = Timing::of(event);
        match event {
            Event::Memcpy(copy) => self.copy(copy, timing, devices),
            Event::Memset(set) => self.set(set, timing, devices),
            Event::Graph(graph) => self.graph(graph, timing, devices),
            Event::Memory(memory) => self.memory.count(memory),
            _ => {}
        }
    }

    fn copy(&mut self, copy: &MemcpyEvent, timing: Timing, devices: &mut Devices) {
        let ran = Ran { process: self.number, work: Work::Copy, index: u32::from(copy.copy_kind) };
        if self.ran(copy.device_id, [copy.start_ns, copy.end_ns], timing, ran, devices) {
            self.copies.count(copy, timing);
        }
    }

    fn set(&mut self, set: &MemsetEvent, timing: Timing, devices: &mut Devices) {
        let ran = Ran { process: self.number, work: Work::Set, index: 0 };
        if self.ran(set.device_id, [set.start_ns, set.end_ns], timing, ran, devices) {
            self.sets.sets += 1;
            self.sets.bytes = self.sets.bytes.saturating_add(set.bytes);
            add(&mut self.sets.total, timing);
        }
    }

    fn graph(&mut self, graph: &GraphEvent, timing: Timing, devices: &mut Devices) {
        let ran = Ran { process: self.number, work: Work::Graph, index: graph.graph_id };
        if self.ran(graph.device_id, [graph.start_ns, graph.end_ns], timing, ran, devices) {
            add(&mut self.graphs, timing);
            if let Some(groups) = &mut self.groups {
                groups.graph(graph, timing);
            }
        }
    }

    /// The device's busy time; true where the record is of the time asked for.
    #[inline]
    fn ran(&mut self, device_id: u32, times: [u64; 2], timing: Timing, ran: Ran, devices: &mut Devices) -> bool {
        match timing {
            Timing::Good { start_ns, end_ns } => {
                self.progress_ns = self.progress_ns.max(start_ns);
                devices.busy(ran.process, device_id).add(start_ns, end_ns, ran);
                if start_ns.wrapping_sub(self.begin_ns) >= self.length_ns {
                    return false;
                }
                self.events += 1;
                match &mut self.span_ns {
                    Some([first, last]) => (*first, *last) = ((*first).min(start_ns), (*last).max(end_ns)),
                    none => *none = Some([start_ns, end_ns]),
                }
                true
            }
            Timing::Flagged(flaw) => self.flawed(times[0].max(times[1]), flaw),
        }
    }

    fn flawed(&mut self, at_ns: u64, flaw: Flaw) -> bool {
        if self.length_ns != u64::MAX && at_ns == 0 {
            self.placeless += 1;
            return false;
        }
        if at_ns.wrapping_sub(self.begin_ns) >= self.length_ns {
            return false;
        }
        self.events += 1;
        let flag = match flaw {
            Flaw::Unfinished => &mut self.flags.unfinished,
            Flaw::Zero => &mut self.flags.zero,
            Flaw::Negative => &mut self.flags.negative,
            Flaw::Doubtful => &mut self.flags.doubtful,
        };
        *flag += 1;
        true
    }
}

fn add(total: &mut Total, timing: Timing) {
    total.count += 1;
    match timing.duration_ns() {
        Some(duration_ns) => {
            total.total_ns = total.total_ns.saturating_add(duration_ns);
            total.max_ns = total.max_ns.max(duration_ns);
        }
        None => total.flagged += 1,
    }
}
