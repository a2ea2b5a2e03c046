//! What the driver keeps: contexts, streams, modules and functions. Reached only under the driver lock.

use std::ffi::CStr;
use std::sync::Arc;

use crate::elf::FunctionInfo;
use crate::hook_abi::{FIRST_OTHER_DEFAULT_STREAM, default_stream_id};
use crate::load_area::LoadArea;
use crate::names::Names;
use crate::slab::Slab;
use crate::timeline::{self, SUBMIT_NS};

/// The first stream that an application creates; NVIDIA's driver keeps the ones between 7 and this for itself.
const FIRST_CREATED_STREAM: u32 = 13;

pub struct State {
    contexts: Vec<Context>,
    /// Indexed by id - 13.
    streams: Vec<Option<Stream>>,
    pub modules: Slab<Module>,
    pub functions: Slab<Function>,
    pub names: Names,
    pub load_area: LoadArea,
    pub primary_context: Option<u32>,
    next_module_id: u32,
    next_device_bytes: u64,
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
            primary_context: None,
            next_module_id: 1,
            next_device_bytes: 0x7f00_0000_0000,
            launches: 0,
        }
    }
}

struct Context {
    alive: bool,
    default_stream: Stream,
}

/// A stream's timeline.
#[derive(Clone, Copy)]
pub struct Stream {
    context: u32,
    busy_until_ns: u64,
}

impl Stream {
    /// Puts `duration_ns` of work on the stream: when it starts and ends.
    pub fn put(&mut self, duration_ns: u64) -> (u64, u64) {
        let start = self.busy_until_ns.max(timeline::now_ns() + SUBMIT_NS);
        self.busy_until_ns = start + duration_ns;
        (start, self.busy_until_ns)
    }
}

pub struct Module {
    pub id: u32,
    pub context: u32,
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
    pub fn create_context(&mut self) -> u32 {
        let id = self.contexts.len() as u32 + 1;
        self.contexts.push(Context { alive: true, default_stream: Stream { context: id, busy_until_ns: 0 } });
        id
    }

    pub fn context_alive(&self, id: u32) -> bool {
        self.contexts.get((id as usize).wrapping_sub(1)).is_some_and(|c| c.alive)
    }

    /// False if there was none of that id.
    pub fn destroy_context(&mut self, id: u32) -> bool {
        let was = self.context_alive(id);
        if was {
            self.contexts[id as usize - 1].alive = false;
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

    /// A device address; addresses are never used again, nothing lies behind them.
    pub fn allocate(&mut self, bytes: u64) -> u64 {
        let address = self.next_device_bytes;
        self.next_device_bytes += bytes.next_multiple_of(512);
        address
    }
}
