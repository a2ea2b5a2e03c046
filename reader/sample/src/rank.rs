//! One rank's events, step by step, in the order in which a recorder gets them: by stream within a step.

use crate::random::Random;
use crate::step::{COLLECTIVE, COMPUTE, COPY, GRAPH_NODES, KERNELS, SIDE, Slot, plan};
use crate::wrote::Pause;
use crate::{BEGAN_NS, Sample};
use gputap_ringbuf::event::{
    Event, KernelEvent, LaunchEvent, MarkerEvent, MemcpyEvent, MemoryEvent, MemsetEvent, NO_NAME, SyncEvent,
};

/// `DRIVER_TRACE_CBID_cuLaunchKernel` and `cuGraphLaunch`.
const CU_LAUNCH_KERNEL: u32 = 307;
const CU_GRAPH_LAUNCH: u32 = 514;
/// Each lane has a table of names of its own: what collectives are called has other ids than the same name elsewhere.
const OTHER_LANE: u32 = 1 << 16;
const STEP_TEXT: u32 = 1 << 20;
/// From one step to the next, at least.
const BETWEEN_STEPS_NS: u64 = 200_000;
const FLAWED_EVERY: u64 = 10_007;
const BLOCK_BYTES: u64 = 2 << 20;
const LASTING_BLOCKS: u64 = 40;
const STEP_BLOCKS: u64 = 6;
const POOL_ADDRESS: u64 = 0x7f00_0000_0000;

/// What a recorder is told.
#[derive(Clone, Copy, Debug)]
pub enum Given<'a> {
    /// A kernel's mangled name, before the first event that refers to it.
    Name(u32, &'a [u8]),
    /// Another text.
    Text(u32, &'a [u8]),
    Event(&'a Event),
}

/// The position in the sample's names of a kernel's id.
pub fn name_of(id: u32) -> usize {
    (id % OTHER_LANE) as usize
}

pub struct Rank {
    rank: u32,
    names: Vec<Vec<u8>>,
    plan: Vec<Slot>,
    sample: Sample,
    random: Random,
    /// How long a step takes on the slowest rank.
    step_ns: u64,
    steps: u64,
    steps_max: u64,
    kernels: u64,
    correlation_id: u64,
    now_ns: u64,
    pauses: Vec<Pause>,
    /// Of a step, to be handed out sorted.
    events: Vec<Event>,
}

/// Where the streams of a step are.
struct Streams {
    begin_ns: u64,
    compute_ns: u64,
    side_ns: u64,
    collective_ns: u64,
}

impl Rank {
    pub fn new(sample: &Sample, rank: u32) -> Rank {
        let names = sample.names();
        let plan = plan(crate::of_a_step().len(), sample.seed);
        let computed: u64 = plan.iter().filter(|s| s.stream_id == COMPUTE).map(|s| s.duration_ns + s.pause_ns).sum();
        let slowest = sample.straggler.map_or(0, |(_, percent)| percent);
        let per_step = KERNELS as u64 * u64::from(sample.processes.max(1));
        Rank {
            rank,
            names,
            plan,
            random: Random::new(sample.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(rank))),
            step_ns: computed * (100 + slowest) / 100 * 106 / 100,
            steps: 0,
            steps_max: sample.kernels.div_ceil(per_step),
            kernels: 0,
            correlation_id: 0,
            now_ns: BEGAN_NS,
            pauses: Vec::new(),
            events: Vec::new(),
            sample: sample.clone(),
        }
    }

    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub fn steps(&self) -> u64 {
        self.steps
    }

    pub fn pauses(&self) -> &[Pause] {
        &self.pauses
    }

    /// The next step; false when it was the last.
    pub fn step(&mut self, give: &mut impl FnMut(Given<'_>)) -> bool {
        if self.steps >= self.steps_max {
            return false;
        }
        if self.steps == 0 {
            self.begin(give);
        }
        let begin_ns = self.now_ns;
        self.marker(begin_ns, 2, STEP_TEXT);
        self.copies_in(begin_ns);
        let end_ns = self.kernels(begin_ns);
        self.marker(end_ns, 4, NO_NAME);
        self.events.iter().for_each(|event| give(Given::Event(event)));
        self.events.clear();
        self.steps += 1;
        self.now_ns = end_ns + BETWEEN_STEPS_NS;
        self.pause(end_ns);
        self.steps < self.steps_max
    }

    fn begin(&mut self, give: &mut impl FnMut(Given<'_>)) {
        for (id, name) in (0..).zip(&self.names) {
            give(Given::Name(id, name));
            give(Given::Name(OTHER_LANE + id, name));
        }
        give(Given::Text(STEP_TEXT, b"training step \"\xf0\x9f\x9a\x82\""));
        if self.sample.memory {
            (0..LASTING_BLOCKS).for_each(|block| self.memory(BEGAN_NS, 1, block, BLOCK_BYTES * (1 + block % 3)));
        }
    }

    fn pause(&mut self, end_ns: u64) {
        let every = self.sample.pause_every;
        if every == 0 || !self.steps.is_multiple_of(every) {
            return;
        }
        self.now_ns = end_ns + 20_000_000 + self.pauses.len() as u64 * 1_000_000;
        if self.steps < self.steps_max {
            self.pauses.push(Pause { start_ns: end_ns, end_ns: self.now_ns });
        }
    }

    /// All kernels of a step; when the last ends.
    fn kernels(&mut self, begin_ns: u64) -> u64 {
        let mut streams = Streams { begin_ns, compute_ns: begin_ns, side_ns: begin_ns, collective_ns: begin_ns };
        let graph_correlation = self.next_correlation();
        let (mut beside, mut collectives) = (Vec::new(), Vec::new());
        for position in 0..KERNELS {
            let slot = self.plan[position];
            let in_graph = self.sample.graphs && position >= KERNELS - GRAPH_NODES;
            let kernel = self.kernel(&slot, &mut streams, in_graph.then_some((graph_correlation, position as u64)));
            match slot.stream_id {
                COMPUTE => self.add(kernel, in_graph),
                SIDE => beside.push((kernel, in_graph)),
                _ => collectives.push((kernel, in_graph)),
            }
        }
        if self.sample.graphs && self.sample.launches {
            self.launch(streams.compute_ns - 400_000, graph_correlation, CU_GRAPH_LAUNCH, NO_NAME);
        }
        if self.sample.hostile && self.steps == 0 {
            self.hostile(&mut streams);
        }
        beside.into_iter().for_each(|(kernel, in_graph)| self.add(kernel, in_graph));
        let end_ns = self.meeting(&streams, &mut collectives);
        collectives.into_iter().for_each(|(kernel, in_graph)| self.add(kernel, in_graph));
        self.small_things(begin_ns, end_ns);
        end_ns
    }

    /// The last collective ends for all ranks at once, when the slowest has come.
    fn meeting(&mut self, streams: &Streams, collectives: &mut [(KernelEvent, bool)]) -> u64 {
        let start_ns = streams.compute_ns.max(streams.side_ns).max(streams.collective_ns) + 1_000;
        let end_ns = (streams.begin_ns + self.step_ns).max(start_ns + 20_000);
        if let Some((last, _)) = collectives.last_mut() {
            (last.start_ns, last.end_ns) = (start_ns, end_ns);
            // Of a step's kernels it alone is not launched by the graph, which ends before it.
            (last.graph_id, last.graph_node_id) = (0, 0);
        }
        end_ns
    }

    fn kernel(&mut self, slot: &Slot, streams: &mut Streams, node: Option<(u64, u64)>) -> KernelEvent {
        let slow = match self.sample.straggler {
            Some((rank, percent)) if rank == self.rank && slot.stream_id != COLLECTIVE => 100 + percent,
            _ => 100,
        };
        let duration_ns = self.random.around(slot.duration_ns) * slow / 100;
        let compute_ns = streams.compute_ns;
        let at = match slot.stream_id {
            COMPUTE => &mut streams.compute_ns,
            SIDE => &mut streams.side_ns,
            _ => &mut streams.collective_ns,
        };
        // Other streams wait for the first: they run beside what comes after.
        let start_ns = (*at + slot.pause_ns).max(if slot.stream_id == COMPUTE { 0 } else { compute_ns });
        *at = start_ns + duration_ns;
        let lane = if slot.stream_id == COLLECTIVE { OTHER_LANE } else { 0 };
        let own = self.next_correlation();
        KernelEvent {
            start_ns,
            end_ns: start_ns + duration_ns,
            correlation_id: node.map_or(own, |(correlation, _)| correlation),
            graph_node_id: node.map_or(0, |(_, position)| 1000 + position),
            name_id: lane + slot.name as u32,
            device_id: self.rank,
            context_id: 1,
            stream_id: slot.stream_id,
            graph_id: node.map_or(0, |_| 3),
            grid: slot.grid,
            block: slot.block,
            static_shared_bytes: slot.static_shared_bytes,
            dynamic_shared_bytes: slot.dynamic_shared_bytes,
            local_bytes_per_thread: 0,
            registers_per_thread: slot.registers,
        }
    }

    fn add(&mut self, kernel: KernelEvent, in_graph: bool) {
        self.kernels += 1;
        if self.sample.launches && (!in_graph || kernel.graph_id == 0) {
            let before_ns = 8_000 + self.random.below(300_000);
            self.launch(kernel.start_ns - before_ns, kernel.correlation_id, CU_LAUNCH_KERNEL, kernel.name_id);
        }
        let kernel = if self.sample.flawed && self.kernels.is_multiple_of(FLAWED_EVERY) {
            flawed(kernel, self.kernels / FLAWED_EVERY)
        } else {
            kernel
        };
        self.events.push(Event::Kernel(kernel));
    }

    fn hostile(&mut self, streams: &mut Streams) {
        let first = crate::of_a_step().len();
        for name in first..self.names.len() {
            let slot = Slot { name, stream_id: COMPUTE, duration_ns: 5_000, ..self.plan[0] };
            let kernel = self.kernel(&slot, streams, None);
            self.add(kernel, false);
        }
        let slot = Slot { stream_id: COMPUTE, duration_ns: 4_000, ..self.plan[0] };
        let kernel = KernelEvent { name_id: NO_NAME, ..self.kernel(&slot, streams, None) };
        self.add(kernel, false);
    }

    fn launch(&mut self, time_ns: u64, correlation_id: u64, callback_id: u32, name_id: u32) {
        let thread_id = 4_000 + self.rank;
        let launch = LaunchEvent { time_ns, correlation_id, callback_id, thread_id, name_id, context_id: 1 };
        self.events.push(Event::Launch(launch));
    }

    fn copies_in(&mut self, begin_ns: u64) {
        for copy in 0..2 {
            let bytes = 8 << (20 + copy);
            self.copy(begin_ns + copy * 600_000, bytes, COPY, (1, 2, 3));
        }
    }

    /// What runs beside the kernels without changing when they run.
    fn small_things(&mut self, begin_ns: u64, end_ns: u64) {
        self.copy(begin_ns + 3_000_000, 64 << 20, COPY, (8, 3, 3));
        self.copy(end_ns - 10_000, 4, COPY, (2, 3, 1));
        for set in 0..3 {
            let start_ns = begin_ns + 700_000 * set;
            self.events.push(Event::Memset(MemsetEvent {
                start_ns,
                end_ns: start_ns + 1_500,
                bytes: 1 << (10 + set),
                correlation_id: self.correlation_id,
                device_id: self.rank,
                context_id: 1,
                stream_id: COPY,
                memory_kind: 3,
                flags: 1,
                ..MemsetEvent::default()
            }));
        }
        self.events.push(Event::Sync(SyncEvent {
            start_ns: begin_ns + 100_000,
            end_ns: end_ns + 4_000,
            correlation_id: self.correlation_id,
            sync_kind: 3,
            context_id: 1,
            stream_id: COMPUTE,
            cuda_event_id: u32::MAX,
        }));
        if self.sample.memory {
            self.step_memory(begin_ns, end_ns);
        }
    }

    /// `kinds`: of the copy, its source and its destination.
    fn copy(&mut self, start_ns: u64, bytes: u64, stream_id: u32, kinds: (u8, u8, u8)) {
        let bytes_per_us = if kinds.0 == 8 { 1_500_000 } else { 50_000 };
        let duration_ns = self.random.around(1_200 + bytes * 1000 / bytes_per_us);
        let correlation_id = self.next_correlation();
        self.events.push(Event::Memcpy(MemcpyEvent {
            start_ns,
            end_ns: start_ns + duration_ns,
            bytes,
            correlation_id,
            device_id: self.rank,
            context_id: 1,
            stream_id,
            src_device_id: self.rank,
            dst_device_id: self.rank,
            copy_kind: kinds.0,
            src_kind: kinds.1,
            dst_kind: kinds.2,
            flags: 1,
            ..MemcpyEvent::default()
        }));
    }

    /// Comes and goes with the step; now and then one block more.
    fn step_memory(&mut self, begin_ns: u64, end_ns: u64) {
        let blocks = STEP_BLOCKS + u64::from(self.steps % 97 == 13);
        for block in 0..blocks {
            self.memory(begin_ns + block * 10_000, 1, LASTING_BLOCKS + block, 16 * BLOCK_BYTES);
        }
        for block in 0..blocks {
            self.memory(end_ns - 100_000 + block * 10_000, 2, LASTING_BLOCKS + block, 16 * BLOCK_BYTES);
        }
    }

    fn memory(&mut self, time_ns: u64, operation: u8, block: u64, bytes: u64) {
        let correlation_id = self.next_correlation();
        self.events.push(Event::Memory(MemoryEvent {
            time_ns,
            correlation_id,
            address: POOL_ADDRESS + block * 64 * BLOCK_BYTES,
            bytes,
            device_id: self.rank,
            context_id: 1,
            operation,
            memory_kind: 3,
            ..MemoryEvent::default()
        }));
    }

    fn marker(&mut self, time_ns: u64, flags: u32, name_id: u32) {
        let marker_id = self.steps as u32 + 1;
        let marker = MarkerEvent { time_ns, marker_id, flags, name_id, domain_id: NO_NAME, thread_id: 77 };
        self.events.push(Event::Marker(marker));
    }

    fn next_correlation(&mut self) -> u64 {
        self.correlation_id += 1;
        self.correlation_id
    }
}

fn flawed(kernel: KernelEvent, which: u64) -> KernelEvent {
    match which % 3 {
        0 => KernelEvent { start_ns: 0, end_ns: 0, ..kernel },
        1 => KernelEvent { end_ns: 0, ..kernel },
        _ => KernelEvent { end_ns: kernel.start_ns - 1_000, ..kernel },
    }
}
