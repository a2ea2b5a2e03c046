//! Whether a record's times can be believed.

use gputap_ringbuf::event::Event;

/// The times of one record, judged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// `start_ns > 0` and `end_ns >= start_ns`.
    Good {
        start_ns: u64,
        end_ns: u64,
    },
    Flagged(Flaw),
}

/// What is wrong with a record's times: counted, never averaged. The first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// No end: CUPTI delivered the record before the work had finished.
    Unfinished,
    /// No start, or no time at all.
    Zero,
    /// An end before the start.
    Negative,
    /// The wall clock, which CUPTI follows, was set near that time.
    Doubtful,
}

impl Timing {
    /// Whether what `event` says of its times holds together.
    #[inline]
    pub fn of(event: &Event) -> Timing {
        match event {
            Event::Kernel(kernel) => span(kernel.start_ns, kernel.end_ns),
            Event::Memcpy(copy) => span(copy.start_ns, copy.end_ns),
            Event::Memset(memset) => span(memset.start_ns, memset.end_ns),
            Event::Sync(sync) => span(sync.start_ns, sync.end_ns),
            Event::Graph(graph) => span(graph.start_ns, graph.end_ns),
            Event::Overhead(overhead) => span(overhead.start_ns, overhead.end_ns),
            Event::Runtime(call) | Event::Driver(call) => span(call.start_ns, call.end_ns),
            Event::Memory(memory) => instant(memory.time_ns),
            Event::Pool(pool) => instant(pool.time_ns),
            Event::Marker(marker) => instant(marker.time_ns),
            Event::Launch(launch) => instant(launch.time_ns),
        }
    }

    pub fn flaw(self) -> Option<Flaw> {
        match self {
            Timing::Good { .. } => None,
            Timing::Flagged(flaw) => Some(flaw),
        }
    }

    /// None where the times cannot be believed.
    pub fn duration_ns(self) -> Option<u64> {
        match self {
            Timing::Good { start_ns, end_ns } => Some(end_ns - start_ns),
            Timing::Flagged(_) => None,
        }
    }
}

fn span(start_ns: u64, end_ns: u64) -> Timing {
    match () {
        () if end_ns == 0 => Timing::Flagged(Flaw::Unfinished),
        () if start_ns == 0 => Timing::Flagged(Flaw::Zero),
        () if end_ns < start_ns => Timing::Flagged(Flaw::Negative),
        () => Timing::Good { start_ns, end_ns },
    }
}

fn instant(time_ns: u64) -> Timing {
    if time_ns == 0 { Timing::Flagged(Flaw::Zero) } else { Timing::Good { start_ns: time_ns, end_ns: time_ns } }
}
