//! Kernels added up by stream, device or graph.

use crate::select::By;
use gputap_reader::model::{KernelStats, Timing};
use gputap_ringbuf::event::{GraphEvent, KernelEvent};
use std::collections::HashMap;

/// Groups with a row of their own; the rest share one.
pub const GROUPS_MAX: usize = 4096;

/// What tells groups of one process apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    Stream {
        device_id: u32,
        context_id: u32,
        stream_id: u32,
    },
    Device {
        device_id: u32,
    },
    /// 0: by themselves, in no graph.
    GraphNodes {
        graph_id: u32,
    },
    /// Graphs that were recorded as a whole.
    WholeGraph {
        graph_id: u32,
    },
    Other,
}

/// The kernels of one group.
#[derive(Debug, Default)]
pub struct Group {
    pub stats: KernelStats,
    /// Calls and time by the number of the kernel.
    pub kernels: Vec<(u64, u64)>,
}

#[derive(Debug)]
pub struct Groups {
    by: By,
    numbers: HashMap<Key, usize>,
    all: Vec<(Key, Group)>,
    latest: usize,
}

impl Groups {
    /// None where the groups need no look at each event.
    pub fn new(by: Option<By>) -> Option<Groups> {
        let by = by.filter(|by| matches!(by, By::Stream | By::Device | By::Graph))?;
        Some(Groups { by, numbers: HashMap::new(), all: Vec::new(), latest: usize::MAX })
    }

    pub fn kernel(&mut self, event: &KernelEvent, number: usize, timing: Timing) {
        let key = match self.by {
            By::Stream => {
                Key::Stream { device_id: event.device_id, context_id: event.context_id, stream_id: event.stream_id }
            }
            By::Graph => Key::GraphNodes { graph_id: event.graph_id },
            _ => Key::Device { device_id: event.device_id },
        };
        let group = self.group(key);
        group.stats.count(event, timing);
        if group.kernels.len() <= number {
            group.kernels.resize(number + 1, (0, 0));
        }
        let (calls, total_ns) = &mut group.kernels[number];
        *calls += 1;
        *total_ns = total_ns.saturating_add(timing.duration_ns().unwrap_or(0));
    }

    pub fn graph(&mut self, event: &GraphEvent, timing: Timing) {
        if self.by == By::Graph {
            let as_kernel = KernelEvent { start_ns: event.start_ns, end_ns: event.end_ns, ..KernelEvent::default() };
            self.group(Key::WholeGraph { graph_id: event.graph_id }).stats.count(&as_kernel, timing);
        }
    }

    pub fn into_all(self) -> Vec<(Key, Group)> {
        self.all
    }

    fn group(&mut self, key: Key) -> &mut Group {
        // Neighbours are mostly of one group.
        if self.all.get(self.latest).is_none_or(|(latest, _)| *latest != key) {
            self.latest = self.number(key);
        }
        &mut self.all[self.latest].1
    }

    fn number(&mut self, key: Key) -> usize {
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        if self.numbers.len() >= GROUPS_MAX && key != Key::Other {
            return self.number(Key::Other);
        }
        self.all.push((key, Group::default()));
        self.numbers.insert(key, self.all.len() - 1);
        self.all.len() - 1
    }
}
