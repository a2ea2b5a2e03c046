//! What the driver keeps: contexts, streams, modules and functions. Reached only under the driver lock.

use std::ffi::CStr;
use std::sync::Arc;

use crate::api_context::Context;
use crate::elf::FunctionInfo;
use crate::graphs::Graphs;
use crate::hook_abi::{FIRST_OTHER_DEFAULT_STREAM, default_stream_id};
use crate::load_area::LoadArea;
use crate::memory::Memory;
use crate::names::Names;
use crate::slab::Slab;
use crate::timeline::{self, SUBMIT_NS};

/// The first stream that an application creates; NVIDIA's driver keeps the ones between 7 and this for itself.
const FIRST_CREATED_STREAM: u32 = 13;

pub struct State {
    contexts: Vec<Timelines>,
    /// Indexed by id - 13.
    streams: Vec<Option<Stream>>,
    pub modules: Slab<Module>,
    pub functions: Slab<Function>,
    pub names: Names,
    pub load_area: LoadArea,
    pub memory: Memory,
    pub graphs: Graphs,
    pub events: Slab<Event>,
    devices: [Device; DEVICES],
    next_module_id: u32,
    events_made: u32,
    events_recorded: u64,
    pub launches: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            contexts: Vec::new(),
            streams: Vec::new(),
            modules: Slab::new(0x30),
            functions: Slab::new(0x31),
            names: Names::default(),
            load_area: LoadArea::default(),
            memory: Memory::default(),
            graphs: Graphs::default(),
            events: Slab::new(0x32),
            devices: [Device::default(); DEVICES],
            next_module_id: 1,
            events_made: 0,
            events_recorded: 0,
            launches: 0,
        }
    }
}

/// What belongs to a device; there are at most so many.
const DEVICES: usize = 8;

#[derive(Clone, Copy, Default)]
struct Device {
    primary_context: Option<u32>,
    /// Address of the pool that `cuMemAllocAsync` takes from; 0 before its first use.
    default_pool: u64,
}

/// A context: its device's number and its default stream.
struct Timelines {
    device: u32,
    alive: bool,
    default_stream: Stream,
}

/// An event, and the end of what it was last recorded after.
#[derive(Clone, Copy)]
pub struct Event {
    pub id: u32,
    pub context: Context,
    pub done_ns: u64,
    /// The number of its last recording; 0 before the first.
    pub recorded: u64,
}

/// A stream's timeline.
#[derive(Clone, Copy)]
pub struct Stream {
    context: u32,
    busy_until_ns: u64,
}

impl Stream {
    /// Later work begins after this moment.
    pub fn wait_for(&mut self, moment_ns: u64) {
        self.busy_until_ns = self.busy_until_ns.max(moment_ns);
    }

    /// Puts `duration_ns` of work on the stream: when it starts and ends.
    pub fn put(&mut self, duration_ns: u64) -> (u64, u64) {
        self.busy_until_ns = self.busy_until_ns.max(timeline::now_ns() + SUBMIT_NS);
        self.follow(duration_ns)
    }

    /// The same right behind what the stream was given before, as in a graph.
    pub fn follow(&mut self, duration_ns: u64) -> (u64, u64) {
        let start = self.busy_until_ns;
        self.busy_until_ns = start + duration_ns;
        (start, self.busy_until_ns)
    }
}

pub struct Module {
    pub id: u32,
    pub context: Context,
    pub image: Arc<[u8]>,
    pub infos: Vec<FunctionInfo>,
    pub functions: Vec<usize>,
    pub loaded: bool,
}

#[derive(Clone, Copy)]
pub struct Function {
    pub module: usize,
    pub name: &'static CStr,
    pub duration_ns: u64,
    pub registers: u32,
    pub static_shared_bytes: u32,
    pub local_bytes: u32,
}

impl State {
    /// A new context's id, from 1.
    pub fn create_context(&mut self, device: u32) -> u32 {
        let id = self.contexts.len() as u32 + 1;
        let default_stream = Stream { context: id, busy_until_ns: 0 };
        self.contexts.push(Timelines { device, alive: true, default_stream });
        id
    }

    pub fn primary_context(&self, device: u32) -> Option<u32> {
        self.devices[device as usize].primary_context
    }

    pub fn set_primary_context(&mut self, device: u32, context: Option<u32>) {
        self.devices[device as usize].primary_context = context;
    }

    /// The address of the device's default pool.
    pub fn default_pool(&mut self, device: u32) -> u64 {
        let device = &mut self.devices[device as usize];
        if device.default_pool == 0 {
            device.default_pool = self.memory.create_pool().address;
        }
        device.default_pool
    }

    /// A new event's handle.
    pub fn create_event(&mut self, context: Context) -> usize {
        self.events_made += 1;
        self.events.insert(Event { id: self.events_made, context, done_ns: 0, recorded: 0 })
    }

    pub fn record_event(&mut self, handle: usize, done_ns: u64) -> Option<()> {
        let event = self.events.get_mut(handle)?;
        self.events_recorded += 1;
        (event.done_ns, event.recorded) = (done_ns, self.events_recorded);
        Some(())
    }

    pub fn context_alive(&self, id: u32) -> bool {
        self.contexts.get((id as usize).wrapping_sub(1)).is_some_and(|c| c.alive)
    }

    /// False if there was none of that id.
    pub fn destroy_context(&mut self, id: u32) -> bool {
        let was = self.context_alive(id);
        if was {
            let context = &mut self.contexts[id as usize - 1];
            context.alive = false;
            let device = &mut self.devices[context.device as usize];
            device.primary_context = device.primary_context.filter(|&primary| primary != id);
            self.streams.iter_mut().filter(|s| s.is_some_and(|s| s.context == id)).for_each(|s| *s = None);
        }
        was
    }

    pub fn create_stream(&mut self, context: u32) -> u32 {
        self.streams.push(Some(Stream { context, busy_until_ns: 0 }));
        FIRST_CREATED_STREAM + self.streams.len() as u32 - 1
    }

    pub fn destroy_stream(&mut self, id: u32) -> bool {
        let index = (id as usize).wrapping_sub(FIRST_CREATED_STREAM as usize);
        self.streams.get_mut(index).and_then(Option::take).is_some()
    }

    pub fn stream_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let default_of =
            |id: u32| if id == default_stream_id(1) { 1 } else { id.wrapping_sub(FIRST_OTHER_DEFAULT_STREAM) };
        if !(FIRST_CREATED_STREAM..FIRST_OTHER_DEFAULT_STREAM).contains(&id) {
            let context = self.contexts.get_mut((default_of(id) as usize).wrapping_sub(1))?;
            return context.alive.then_some(&mut context.default_stream);
        }
        self.streams.get_mut((id - FIRST_CREATED_STREAM) as usize)?.as_mut()
    }

    /// When a stream will have done all that it was given.
    pub fn stream_busy_until(&mut self, id: u32) -> Option<u64> {
        Some(self.stream_mut(id)?.busy_until_ns)
    }

    /// When all streams of a context will have done all that they were given.
    pub fn context_busy_until(&self, context: u32) -> u64 {
        let default =
            self.contexts.get((context as usize).wrapping_sub(1)).map_or(0, |c| c.default_stream.busy_until_ns);
        let created = self.streams.iter().flatten().filter(|s| s.context == context);
        created.map(|s| s.busy_until_ns).fold(default, u64::max)
    }

    pub fn next_module_id(&mut self) -> u32 {
        self.next_module_id += 1;
        self.next_module_id - 1
    }
}
