//! One event as Kineto writes it.

use super::json::{Micros, Object};
use crate::readable::{Readable, UNNAMED};
use crate::times::{Span, Wall};
use crate::words;
use gputap_recording::{Names, Process};
use gputap_ringbuf::event::{ApiEvent, Event, KernelEvent, MemcpyEvent, MemoryEvent, MemsetEvent};
use std::borrow::Cow;

/// Where a time lies from what all files of an export count from.
#[derive(Clone, Copy, Debug)]
pub struct Zero {
    pub wall: Wall,
    pub base_ns: i64,
}

impl Zero {
    fn micros(self, time_ns: u64) -> Micros {
        // Wall times are at most `i64::MAX`.
        Micros((self.wall.at(time_ns) as i64).saturating_sub(self.base_ns))
    }
}

/// Writes events of one process as lines, without the comma between them.
pub struct Lines<'a> {
    process: &'a Process,
    zero: Zero,
    readable: Readable,
    pub line: String,
}

impl<'a> Lines<'a> {
    pub fn new(process: &'a Process, zero: Zero) -> Lines<'a> {
        Lines { process, zero, readable: Readable::default(), line: String::new() }
    }

    /// False for what has no place in the format: markers, which wait for their ends, and the state of pools.
    pub fn write(&mut self, span: Span, event: &Event, names: &Names) -> bool {
        self.line.clear();
        match event {
            Event::Kernel(kernel) => self.kernel(span, kernel, names),
            Event::Memcpy(copy) => self.copy(span, copy),
            Event::Memset(memset) => self.memset(span, memset),
            Event::Graph(graph) => {
                let name = format!("graph {}", graph.graph_id);
                let place = (graph.device_id, graph.context_id, graph.stream_id);
                self.gpu(span, "kernel", &name, place, graph.correlation_id, |args| {
                    args.number("graph id", graph.graph_id);
                });
            }
            Event::Sync(sync) => {
                let stream = if sync.stream_id == u32::MAX { -1 } else { i64::from(sync.stream_id) };
                self.complete(span, "cuda_sync", words::sync(sync.sync_kind), (-1, stream), |args| {
                    args.text("cuda_sync_kind", words::sync(sync.sync_kind)).number("stream", stream);
                    args.number("correlation", sync.correlation_id).number("context", sync.context_id);
                });
            }
            Event::Overhead(overhead) => {
                let place = (-1, i64::from(overhead.thread_id));
                self.complete(span, "overhead", words::overhead(overhead.overhead_kind), place, |_| ());
            }
            Event::Runtime(call) => {
                self.call(span, call, "cuda_runtime", words::runtime(call.callback_id), "runtime call")
            }
            Event::Driver(call) => self.call(span, call, "cuda_driver", words::driver(call.callback_id), "driver call"),
            Event::Launch(launch) => {
                let name = called(words::driver(launch.callback_id), "driver call", launch.callback_id);
                let place = (i64::from(self.process.pid), i64::from(launch.thread_id));
                self.complete(span, "cuda_driver", &name, place, |args| {
                    args.number("cbid", launch.callback_id).number("correlation", launch.correlation_id);
                    args.text("duration", "not recorded");
                });
            }
            Event::Memory(memory) => self.memory(span, memory),
            Event::Marker(_) | Event::Pool(_) => return false,
        }
        true
    }

    /// A range of NVTX, or a mark, which is one without a length.
    pub fn range(&mut self, span: Span, name_id: u32, thread_id: u32, names: &Names) {
        self.line.clear();
        let name = names.index(name_id).map(|index| self.readable.of(index, names.name(index)));
        let place = (i64::from(self.process.pid), i64::from(thread_id));
        self.complete(span, "user_annotation", name.as_deref().unwrap_or(UNNAMED), place, |_| ());
    }

    /// Which calls led to which work, as an arrow: one end of it.
    pub fn flow(&mut self, begins: bool, time_ns: u64, id: u64, place: (i64, i64)) {
        self.line.clear();
        let mut event = Object::new(&mut self.line);
        event.text("ph", if begins { "s" } else { "f" }).number("id", id);
        event.number("pid", place.0).number("tid", place.1).number("ts", self.zero.micros(time_ns));
        event.text("cat", "ac2g").text("name", "ac2g");
        if !begins {
            event.text("bp", "e");
        }
        event.end();
    }

    fn kernel(&mut self, span: Span, kernel: &KernelEvent, names: &Names) {
        let name = names.index(kernel.name_id).map(|index| self.readable.of(index, names.name(index)));
        let name = name.as_deref().unwrap_or(UNNAMED);
        let place = (kernel.device_id, kernel.context_id, kernel.stream_id);
        self.gpu(span, "kernel", name, place, kernel.correlation_id, |args| {
            args.number("registers per thread", kernel.registers_per_thread);
            let shared = u64::from(kernel.static_shared_bytes) + u64::from(kernel.dynamic_shared_bytes);
            args.number("shared memory", shared);
            args.number("grid", Size(kernel.grid)).number("block", Size(kernel.block));
            args.number("graph id", kernel.graph_id).number("graph node id", kernel.graph_node_id);
        });
    }

    fn copy(&mut self, span: Span, copy: &MemcpyEvent) {
        let (from, to) = (words::memory(copy.src_kind), words::memory(copy.dst_kind));
        let name = format!("{} ({from} -> {to})", words::copy(copy.copy_kind));
        let place = (copy.device_id, copy.context_id, copy.stream_id);
        self.gpu(span, "gpu_memcpy", &name, place, copy.correlation_id, |args| {
            args.number("bytes", copy.bytes);
            bandwidth(args, copy.bytes, span);
            if copy.src_device_id != copy.dst_device_id {
                args.number("fromDevice", copy.src_device_id).number("toDevice", copy.dst_device_id);
            }
        });
    }

    fn memset(&mut self, span: Span, memset: &MemsetEvent) {
        let name = format!("Memset ({})", words::memory(memset.memory_kind));
        let place = (memset.device_id, memset.context_id, memset.stream_id);
        self.gpu(span, "gpu_memset", &name, place, memset.correlation_id, |args| {
            args.number("bytes", memset.bytes);
            bandwidth(args, memset.bytes, span);
        });
    }

    fn call(&mut self, span: Span, call: &ApiEvent, category: &str, known: Option<&'static str>, what: &str) {
        let name = called(known, what, call.callback_id);
        let place = (i64::from(self.process.pid), i64::from(call.thread_id));
        self.complete(span, category, &name, place, |args| {
            args.number("External id", call.correlation_id).number("cbid", call.callback_id);
            args.number("correlation", call.correlation_id).number("return value", call.return_value);
        });
    }

    fn memory(&mut self, span: Span, memory: &MemoryEvent) {
        const ALLOCATION: u8 = 1;
        let signed = if memory.operation == ALLOCATION { 1 } else { -1 } * i128::from(memory.bytes);
        let mut event = Object::new(&mut self.line);
        event.text("ph", "i").text("s", "t").text("name", "[memory]");
        event.number("pid", self.process.pid).number("tid", 0).number("ts", self.zero.micros(span.start_ns));
        event.object("args", |args| {
            args.number("Device Type", 1).number("Device Id", memory.device_id);
            args.number("Addr", memory.address).number("Bytes", signed);
        });
        event.end();
    }

    fn gpu(
        &mut self,
        span: Span,
        category: &str,
        name: &str,
        (device, context, stream): (u32, u32, u32),
        correlation_id: u64,
        more: impl FnOnce(&mut Object<'_>),
    ) {
        self.complete(span, category, name, (device.into(), stream.into()), |args| {
            args.number("External id", correlation_id).number("device", device);
            args.number("context", context).number("stream", stream).number("correlation", correlation_id);
            more(args);
        });
    }

    fn complete(
        &mut self,
        span: Span,
        category: &str,
        name: &str,
        (pid, tid): (i64, i64),
        args: impl FnOnce(&mut Object<'_>),
    ) {
        let start = self.zero.micros(span.start_ns);
        let duration = Micros(self.zero.micros(span.end_ns).0.saturating_sub(start.0));
        let mut event = Object::new(&mut self.line);
        event.text("ph", "X").text("cat", category).text("name", name).number("pid", pid).number("tid", tid);
        event.number("ts", start).number("dur", duration).object("args", args);
        event.end();
    }
}

fn called(known: Option<&'static str>, what: &str, number: u32) -> Cow<'static, str> {
    known.map_or_else(|| format!("{what} {number}").into(), Cow::Borrowed)
}

/// Where an event's arrow begins or ends; as its line says.
pub fn place(event: &Event, process: &Process) -> (i64, i64) {
    let (device, stream) = match event {
        Event::Kernel(kernel) => (kernel.device_id, kernel.stream_id),
        Event::Memcpy(copy) => (copy.device_id, copy.stream_id),
        Event::Memset(memset) => (memset.device_id, memset.stream_id),
        Event::Graph(graph) => (graph.device_id, graph.stream_id),
        Event::Runtime(call) | Event::Driver(call) => (process.pid, call.thread_id),
        Event::Launch(launch) => (process.pid, launch.thread_id),
        _ => (process.pid, 0),
    };
    (device.into(), stream.into())
}

fn bandwidth(args: &mut Object<'_>, bytes: u64, span: Span) {
    // Bytes per nanosecond are GB/s; JSON has no infinity.
    let length_ns = span.end_ns - span.start_ns;
    args.number("memory bandwidth (GB/s)", if length_ns == 0 { 0.0 } else { bytes as f64 / length_ns as f64 });
}

struct Size([u32; 3]);

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.0)
    }
}
