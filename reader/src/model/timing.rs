//! Whether a record's times can be believed.

use gputap_ringbuf::event::Event;

/// The times of one record, judged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// `start_ns > 0` and `end_ns >= start_ns`.
    Good { start_ns: u64, end_ns: u64 },
    /// A zero start, a zero end (not finished when CUPTI delivered it) or an end before the start: counted, never
    /// averaged.
    Flagged,
}

impl Timing {
    pub(crate) fn of(event: &Event) -> Timing {
        let (start_ns, end_ns) = match event {
            Event::Kernel(kernel) => (kernel.start_ns, kernel.end_ns),
            Event::Memcpy(copy) => (copy.start_ns, copy.end_ns),
            Event::Memset(memset) => (memset.start_ns, memset.end_ns),
            Event::Sync(sync) => (sync.start_ns, sync.end_ns),
            Event::Graph(graph) => (graph.start_ns, graph.end_ns),
            Event::Overhead(overhead) => (overhead.start_ns, overhead.end_ns),
            Event::Runtime(call) | Event::Driver(call) => (call.start_ns, call.end_ns),
            // They have one time each.
            Event::Memory(memory) => (memory.time_ns, memory.time_ns),
            Event::Pool(pool) => (pool.time_ns, pool.time_ns),
            Event::Marker(marker) => (marker.time_ns, marker.time_ns),
            Event::Launch(launch) => (launch.time_ns, launch.time_ns),
        };
        if start_ns == 0 || end_ns < start_ns { Timing::Flagged } else { Timing::Good { start_ns, end_ns } }
    }

    pub(crate) fn is_flagged(self) -> bool {
        self == Timing::Flagged
    }

    pub(crate) fn duration_ns(self) -> Option<u64> {
        match self {
            Timing::Good { start_ns, end_ns } => Some(end_ns - start_ns),
            Timing::Flagged => None,
        }
    }
}
