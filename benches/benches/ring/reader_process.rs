//! A reader in a process of its own, as readers are: this program started again, told what to do line by line.
//!
//! ```text
//! attach LANE   maps the segment and reads what the lane holds        answer: ok
//! detach        unmaps it                                             answer: ok
//! drain         from now on, drains without a rest                    answer: ok
//! follow        from now on, drains, and rests when there is nothing  answer: ok
//! rest          reads what is left and stops                          answer: DELIVERED LOST
//! wait MS       a whole session, as `gputap top` paces it             answer: nanoseconds of processor time
//! sleep MS      the same rests and nothing between them               answer: nanoseconds of processor time
//! ```

use gputap_reader::{
    clock::Now,
    session::{NoSink, Options, REST, Session},
};
use gputap_ringbuf::{
    attach::Attached,
    discover::{Found, find},
    event::BASIC_KINDS,
    lane::reader::LaneReader,
    words::MappedWords,
};
use std::{
    hint::black_box,
    io::{BufRead, BufReader, Write, stdin},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread,
    time::{Duration, Instant},
};

/// The first argument of a program that is to be a reader.
pub const COMMAND: &str = "reader-process";

/// The reader, as the bench sees it. Ends with it.
pub struct ReaderProcess {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl ReaderProcess {
    /// A reader of this process's tap.
    pub fn start() -> ReaderProcess {
        let program = std::env::current_exe().expect("the path of this program");
        let mut child = Command::new(program)
            .args([COMMAND, &std::process::id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program, started again");
        let (commands, answers) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        ReaderProcess { child, commands, answers: BufReader::new(answers) }
    }

    /// Gives a command and waits for its answer.
    pub fn tell(&mut self, command: &str) -> String {
        let commands = self.commands.as_mut().expect("a pipe");
        writeln!(commands, "{command}").expect("a living reader");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("an answer");
        assert!(!answer.is_empty(), "the reader ended at `{command}`");
        answer.trim().to_owned()
    }

    /// Ends draining; gives how many records the reader got and how many it lost.
    pub fn rest(&mut self) -> (u64, u64) {
        let answer = self.tell("rest");
        let (delivered, lost) = answer.split_once(' ').expect("two numbers");
        (delivered.parse().expect("a number"), lost.parse().expect("a number"))
    }
}

impl Drop for ReaderProcess {
    fn drop(&mut self) {
        drop(self.commands.take()); // The reader ends with its input.
        let _ = self.child.wait();
    }
}

/// The reader's side, of the tap of process `pid`.
pub fn serve(pid: u32) {
    let found = find(pid).expect("the tap of the bench");
    let (sender, commands) = channel();
    // Draining must not wait for input; the bench's end is the end of input.
    thread::spawn(move || stdin().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    Server { found, reader: None, delivered: 0, lost: 0 }.obey(&commands);
}

struct Server {
    found: Found,
    reader: Option<LaneReader<MappedWords>>,
    delivered: u64,
    lost: u64,
}

impl Server {
    fn obey(mut self, commands: &Receiver<String>) {
        let mut next = commands.recv().ok();
        while let Some(line) = next {
            let (command, argument) = line.split_once(' ').unwrap_or((&line, "0"));
            let argument = argument.parse().expect("a number");
            next = None;
            match command {
                "attach" => self.attach(argument),
                "detach" => self.reader = None,
                "drain" => next = self.drain_until_told(commands, Duration::ZERO),
                "follow" => next = self.drain_until_told(commands, REST),
                "rest" => println!("{} {}", self.delivered, self.lost),
                "wait" => println!("{}", self.wait(Duration::from_millis(argument as u64))),
                "sleep" => println!("{}", used_by(Duration::from_millis(argument as u64), || false)),
                _ => panic!("unknown command `{line}`"),
            }
            if matches!(command, "attach" | "detach") {
                println!("ok");
            }
            next = next.or_else(|| commands.recv().ok());
        }
    }

    fn attach(&mut self, lane: usize) {
        let attached = Attached::open(&self.found).expect("the tap of the bench");
        self.reader = Some(attached.lane(lane));
        while self.drain() {}
        (self.delivered, self.lost) = (0, 0);
    }

    /// Gives whether there is more.
    fn drain(&mut self) -> bool {
        let reader = self.reader.as_mut().expect("an attached reader");
        let done = reader.drain(u64::MAX, |record| _ = black_box(record.words));
        self.delivered += done.delivered;
        self.lost += done.missed();
        done.more
    }

    fn drain_until_told(&mut self, commands: &Receiver<String>, rest: Duration) -> Option<String> {
        (self.delivered, self.lost) = (0, 0);
        println!("ok");
        loop {
            let told = commands.try_recv();
            let more = self.drain();
            match told {
                Ok(line) => {
                    while self.drain() {}
                    return Some(line);
                }
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if more || rest.is_zero() => {}
                Err(TryRecvError::Empty) => thread::sleep(rest),
            }
        }
    }

    /// A session that records and finds nothing to read.
    fn wait(&self, how_long: Duration) -> u64 {
        let options = Options { kinds: BASIC_KINDS, cupti_crc: None };
        let mut session = Session::open(&self.found, options, Now::read()).expect("the tap of the bench");
        let mut step = || session.step(Now::read(), &mut NoSink).expect("no sink, no error").more;
        while step() {}
        used_by(how_long, step)
    }
}

/// Nanoseconds of the processor that steps take, with a rest after each that says that there is no more to do.
fn used_by(how_long: Duration, mut step: impl FnMut() -> bool) -> u64 {
    let (began_ns, until) = (processor_ns(), Instant::now() + how_long);
    while Instant::now() < until {
        if !step() {
            thread::sleep(REST);
        }
    }
    processor_ns() - began_ns
}

/// What this process has used of the processor, in user mode and in the kernel.
fn processor_ns() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is a timespec that the call may write.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
