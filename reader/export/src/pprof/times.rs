//! The GPU time of one process by kernel and stream.

use crate::table::{duration_ns, exact};
use gputap_reader::symbols::demangle;
use gputap_recording::{Block, Names, Problem, Recorded, Status};
use gputap_ringbuf::event::{Event, EventKind, KernelEvent};
use std::collections::HashMap;

/// Of kernels that have none.
const UNNAMED: &str = "(unnamed)";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub device_id: u32,
    pub stream_id: u32,
}

/// All runs of one kernel in one stream.
#[derive(Clone, Debug)]
pub struct Total {
    pub place: Place,
    pub name: String,
    pub system_name: String,
    pub count: u64,
    pub time_ns: u64,
}

#[derive(Default)]
pub struct Times {
    pub totals: Vec<Total>,
    pub kernels: u64,
    /// Of them, those whose times are in no sum.
    pub flawed: u64,
    /// First start and last end.
    pub span_ns: Option<[u64; 2]>,
    pub status: Option<Status>,
    pub problems: Vec<Problem>,
}

type Sums = HashMap<(Place, Option<u32>), [u64; 2]>;

impl Times {
    pub fn of(recorded: &Recorded) -> Times {
        let mut times = Times::default();
        let mut sums = Sums::new();
        let mut kernels: Vec<KernelEvent> = Vec::new();
        let mut stream = recorded.stream(EventKind::Kernel.bit());
        while let Some(block) = stream.next_block() {
            match block {
                Block::Status(status) => times.status = Some(status),
                Block::Module(_) => {}
                Block::Events(events) => {
                    kernels.clear();
                    kernels.extend(events.iter().filter_map(|event| match event {
                        Event::Kernel(kernel) => Some(*kernel),
                        _ => None,
                    }));
                    kernels.iter().for_each(|kernel| times.add(kernel, stream.names(), &mut sums));
                }
            }
        }
        times.totals = sums.into_iter().map(|(key, sum)| total(key, sum, stream.names())).collect();
        times.totals.sort_by(|one, other| (one.place, &one.system_name).cmp(&(other.place, &other.system_name)));
        times.problems = stream.problems().to_vec();
        times
    }

    fn add(&mut self, kernel: &KernelEvent, names: &Names, sums: &mut Sums) {
        let place = Place { device_id: kernel.device_id, stream_id: kernel.stream_id };
        let [count, time_ns] = sums.entry((place, names.index(kernel.name_id))).or_default();
        *count += 1;
        self.kernels += 1;
        let Some(duration_ns) = duration_ns(kernel.start_ns, kernel.end_ns) else {
            self.flawed += 1;
            return;
        };
        *time_ns = time_ns.saturating_add(duration_ns);
        let [first, last] = self.span_ns.unwrap_or([u64::MAX, 0]);
        self.span_ns = Some([first.min(kernel.start_ns), last.max(kernel.end_ns)]);
    }
}

fn total((place, index): (Place, Option<u32>), [count, time_ns]: [u64; 2], names: &Names) -> Total {
    let bytes = index.map(|index| &names.name(index).bytes);
    let (name, system_name) = match bytes {
        Some(bytes) => (demangle(bytes), exact(bytes)),
        None => (UNNAMED.to_owned(), UNNAMED.to_owned()),
    };
    Total { place, name, system_name, count, time_ns }
}
