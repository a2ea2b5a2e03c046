//! The processes that the tests start, watch and kill.

use crate::pattern;
use gputap_ringbuf::{
    backing::create::{BackingChoice, Created, create},
    header::{
        identity::Backing,
        status::{Reason, State},
    },
    housekeeping::{Ahead, Housekeeper, Step},
    layout::{CHUNK_WORDS, Sizes},
    tap::{ModuleLoad, TapWriter},
};
use std::{
    io::{BufRead, BufReader, Write},
    process::{ChildStdout, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

const VARIABLE: &str = "GPUTAP_TEST_ROLE";

/// What a child is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Two threads write records and a third stores cubins, until somebody kills the process.
    WriteForEver(Backing),
    Idle(Backing),
    /// Prints the pid of a process that taps, and whose first thread has ended.
    FirstThreadEnds,
    /// Prints the path of a segment that no reader can accept yet.
    NeverPublished,
    /// Makes a segment under RLIMIT_FSIZE and fills it; prints `made` or why not.
    UnderFileSizeLimit(Backing, u64),
    NoTap,
}

/// A child process, killed when it goes out of scope.
pub struct Child {
    process: std::process::Child,
    output: BufReader<ChildStdout>,
}

impl Child {
    pub fn start(role: Role) -> Child {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--test-threads", "1"])
            .env(VARIABLE, role.to_text())
            .stdout(Stdio::piped())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Child { process, output }
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The next line that the role printed (the test harness prints lines of its own).
    pub fn line(&mut self) -> String {
        let mut lines = (&mut self.output).lines().map(|l| l.unwrap());
        lines.find_map(|l| Some(l.split_once("child: ")?.1.to_owned())).expect("a line of the child")
    }

    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.process.wait().unwrap()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Role {
    fn to_text(self) -> String {
        match self {
            Role::WriteForEver(backing) => format!("write {}", backing.name()),
            Role::Idle(backing) => format!("idle {}", backing.name()),
            Role::FirstThreadEnds => "first-thread-ends".into(),
            Role::NeverPublished => "never-published".into(),
            Role::UnderFileSizeLimit(backing, limit) => format!("limited {} {limit}", backing.name()),
            Role::NoTap => "no-tap".into(),
        }
    }
}

pub fn role_of_this_process() -> Option<Role> {
    let text = std::env::var(VARIABLE).ok()?;
    let mut words = text.split(' ');
    let role = words.next()?;
    let backing = if words.next() == Some("memfd") { Backing::Memfd } else { Backing::Shm };
    match role {
        "write" => Some(Role::WriteForEver(backing)),
        "idle" => Some(Role::Idle(backing)),
        "first-thread-ends" => Some(Role::FirstThreadEnds),
        "never-published" => Some(Role::NeverPublished),
        "limited" => Some(Role::UnderFileSizeLimit(backing, words.next()?.parse().ok()?)),
        _ => Some(Role::NoTap),
    }
}

const SIZES: Sizes = Sizes {
    lanes: 4,
    lane_words: 4 * CHUNK_WORDS,
    cubin_slots: 256,
    cubin_bytes: 4 << 20,
    definition_slots: 64,
    definition_bytes: 1 << 20,
};

/// The image of module `id`, up to 64 KiB of bytes that follow from it.
pub fn image(id: u32) -> Vec<u8> {
    let len = 1 + (id as usize * 7919) % 65536;
    (0..len).map(|i| (pattern::word(id.into(), i / 8) >> (8 * (i % 8))) as u8).collect()
}

fn say(text: impl std::fmt::Display) {
    println!("child: {text}");
    std::io::stdout().flush().unwrap();
}

/// Stays until the parent is gone or kills us: nobody ever writes to our standard input.
fn stay() {
    let _ = std::io::stdin().lines().count();
}

fn tap(backing: Backing) -> (TapWriter, Housekeeper) {
    let created = create(SIZES, BackingChoice::Only(backing)).unwrap();
    let tap = TapWriter::new(&created);
    let mut housekeeper = Housekeeper::new(created.reserver, Ahead::DEFAULT);
    while let Step::Reserved = housekeeper.step(&tap) {}
    tap.status().set_state(State::Idle, Reason::None, "");
    (tap, housekeeper)
}

pub fn run(role: Role) {
    match role {
        Role::WriteForEver(backing) => write_for_ever(backing),
        Role::Idle(backing) => {
            let (tap, _housekeeper) = tap(backing);
            tap.publish();
            stay();
        }
        Role::FirstThreadEnds => first_thread_ends(),
        Role::NeverPublished => {
            let Created { identity: i, .. } = create(SIZES, BackingChoice::Only(Backing::Shm)).unwrap();
            say(format_args!("/dev/shm/gputap-{}-{}-{:016x}.ring", i.pid_namespace, i.pid, i.nonce));
            stay();
        }
        Role::UnderFileSizeLimit(backing, limit_bytes) => under_file_size_limit(backing, limit_bytes),
        Role::NoTap => stay(),
    }
}

fn write_for_ever(backing: Backing) {
    let (tap, _housekeeper) = tap(backing);
    tap.publish();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in [100, 200] {
            let (tap, ended) = (&tap, &ended);
            scope.spawn(move || write_records(tap, thread, ended));
        }
        scope.spawn(|| (0..1000).for_each(|id| store(&tap, id)));
        stay();
        ended.store(true, Ordering::Relaxed);
    });
}

fn write_records(tap: &TapWriter, thread: u64, ended: &AtomicBool) {
    let mut payload = [0; 64];
    for seq in 0.. {
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let payload = &mut payload[..(seq % 64) as usize];
        pattern::fill(payload, seq);
        tap.enter_lane(thread, thread).unwrap().write(pattern::kind(seq), payload).unwrap();
    }
}

fn store(tap: &TapWriter, id: u32) {
    let image = image(id);
    // SAFETY: `image` can be read and does not change.
    unsafe { tap.store_cubin(image.as_ptr(), image.len(), ModuleLoad { module_id: id, ..ModuleLoad::default() }) };
}

fn first_thread_ends() {
    // SAFETY: the child of fork runs this one thread, and needs nothing that another might have held.
    let pid = unsafe { libc::fork() };
    if pid != 0 {
        say(pid);
        return stay();
    }
    thread::spawn(|| {
        let (tap, _housekeeper) = tap(Backing::Shm);
        tap.publish();
        stay();
        std::process::exit(0);
    });
    // SAFETY: ends this thread alone, which holds nothing.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

fn under_file_size_limit(backing: Backing, limit_bytes: u64) {
    let limit = libc::rlimit { rlim_cur: limit_bytes, rlim_max: limit_bytes };
    // SAFETY: `limit` is a whole rlimit.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
    let created = match create(Sizes { cubin_bytes: 1 << 30, ..SIZES }, BackingChoice::Only(backing)) {
        Ok(created) => created,
        Err(error) => return say(error),
    };
    assert!(created.layout.total_words as u64 * 8 <= limit_bytes);
    let tap = TapWriter::new(&created);
    let ahead = Ahead { lanes: 4, cubin_bytes: 1 << 30, ..Ahead::DEFAULT };
    let mut housekeeper = Housekeeper::new(created.reserver, ahead);
    while let Step::Reserved = housekeeper.step(&tap) {}
    (0..500).for_each(|id| store(&tap, id));
    if backing == Backing::Shm {
        let i = created.identity;
        for what in ["ring", "ctl"] {
            let name = format!("/dev/shm/gputap-{}-{}-{:016x}.{what}", i.pid_namespace, i.pid, i.nonce);
            std::fs::remove_file(name).unwrap();
        }
    }
    say("made");
}
