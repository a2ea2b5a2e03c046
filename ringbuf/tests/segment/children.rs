//! The processes that the tests start, watch and kill.

use crate::{
    child::{self, Child, named, say, stay},
    pattern,
};
use gputap_ringbuf::{
    backing::create::{BackingChoice, create},
    header::{
        identity::Backing,
        status::{Reason, State},
    },
    housekeeping::{Ahead, Housekeeper, Step},
    layout::{CHUNK_WORDS, Sizes},
    tap::{ModuleLoad, TapWriter},
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

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

impl Role {
    /// Starts a child with this role.
    pub fn start(self) -> Child {
        Child::start(&self.to_text())
    }

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

/// Runs as what this process is to be; nothing in the test itself.
pub fn run_as_told() {
    let words = child::role();
    let Some(role) = words.first() else { return };
    let backing = if words.get(1).is_some_and(|word| word == "memfd") { Backing::Memfd } else { Backing::Shm };
    run(match role.as_str() {
        "write" => Role::WriteForEver(backing),
        "idle" => Role::Idle(backing),
        "first-thread-ends" => Role::FirstThreadEnds,
        "never-published" => Role::NeverPublished,
        "limited" => Role::UnderFileSizeLimit(backing, words[2].parse().unwrap()),
        _ => Role::NoTap,
    });
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

fn tap(backing: Backing) -> (TapWriter, Housekeeper) {
    let created = create(SIZES, BackingChoice::Only(backing)).unwrap();
    let tap = TapWriter::new(&created);
    let mut housekeeper = Housekeeper::new(created.reserver, Ahead::DEFAULT);
    while let Step::Reserved = housekeeper.step(&tap) {}
    tap.status().set_state(State::Idle, Reason::None, "");
    (tap, housekeeper)
}

fn run(role: Role) {
    match role {
        Role::WriteForEver(backing) => write_for_ever(backing),
        Role::Idle(backing) => {
            let (tap, _housekeeper) = tap(backing);
            tap.publish();
            stay();
        }
        Role::FirstThreadEnds => first_thread_ends(),
        Role::NeverPublished => {
            let created = create(SIZES, BackingChoice::Only(Backing::Shm)).unwrap();
            say(named(&created, "ring"));
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
    let names = ["ring", "ctl"].map(|what| named(&created, what));
    let mut housekeeper = Housekeeper::new(created.reserver, ahead);
    while let Step::Reserved = housekeeper.step(&tap) {}
    (0..500).for_each(|id| store(&tap, id));
    if backing == Backing::Shm {
        names.iter().for_each(|name| std::fs::remove_file(name).unwrap());
    }
    say("made");
}
