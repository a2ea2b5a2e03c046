//! What was written, as a plain sum of the events: for tests to compare with.

use crate::is_timed;
use gputap_recording::Process;
use gputap_ringbuf::event::{Event, EventKind, NO_NAME};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub struct Wrote {
    pub processes: Vec<WroteProcess>,
}

/// A rest of the device, from the last end to the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    pub start_ns: u64,
    pub end_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTotal {
    pub calls: u64,
    /// Of them, those whose times are in no sum.
    pub flawed: u64,
    pub total_ns: u64,
    pub max_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyTotal {
    pub copies: u64,
    pub bytes: u64,
    pub total_ns: u64,
}

#[derive(Clone, Debug)]
pub struct WroteProcess {
    pub process: Process,
    pub events: u64,
    /// By the number of the kind.
    pub by_kind: [u64; EventKind::ALL.len() + 1],
    /// By the position in `names`; the last for kernels without a name.
    kernels: Vec<KernelTotal>,
    names: Vec<Vec<u8>>,
    /// By `copy_kind`.
    pub copies: BTreeMap<u8, CopyTotal>,
    /// The rests that were put in on purpose; there are shorter ones beside them.
    pub pauses: Vec<Pause>,
}

impl Wrote {
    /// Of all processes, by mangled name; without those that never ran.
    pub fn kernels(&self) -> BTreeMap<Vec<u8>, KernelTotal> {
        let mut all: BTreeMap<Vec<u8>, KernelTotal> = BTreeMap::new();
        for (name, total) in self.processes.iter().flat_map(WroteProcess::kernels) {
            let sum = all.entry(name).or_default();
            sum.calls += total.calls;
            sum.flawed += total.flawed;
            sum.total_ns += total.total_ns;
            sum.max_ns = sum.max_ns.max(total.max_ns);
        }
        all
    }

    pub fn events(&self) -> u64 {
        self.processes.iter().map(|process| process.events).sum()
    }
}

impl WroteProcess {
    pub(crate) fn new(process: Process, names: &[Vec<u8>]) -> WroteProcess {
        WroteProcess {
            process,
            events: 0,
            by_kind: [0; EventKind::ALL.len() + 1],
            kernels: vec![KernelTotal::default(); names.len() + 1],
            names: names.to_vec(),
            copies: BTreeMap::new(),
            pauses: Vec::new(),
        }
    }

    /// By mangled name; those without a name under no bytes at all, as is the kernel whose name is empty.
    pub fn kernels(&self) -> BTreeMap<Vec<u8>, KernelTotal> {
        let names = self.names.iter().cloned().chain([b"(unnamed)".to_vec()]);
        names.zip(self.kernels.iter().copied()).filter(|(_, total)| total.calls > 0).collect()
    }

    pub fn kernel_events(&self) -> u64 {
        self.by_kind[EventKind::Kernel as usize]
    }

    pub(crate) fn count(&mut self, event: &Event) {
        self.events += 1;
        self.by_kind[event.kind() as usize] += 1;
        match event {
            Event::Kernel(kernel) => {
                let last = self.names.len();
                let at = if kernel.name_id == NO_NAME { last } else { crate::rank::name_of(kernel.name_id) };
                let total = &mut self.kernels[at];
                total.calls += 1;
                if is_timed(kernel.start_ns, kernel.end_ns) {
                    total.total_ns += kernel.end_ns - kernel.start_ns;
                    total.max_ns = total.max_ns.max(kernel.end_ns - kernel.start_ns);
                } else {
                    total.flawed += 1;
                }
            }
            Event::Memcpy(copy) => {
                let total = self.copies.entry(copy.copy_kind).or_default();
                total.copies += 1;
                total.bytes += copy.bytes;
                total.total_ns += copy.end_ns - copy.start_ns;
            }
            _ => {}
        }
    }
}
