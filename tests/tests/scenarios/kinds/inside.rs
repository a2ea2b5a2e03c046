//! In the child process: the application, which obeys words and counts what it does.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io::BufRead;

use gputap_tests::is_child;

use super::{marks, shown};
use crate::app::image;
use crate::cuda::{Cuda, Handle, cubin};
use crate::cupti::Cupti;

pub const NAME: &str = "kinds::inside::application";
/// Before each answer.
pub const ANSWER: &str = "= ";
/// Before each record that CUPTI showed the tap.
pub const SHOWN: &str = "shown ";

const NULL: Handle = std::ptr::null_mut();

/// In the child: the application. Nothing where the tests are run.
#[test]
fn application() {
    if !is_child(NAME) {
        return;
    }
    // The test runner has begun a line.
    println!();
    let mut inside = Inside {
        cuda: Cuda::load(),
        primary: NULL,
        peer: NULL,
        functions: Vec::new(),
        stream: NULL,
        subscriber: None,
        tally: BTreeMap::new(),
        marks_are_on: false,
    };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answer = inside.obey(&line);
        println!("{ANSWER}{answer}");
    }
}

struct Inside {
    cuda: Cuda,
    primary: Handle,
    peer: Handle,
    functions: Vec<Handle>,
    /// Where kernels are launched.
    stream: Handle,
    subscriber: Option<Handle>,
    tally: BTreeMap<&'static str, u64>,
    marks_are_on: bool,
}

/// For threads of the application: a driver and its handles may be used from any.
struct Shared(*const Cuda, Handle, Handle);
// SAFETY: the driver's functions may be called from any thread, and handles are numbers.
unsafe impl Send for Shared {}

impl Inside {
    fn obey(&mut self, line: &str) -> String {
        let (word, rest) = line.split_once(' ').unwrap_or((line, "0"));
        let number: i64 = rest.parse().unwrap_or(0);
        let count = number.unsigned_abs();
        match word {
            "init" => {
                self.primary = self.cuda.start();
                self.peer = self.cuda.primary_context(1);
            }
            "load" => self.load(count),
            "launch" => {
                self.launch(count);
                self.sync_stream();
            }
            "long" => self.long(count),
            "queue" => self.launch(count),
            "variants" => self.variants(),
            "graph" => self.graph(count),
            "copies" => self.copies(count),
            "sets" => self.sets(count),
            "peers" => self.peers(count),
            "waits" => self.waits(),
            "memory" => self.memory(),
            "pools" => self.pools(),
            "marks" => self.marks(),
            "mark" => marks::mark(rest),
            "threads" => self.threads(count),
            "contexts" => self.contexts(),
            "all" => self.all(),
            // Work on it waits for nothing that was there before.
            "stream" => self.stream = self.cuda.stream(),
            "tally" => return self.told(),
            "thread" => return thread_id().to_string(),
            "counters" => return counters(),
            "shown" => shown::take().iter().for_each(|told| println!("{SHOWN}{}", told.line())),
            "watched" => return preloaded::<extern "C" fn() -> u64>(rest)().to_string(),
            "set-clock" => preloaded::<extern "C" fn(i64)>("wall_clock_step")(number * 1_000_000),
            "subscribe" => match Cupti::load().subscribe() {
                Ok(subscriber) => self.subscriber = Some(subscriber),
                Err(code) => return code.to_string(),
            },
            "release" => {
                let cupti = Cupti::load();
                cupti.unsubscribe(self.subscriber.take().expect("subscribed"));
                return cupti.finalize().to_string();
            }
            "exit" => std::process::exit(0),
            other => panic!("{other:?} is not a command"),
        }
        "ok".into()
    }

    fn did(&mut self, what: &'static str, count: u64) {
        *self.tally.entry(what).or_default() += count;
    }

    fn told(&mut self) -> String {
        let tally = std::mem::take(&mut self.tally);
        tally.iter().map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
    }

    /// Loads a module by launching its kernel once.
    fn load(&mut self, seed: u64) {
        let (image, name) = image(seed);
        let module = self.cuda.load_module(&image).expect("a cubin");
        self.functions.push(self.cuda.function(module, &name).expect("its kernel"));
        self.launch(1);
        self.sync_stream();
    }

    /// Begins kernels that each take 20 s, and waits for none.
    fn long(&mut self, count: u64) {
        let module = self.cuda.load_module(&cubin("long", 20_000_000_000)).expect("a cubin");
        let function = self.cuda.function(module, "long").expect("its kernel");
        (0..count).for_each(|_| assert_eq!(self.cuda.launch(function, self.cuda.stream()), 0));
    }

    fn last(&self) -> Handle {
        *self.functions.last().expect("loaded")
    }

    fn launch(&mut self, count: u64) {
        let function = self.last();
        (0..count).for_each(|_| assert_eq!(self.cuda.launch(function, self.stream), 0));
        self.did("kernel", count);
    }

    fn sync(&mut self) {
        self.cuda.synchronize();
        self.did("sync", 1);
    }

    fn sync_stream(&mut self) {
        assert_eq!(self.cuda.synchronize_stream(self.stream), 0);
        self.did("sync", 1);
    }

    /// A launch by each function that launches.
    fn variants(&mut self) {
        let function = self.last();
        assert_eq!(self.cuda.launch(function, self.stream), 0);
        assert_eq!(self.cuda.launch_cooperative(function), 0);
        assert_eq!(self.cuda.launch_ex(function), 0);
        assert_eq!(self.cuda.runtime_launch(function), 0);
        self.did("kernel", 4);
        self.did("runtime", 1);
        self.sync();
    }

    /// Launches a graph of all functions so many times.
    fn graph(&mut self, count: u64) {
        let (graph, exec) = self.cuda.graph(&self.functions);
        (0..count).for_each(|_| assert_eq!(self.cuda.launch_graph(exec, self.stream), 0));
        self.did("graph", count);
        self.did("node", count * self.functions.len() as u64);
        self.sync();
        self.cuda.destroy_graph(graph, exec);
    }

    fn copies(&mut self, count: u64) {
        static BATCH: [u8; 1000] = [0; 1000];
        (0..count).for_each(|n| assert_eq!(self.cuda.copy_to_device(4096, &BATCH[n as usize..], self.stream), 0));
        self.did("memcpy", count);
    }

    fn sets(&mut self, count: u64) {
        (0..count).for_each(|n| assert_eq!(self.cuda.clear(4096, n as u8, 64 + n as usize, self.stream), 0));
        self.did("memset", count);
    }

    /// Copies between the two devices, to and fro.
    fn peers(&mut self, count: u64) {
        for n in 0..count {
            let (to, from) = if n % 2 == 0 { (self.peer, self.primary) } else { (self.primary, self.peer) };
            assert_eq!(self.cuda.copy_to_peer(to, from, 100 + n as usize), 0);
        }
        self.did("memcpy", count);
        self.did("peer", count);
    }

    /// One wait of each sort.
    fn waits(&mut self) {
        let (other, event) = (self.cuda.stream(), self.cuda.event());
        assert_eq!(self.cuda.record_event(event, self.stream), 0);
        assert_eq!(self.cuda.wait_for_event(other, event), 0);
        assert_eq!(self.cuda.synchronize_event(event), 0);
        self.did("sync", 2);
        self.sync_stream();
        self.sync();
    }

    fn memory(&mut self) {
        let plain = self.cuda.allocate();
        let pooled = self.cuda.allocate_async(1000, self.stream);
        assert_eq!(self.cuda.free(plain), 0);
        assert_eq!(self.cuda.free_async(pooled, self.stream), 0);
        self.did("memory", 4);
    }

    fn pools(&mut self) {
        let pool = self.cuda.create_pool();
        let memory = self.cuda.allocate_from_pool(3 << 20, pool, self.stream);
        assert_eq!(self.cuda.free_async(memory, self.stream), 0);
        assert_eq!(self.cuda.trim_pool(pool, 1 << 20), 0);
        assert_eq!(self.cuda.destroy_pool(pool), 0);
        self.did("memory", 2);
        self.did("pool", 3);
    }

    /// Ranges that nest, a mark, a range that ends elsewhere, and one in a domain.
    fn marks(&mut self) {
        if !std::mem::replace(&mut self.marks_are_on, true) {
            self.did("nvtx-on", marks::initialize() as u64);
        }
        marks::push("step");
        marks::push("forward");
        marks::mark("here");
        marks::pop();
        let id = marks::start("copying");
        marks::pop();
        marks::end(id);
        marks::range_in("NCCL", "all-reduce");
        self.did("nvtx", 9);
    }

    /// Threads that launch, a dozen times each.
    fn threads(&mut self, count: u64) {
        const LAUNCHES: u64 = 12;
        let threads: Vec<_> = (0..count)
            .map(|_| {
                let shared = Shared(&raw const self.cuda, self.primary, self.last());
                std::thread::spawn(move || {
                    let Shared(cuda, context, function) = { shared };
                    // SAFETY: the driver outlives the threads, which are joined below.
                    let cuda = unsafe { &*cuda };
                    assert_eq!(cuda.set_current(context), 0);
                    (0..LAUNCHES).for_each(|_| assert_eq!(cuda.launch(function, NULL), 0));
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        self.did("kernel", count * LAUNCHES);
        self.sync();
    }

    /// A context that comes and goes, with work in it.
    fn contexts(&mut self) {
        let context = self.cuda.create_context(1);
        assert_eq!(self.cuda.clear(0, 7, 64, NULL), 0);
        self.did("memset", 1);
        self.sync();
        assert_eq!(self.cuda.destroy_context(context), 0);
        assert_eq!(self.cuda.set_current(self.primary), 0);
    }

    /// Something of everything; nothing is left under way.
    fn all(&mut self) {
        if self.functions.is_empty() {
            self.load(1);
            self.load(2);
        }
        self.marks();
        self.launch(5);
        self.variants();
        self.graph(2);
        self.copies(3);
        self.sets(4);
        self.peers(2);
        self.waits();
        self.memory();
        self.pools();
        self.contexts();
        self.threads(3);
        self.sync();
    }
}

/// The kernel's id of the calling thread.
fn thread_id() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::gettid() }
}

/// What [`super::actor::Actor::counters`] reads.
fn counters() -> String {
    let c = Cupti::load().counters();
    [
        c.buffers_requested,
        c.buffers_completed,
        c.records_written,
        c.records_delivered,
        c.records_unfinished,
        c.records_dropped,
        c.callbacks,
        c.flushes,
        c.buffers_kept,
        c.records_kept,
        c.completers,
    ]
    .map(|count| count.to_string())
    .join(" ")
}

/// A function of a preloaded library.
fn preloaded<F: Copy>(name: &str) -> F {
    const { assert!(size_of::<F>() == size_of::<Handle>()) };
    let name = CString::new(name).expect("no NUL");
    // SAFETY: a NUL-terminated name.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    assert!(!symbol.is_null(), "{name:?} is not preloaded");
    // SAFETY: the callers name the type that the preloaded library exports under this name.
    unsafe { std::mem::transmute_copy(&symbol) }
}
