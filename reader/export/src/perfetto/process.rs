//! One process' events, drawn.

use super::counters::{Busy, Memory, Rate};
use super::sequence::{Detail, Text, Value};
use super::tracks::{Curve, Group, Mark, Tracks};
use crate::ExportError;
use crate::flows::Flows;
use crate::readable::UNNAMED;
use crate::times::Span;
use crate::words;
use gputap_recording::Names;
use gputap_ringbuf::event::{ApiEvent, Event, KernelEvent, MarkerEvent, MemcpyEvent, MemsetEvent, PoolEvent};
use std::collections::{BTreeMap, HashMap};

/// Ranges of NVTX that are open at a time; one that begins then is counted as without a place.
const OPEN_RANGES_MAX: usize = 1 << 16;
/// Pools of memory that are known at a time.
const POOLS_MAX: usize = 1 << 12;
const MARK: u32 = 1;
const RANGE_START: u32 = 2;
/// Of a pool's event.
const DESTROYED: u8 = 2;

/// Draws events in the order of their starts.
pub struct Drawing<'a> {
    pub tracks: Tracks<'a>,
    flows: Flows,
    busy: BTreeMap<u32, Busy>,
    copies: BTreeMap<u32, Rate>,
    memory: Memory,
    /// By address: the device, and the bytes in use.
    pools: HashMap<u64, (u32, u64)>,
    ranges: HashMap<u32, (Group, usize)>,
    points: Vec<(u64, f64)>,
    latest_ns: u64,
}

type Details<'e> = Vec<(&'static str, Detail<'e>)>;

impl<'a> Drawing<'a> {
    pub fn new(tracks: Tracks<'a>, flows: Flows) -> Drawing<'a> {
        Drawing {
            tracks,
            flows,
            busy: BTreeMap::new(),
            copies: BTreeMap::new(),
            memory: Memory::default(),
            pools: HashMap::new(),
            ranges: HashMap::new(),
            points: Vec::new(),
            latest_ns: 0,
        }
    }

    pub fn draw(&mut self, span: Span, event: &Event, names: &Names) -> Result<(), ExportError> {
        self.latest_ns = self.latest_ns.max(span.end_ns);
        match event {
            Event::Kernel(kernel) => self.kernel(span, event, kernel, names),
            Event::Memcpy(copy) => self.copy(span, event, copy),
            Event::Memset(memset) => self.memset(span, event, memset),
            Event::Graph(graph) => {
                let group =
                    Group::Stream { device: graph.device_id, context: graph.context_id, stream: graph.stream_id };
                let name = Text::Numbered("graph", graph.graph_id);
                self.busy(graph.device_id, span)?;
                self.work(group, span, event, "graph", name, &[number("correlation", graph.correlation_id)])
            }
            Event::Sync(sync) => {
                let mut details = vec![number("correlation", sync.correlation_id)];
                details.extend(given("stream", sync.stream_id).into_iter().chain(given("event", sync.cuda_event_id)));
                let group = Group::Waits { context: sync.context_id };
                self.slice(group, span, "sync", Text::Fixed(words::sync(sync.sync_kind)), &details)
            }
            Event::Overhead(overhead) => {
                let name = Text::Fixed(words::overhead(overhead.overhead_kind));
                self.slice(Group::Overhead { thread: overhead.thread_id }, span, "overhead", name, &[])
            }
            Event::Runtime(call) => {
                let name = called(words::runtime(call.callback_id), "runtime call", call.callback_id);
                self.call(span, event, call, "cuda_runtime", name)
            }
            Event::Driver(call) => {
                let name = called(words::driver(call.callback_id), "driver call", call.callback_id);
                self.call(span, event, call, "cuda_driver", name)
            }
            Event::Marker(marker) => self.marker(marker, names),
            Event::Launch(launch) => {
                let name = recorded(launch.name_id, names).unwrap_or(Text::Fixed("launch of a graph"));
                let details =
                    [number("correlation", launch.correlation_id), number("context", launch.context_id.into())];
                let flow = self.flows.take_call(event).map(|id| self.tracks.identity.flow(id));
                let mark = Mark { category: "launch", name, details: &details, flow, ends_flow: None };
                self.tracks.instant(Group::Launches { thread: launch.thread_id }, launch.time_ns, &mark).map(|_| ())
            }
            Event::Memory(memory) => match self.memory.changed(memory) {
                Some((device, bytes)) => self.count(device, Curve::Memory, memory.time_ns, bytes),
                None => Ok(()),
            },
            Event::Pool(pool) => self.pool(pool),
        }
    }

    /// Ends what is open.
    pub fn finish(&mut self) -> Result<(), ExportError> {
        for (device, mut busy) in std::mem::take(&mut self.busy) {
            busy.finish(&mut |at_ns, percent| self.points.push((at_ns, percent)));
            self.points(device, Curve::Busy)?;
        }
        for (device, mut copies) in std::mem::take(&mut self.copies) {
            copies.finish(&mut |at_ns, rate| self.points.push((at_ns, rate)));
            self.points(device, Curve::Copies)?;
        }
        self.tracks.finish(self.latest_ns)
    }

    fn kernel(&mut self, span: Span, event: &Event, kernel: &KernelEvent, names: &Names) -> Result<(), ExportError> {
        self.busy(kernel.device_id, span)?;
        let details = [
            ("grid", Detail::Text(Text::Size(kernel.grid))),
            ("block", Detail::Text(Text::Size(kernel.block))),
            number("registers per thread", kernel.registers_per_thread.into()),
            number("correlation", kernel.correlation_id),
            // What is 0 for most kernels comes last, and is left out.
            number("static shared bytes", kernel.static_shared_bytes.into()),
            number("dynamic shared bytes", kernel.dynamic_shared_bytes.into()),
            number("local bytes per thread", kernel.local_bytes_per_thread.into()),
            number("graph", kernel.graph_id.into()),
            number("graph node", kernel.graph_node_id),
        ];
        let mut kept = details;
        let mut count = 4;
        for detail in &details[4..] {
            if !matches!(detail.1, Detail::Number(0)) {
                kept[count] = *detail;
                count += 1;
            }
        }
        let group = Group::Stream { device: kernel.device_id, context: kernel.context_id, stream: kernel.stream_id };
        let name = recorded(kernel.name_id, names).unwrap_or(Text::Fixed(UNNAMED));
        self.work(group, span, event, "kernel", name, &kept[..count])
    }

    fn copy(&mut self, span: Span, event: &Event, copy: &MemcpyEvent) -> Result<(), ExportError> {
        let points = &mut self.points;
        let rate = self.copies.entry(copy.device_id).or_default();
        rate.add(span.start_ns, span.end_ns, copy.bytes, &mut |at_ns, rate| points.push((at_ns, rate)));
        self.points(copy.device_id, Curve::Copies)?;
        let mut details: Details<'_> = vec![
            number("bytes", copy.bytes),
            ("from", Detail::Text(Text::Fixed(words::memory(copy.src_kind)))),
            ("to", Detail::Text(Text::Fixed(words::memory(copy.dst_kind)))),
            number("correlation", copy.correlation_id),
            asynchronous(copy.flags),
        ];
        if copy.src_device_id != copy.dst_device_id {
            details.push(number("from device", copy.src_device_id.into()));
            details.push(number("to device", copy.dst_device_id.into()));
        }
        details.extend(node(copy.graph_id, copy.graph_node_id).into_iter().flatten());
        let group = Group::Stream { device: copy.device_id, context: copy.context_id, stream: copy.stream_id };
        self.work(group, span, event, "gpu_memcpy", Text::Fixed(words::copy(copy.copy_kind)), &details)
    }

    fn memset(&mut self, span: Span, event: &Event, memset: &MemsetEvent) -> Result<(), ExportError> {
        let mut details: Details<'_> = vec![
            number("bytes", memset.bytes),
            number("value", memset.value.into()),
            ("memory", Detail::Text(Text::Fixed(words::memory(memset.memory_kind)))),
            number("correlation", memset.correlation_id),
            asynchronous(memset.flags),
        ];
        details.extend(node(memset.graph_id, memset.graph_node_id).into_iter().flatten());
        let group = Group::Stream { device: memset.device_id, context: memset.context_id, stream: memset.stream_id };
        self.work(group, span, event, "gpu_memset", Text::Fixed("Memset"), &details)
    }

    fn call(
        &mut self,
        span: Span,
        event: &Event,
        call: &ApiEvent,
        category: &'static str,
        name: Text<'_>,
    ) -> Result<(), ExportError> {
        let details = [number("correlation", call.correlation_id), number("returned", call.return_value.into())];
        let flow = self.flows.take_call(event).map(|id| self.tracks.identity.flow(id));
        let mark = Mark { category, name, details: &details, flow, ends_flow: None };
        self.tracks.slice(Group::Calls { thread: call.thread_id }, span, &mark).map(|_| ())
    }

    /// Where a range ends is not known when it begins, and ranges of a thread may cross: each is on a lane of its own until
    /// its end comes, so that nested ones lie below each other as on a stack.
    fn marker(&mut self, marker: &MarkerEvent, names: &Names) -> Result<(), ExportError> {
        let group = Group::Nvtx { thread: marker.thread_id };
        let name = recorded(marker.name_id, names).unwrap_or(Text::Fixed(UNNAMED));
        let domain = recorded(marker.domain_id, names).map(|domain| ("domain", Detail::Text(domain)));
        let details: Details<'_> = domain.into_iter().collect();
        let mark = Mark { category: "nvtx", name, details: &details, flow: None, ends_flow: None };
        match marker.flags {
            MARK => self.tracks.instant(group, marker.time_ns, &mark).map(|_| ()),
            RANGE_START if self.ranges.len() >= OPEN_RANGES_MAX => {
                self.tracks.without_place += 1;
                Ok(())
            }
            RANGE_START => {
                let span = Span { start_ns: marker.time_ns, end_ns: u64::MAX };
                if let Some(lane) = self.tracks.slice(group, span, &mark)?
                    && let Some((group, lane)) = self.ranges.insert(marker.marker_id, (group, lane))
                {
                    // The end of an earlier range of this number was lost.
                    self.tracks.end(group, lane, marker.time_ns)?;
                }
                Ok(())
            }
            _ => match self.ranges.remove(&marker.marker_id) {
                Some((group, lane)) => self.tracks.end(group, lane, marker.time_ns),
                None => Ok(()),
            },
        }
    }

    fn pool(&mut self, pool: &PoolEvent) -> Result<(), ExportError> {
        if pool.operation == DESTROYED {
            self.pools.remove(&pool.address);
        } else if self.pools.len() < POOLS_MAX || self.pools.contains_key(&pool.address) {
            self.pools.insert(pool.address, (pool.device_id, pool.used_bytes));
        }
        let used = self.pools.values().filter(|(device, _)| *device == pool.device_id).map(|(_, used)| *used);
        let used_bytes = used.fold(0, u64::saturating_add);
        self.count(pool.device_id, Curve::Pools, pool.time_ns, used_bytes)
    }

    fn work(
        &mut self,
        group: Group,
        span: Span,
        event: &Event,
        category: &'static str,
        name: Text<'_>,
        details: &[(&'static str, Detail<'_>)],
    ) -> Result<(), ExportError> {
        let ends_flow = self.flows.take_work(event).map(|id| self.tracks.identity.flow(id));
        let mark = Mark { category, name, details, flow: None, ends_flow };
        self.tracks.slice(group, span, &mark).map(|_| ())
    }

    fn slice(
        &mut self,
        group: Group,
        span: Span,
        category: &'static str,
        name: Text<'_>,
        details: &[(&'static str, Detail<'_>)],
    ) -> Result<(), ExportError> {
        let mark = Mark { category, name, details, flow: None, ends_flow: None };
        self.tracks.slice(group, span, &mark).map(|_| ())
    }

    fn busy(&mut self, device: u32, span: Span) -> Result<(), ExportError> {
        let points = &mut self.points;
        let busy = self.busy.entry(device).or_default();
        busy.add(span.start_ns, span.end_ns, &mut |at_ns, percent| points.push((at_ns, percent)));
        self.points(device, Curve::Busy)
    }

    fn points(&mut self, device: u32, curve: Curve) -> Result<(), ExportError> {
        let tracks = &mut self.tracks;
        self.points.drain(..).try_for_each(|(at_ns, value)| tracks.count(device, curve, at_ns, Value::Part(value)))
    }

    fn count(&mut self, device: u32, curve: Curve, time_ns: u64, bytes: u64) -> Result<(), ExportError> {
        self.tracks.count(device, curve, time_ns, Value::Whole(i64::try_from(bytes).unwrap_or(i64::MAX)))
    }
}

fn recorded(id: u32, names: &Names) -> Option<Text<'_>> {
    names.index(id).map(|index| Text::Recorded(index, names.name(index)))
}

fn called(known: Option<&'static str>, what: &'static str, number: u32) -> Text<'static> {
    known.map_or(Text::Numbered(what, number), Text::Fixed)
}

fn number(key: &'static str, number: u64) -> (&'static str, Detail<'static>) {
    (key, Detail::Number(number))
}

/// CUPTI has `u32::MAX` for none.
fn given(key: &'static str, id: u32) -> Option<(&'static str, Detail<'static>)> {
    (id != u32::MAX).then(|| number(key, id.into()))
}

fn asynchronous(flags: u8) -> (&'static str, Detail<'static>) {
    number("asynchronous", u64::from(flags & 1))
}

fn node(graph_id: u32, graph_node_id: u64) -> [Option<(&'static str, Detail<'static>)>; 2] {
    let some = |key, id: u64| (id != 0).then(|| number(key, id));
    [some("graph", graph_id.into()), some("graph node", graph_node_id)]
}
