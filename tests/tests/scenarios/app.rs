//! An application in a child process that does what it is told, a line at a time: the calls that a simulated job does
//! not make (forking, leaving through `_exit`, being another CUPTI client), at the moment that a test wants them.

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use gputap_reader::session::Session;
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::Found;
use gputap_sim_job::{CubinKernel, generate_cubin};
use gputap_tests::{Watched, child_command, is_child};

use crate::cuda::{Cuda, Handle, cubin};
use crate::cupti::Cupti;
use crate::job::tap;
pub use crate::life::inside::driver::Launch;
use crate::reading::{self, LIMIT};

const NAME: &str = "app::app";
/// Before each answer.
pub const ANSWER: &str = "= ";
/// The smallest of images.
const SEED_OF_CHILDREN: u64 = 8_000;

/// The application, as its test sees it.
pub struct App {
    child: Watched,
}

/// What the fake CUPTI of an application has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Did {
    pub records_written: u64,
    pub records_delivered: u64,
    pub flushes: u64,
    pub buffers_requested: u64,
}

/// The cubin that `load SEED` loads, and the name of its kernel.
pub fn image(seed: u64) -> (Vec<u8>, String) {
    // Long ones among them, as C++ templates make them.
    let name = format!("_Z{}N{}kernel_{seed}EPfi", seed % 7, "x".repeat((seed as usize % 5) * 300));
    let kernel = CubinKernel { name: name.clone(), duration_ns: 2_000, registers: 42, static_shared_bytes: 0 };
    (generate_cubin(seed, &[kernel], 4096 << (seed % 8)), name)
}

impl App {
    /// Starts the application and its driver.
    pub fn start(env: &[(&str, &str)]) -> Self {
        Self::start_under("gputap_shim", env)
    }

    /// As [`App::start`], under another injection library.
    pub fn start_under(shim: &str, env: &[(&str, &str)]) -> Self {
        let mut app = Self::start_without_driver(shim, env);
        app.ask("init");
        app
    }

    pub fn start_without_driver(shim: &str, env: &[(&str, &str)]) -> Self {
        Self::start_prepared(shim, env, |_| {})
    }

    /// As [`App::start_without_driver`], the command as `prepare` leaves it.
    pub fn start_prepared(shim: &str, env: &[(&str, &str)], prepare: impl FnOnce(&mut Command)) -> Self {
        let mut command = child_command(NAME);
        tap(&mut command, shim, env);
        heed_signals(&mut command);
        prepare(&mut command);
        Self { child: Watched::spawn(&mut command).expect("the application starts") }
    }

    pub fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub fn found(&self) -> Found {
        reading::wait_for_tap(self.pid())
    }

    pub fn attached(&self) -> Attached {
        Attached::open(&self.found()).expect("a whole segment")
    }

    pub fn session(&self, kinds: u64) -> Session {
        reading::session(&self.found(), kinds)
    }

    /// Tells the application something, without waiting.
    pub fn tell(&mut self, words: &str) {
        let stdin = self.child.stdin.as_mut().expect("open");
        writeln!(stdin, "{words}").expect("the application reads");
    }

    /// Tells the application something and waits for its answer.
    pub fn ask(&mut self, words: &str) -> String {
        self.tell(words);
        self.hear(words)
    }

    /// Waits for the next answer, to what it was told.
    pub fn hear(&mut self, words: &str) -> String {
        let deadline = Instant::now() + LIMIT;
        while let Some(line) = self.child.next_line(deadline) {
            if let Some(answer) = line.strip_prefix(ANSWER) {
                return answer.to_owned();
            }
        }
        panic!("no answer to {words:?}; the application's threads:\n{}", self.child.stacks());
    }

    /// Loads the module of `image(seed)` by launching its kernel once.
    pub fn load(&mut self, seed: u64) {
        assert_eq!(self.ask(&format!("load {seed}")), "ok");
    }

    /// Launches the last kernel so many times, and waits for none of them.
    pub fn queue(&mut self, count: u64) {
        assert_eq!(self.ask(&format!("queue {count}")), "ok");
    }

    /// Launches the last kernel so many times and waits for all of them.
    pub fn launch(&mut self, count: u64) {
        assert_eq!(self.ask(&format!("launch {count}")), "ok");
    }

    pub fn did(&mut self) -> Did {
        let answer = self.ask("counters");
        let mut numbers = answer.split(' ').map(|number| number.parse().expect("a number"));
        let mut next = || numbers.next().expect("four numbers");
        Did { records_written: next(), records_delivered: next(), flushes: next(), buffers_requested: next() }
    }

    /// Tells the application how to end, and waits for that: how long it took, and the exit status.
    pub fn end(mut self, words: &str) -> (Duration, ExitStatus) {
        self.tell(words);
        self.over(words)
    }

    /// Waits for the end of an application that ends because of `words`: as [`App::end`].
    pub fn over(mut self, words: &str) -> (Duration, ExitStatus) {
        let told = Instant::now();
        while self.child.next_line(told + LIMIT).is_some() {}
        let took = told.elapsed();
        assert!(self.child.exited(), "not over after {words:?}; its threads:\n{}", self.child.stacks());
        (took, self.child.end().expect("reaped").0)
    }

    /// Ends the application's input, so that its main thread returns: as [`App::end`].
    pub fn end_of_input(mut self) -> (Duration, ExitStatus) {
        self.child.stdin = None;
        self.over("the end of its input")
    }

    /// Kills the application with SIGKILL and reaps it.
    pub fn kill(self) {
        self.child.end().expect("killed and reaped");
    }
}

/// Whoever runs the tests may ignore signals (nohup does, and shells for what they run in the background), and what is
/// ignored stays so across exec.
fn heed_signals(command: &mut Command) {
    let heed = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            // SAFETY: the default disposition needs nothing.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: signal may be called between fork and exec.
    unsafe { command.pre_exec(heed) };
}

/// In the child: the application. Nothing where the tests are run.
#[test]
fn app() {
    if !is_child(NAME) {
        return;
    }
    // The test runner has begun a line.
    println!();
    let mut inside =
        Inside { cuda: Cuda::load(), context: std::ptr::null_mut(), function: std::ptr::null_mut(), subscriber: None };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answer = inside.obey(&line);
        println!("{ANSWER}{answer}");
    }
}

/// What [`App::did`] reads.
fn did() -> String {
    let c = Cupti::load().counters();
    format!("{} {} {} {}", c.records_written, c.records_delivered, c.flushes, c.buffers_requested)
}

/// What the application has.
pub struct Inside {
    pub cuda: Cuda,
    /// The primary one, once there is one.
    pub context: Handle,
    function: Handle,
    subscriber: Option<Handle>,
}

impl Inside {
    fn obey(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        if let Some(answer) = crate::life::inside::obey(self, &words) {
            return answer;
        }
        let (word, number) = line.split_once(' ').unwrap_or((line, "0"));
        let number: u64 = number.parse().expect("a number");
        match word {
            "init" => self.context = self.cuda.start(),
            "load" => self.load(number),
            "launch" => self.launch(number),
            "queue" => self.queue(number),
            "counters" => return did(),
            "watched" => return crate::allocation::watched(),
            "subscribe" => match Cupti::load().subscribe() {
                Ok(subscriber) => self.subscriber = Some(subscriber),
                Err(code) => return code.to_string(),
            },
            "release" => {
                let cupti = Cupti::load();
                cupti.unsubscribe(self.subscriber.take().expect("subscribed"));
                assert_eq!(cupti.finalize(), 0);
            }
            "exec" => Self::begin_anew(),
            "finalize" => return Cupti::load().finalize().to_string(),
            "exit" => std::process::exit(0),
            // SAFETY: no preconditions; ends the process at once.
            "_exit" => unsafe { libc::_exit(0) },
            "abort" => std::process::abort(),
            other => panic!("{other:?} is not a command"),
        }
        "ok".into()
    }

    pub fn load(&mut self, seed: u64) {
        let (image, name) = image(seed);
        let module = self.cuda.load_module(&image).expect("a cubin");
        self.function = self.cuda.function(module, &name).expect("its kernel");
        self.launch(1);
    }

    pub fn launch(&self, count: u64) {
        self.queue(count);
        self.cuda.synchronize();
    }

    pub fn queue(&self, count: u64) {
        (0..count).for_each(|_| assert_eq!(self.cuda.launch(self.function, std::ptr::null_mut()), 0));
    }

    /// Replaces the process by the same program. Answers before, so that nothing more has been read by then.
    fn begin_anew() {
        println!("{ANSWER}ok");
        let mut command = std::process::Command::new(std::env::current_exe().expect("a path"));
        panic!("{}", command.args(std::env::args_os().skip(1)).exec());
    }

    /// Registers the module of `image(SEED_OF_CHILDREN)`; the launch that would load it.
    pub fn prepare_a_load(&self) -> Launch {
        let (image, name) = image(SEED_OF_CHILDREN);
        let module = self.cuda.load_module(&image).expect("a cubin");
        let function = self.cuda.function(module, &name).expect("its kernel");
        Launch::of(self.cuda.launch_function(), function, self.context)
    }

    /// Makes a context, loads and launches in it, and destroys it.
    pub fn in_a_context_of_its_own(&mut self, seed: u64, launches: u64) {
        let context = self.cuda.create_context(0);
        self.load(seed);
        self.launch(launches);
        assert_eq!(self.cuda.destroy_context(context), 0);
        assert_eq!(self.cuda.set_current(self.context), 0);
    }

    /// Launches a kernel that takes so long, and does not wait for it.
    pub fn launch_long(&mut self, seconds: u64) {
        let module = self.cuda.load_module(&cubin("long", seconds * 1_000_000_000)).expect("a cubin");
        self.function = self.cuda.function(module, "long").expect("its kernel");
        self.queue(1);
    }

    /// As cudaDeviceReset: the context goes with all that is in it, and the next use makes another one.
    pub fn reset_device(&mut self) {
        self.cuda.reset_device();
        self.context = self.cuda.start();
    }
}
