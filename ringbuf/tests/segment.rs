//! Real segments, real processes, real deaths: late attach, kill -9, clean-up, limits. Each child is this test binary
//! again, told by a variable what to be.
#![cfg(not(loom))]

mod child;
#[path = "segment/children.rs"]
mod children;
mod pattern;
#[path = "pattern/tally.rs"]
mod tally;

use child::{Child, turn, wait_for};
use children::{Role, image};
use gputap_ringbuf::{
    attach::{AttachError, Attached, Mapped, MappedFile},
    backing::create::{BackingChoice, create},
    control::client::{ControlClient, ControlError},
    discover::{self, FindError, Found},
    header::{counters::Counter, identity::Backing},
    lane::reader::LaneReader,
    layout::{PAGE_BYTES, Sizes},
    store::EntryKind,
    sync::Ordering,
    words::{MappedWords, ReadWords},
};
use std::path::Path;
use tally::Tally;

fn found(child: &Child) -> Found {
    wait_for("the tap", || discover::find(child.pid()).ok().filter(|f| Attached::open(f).is_ok()))
}

/// Whether a sweep leaves no such segment: ours, or that of a tap which another test starts in this very moment.
fn sweeps(segment: &Path) -> Option<()> {
    discover::sweep();
    (!segment.exists()).then_some(())
}

/// What this test binary does when it is a child.
#[test]
fn child() {
    children::run_as_told();
}

/// The lanes of a tap, read by one reader.
struct Readers(Vec<(LaneReader<MappedWords>, Tally)>);

impl Readers {
    fn of(attached: &Attached) -> Readers {
        Readers((0..attached.lane_count()).map(|lane| (attached.lane(lane), Tally::default())).collect())
    }

    fn drain(&mut self) {
        self.0.iter_mut().for_each(|(reader, tally)| _ = tally.drain(reader, 10_000));
    }

    /// Reads what a dead process left, and gives how many records are accounted for.
    fn finish(mut self) -> u64 {
        self.0.iter_mut().for_each(|(reader, tally)| while tally.drain(reader, u64::MAX) {});
        assert!(self.0.iter().all(|(_, tally)| tally.unreadable == 0));
        self.0.iter().map(|(_, tally)| tally.accounted()).sum()
    }
}

/// Reads all that a dead process left, and checks every record and every cubin; `live` has been reading before.
fn check_remains(attached: &Attached, live: Readers) {
    let accounted = Readers::of(attached).finish();
    assert_eq!(live.finish(), accounted, "a reader that was there before, and one that comes now");
    let counters = attached.counters();
    let lost: u64 = counters.lost().map(|(_, count)| count).sum();
    // Each of the two writing threads may have died inside a record that it had numbered already.
    let in_flight = counters.attempted - lost - accounted;
    assert!(in_flight <= 2, "{in_flight} records are missing");
    let mut cubins = attached.cubins();
    let mut entries = 0;
    while let Some(entry) = cubins.next_entry() {
        if entry.kind == EntryKind::RefusedCubin as u16 {
            continue;
        }
        assert!(cubins.read(&entry).as_ref() == Ok(&image(entry.a as u32)), "cubin {}", entry.a);
        entries += 1;
    }
    let refused = counters.get(Counter::ModulesFull) + counters.get(Counter::ModulesNotReserved);
    let known = entries + refused + counters.get(Counter::ModuleDuplicates);
    assert!(counters.get(Counter::ModuleLoads) - known <= 1, "{known} of the loads are known");
    assert!(cubins.invalid == 0 && cubins.unfinished() <= 1);
}

/// Kills a process that writes as fast as it can, at a time of its own choice, and reads what is there.
fn kill_and_read(backing: Backing, records: u64) {
    let mut child = Role::WriteForEver(backing).start();
    let found = found(&child);
    let attached = Attached::open(&found).unwrap();
    assert_eq!(attached.identity().backing, backing);
    let mut live = Readers::of(&attached);
    wait_for("records", || {
        live.drain();
        (attached.counters().attempted > records).then_some(())
    });
    child.kill();
    check_remains(&attached, live);
    match backing {
        // A named one can be attached to after the death as well.
        Backing::Shm => {
            let dead = discover::discover().into_iter().find(|f| f.segment == found.segment).unwrap();
            assert!(!dead.alive && dead.pid == child.pid());
            let attached = Attached::open(&dead).unwrap();
            check_remains(&attached, Readers::of(&attached));
        }
        Backing::Memfd => assert!(matches!(discover::find(child.pid()), Err(FindError::NoProcess { .. }))),
    }
    remove(&found);
}

fn remove(found: &Found) {
    let _ = std::fs::remove_file(&found.segment);
    let _ = std::fs::remove_file(&found.control);
}

#[test]
fn what_a_killed_process_wrote_to_a_named_segment_is_there_and_right() {
    let _turn = turn();
    (0..8).for_each(|n| kill_and_read(Backing::Shm, 1000 + n * 77_777));
}

#[test]
fn what_a_killed_process_wrote_to_a_memfd_is_there_and_right() {
    let _turn = turn();
    (0..8).for_each(|n| kill_and_read(Backing::Memfd, 1000 + n * 77_777));
}

#[test]
fn the_dead_are_swept_the_living_and_the_mapped_are_not() {
    let _turn = turn();
    let mut child = Role::Idle(Backing::Shm).start();
    let found = found(&child);
    assert!(!discover::sweep().contains(&found.segment) && found.segment.exists(), "it lives");
    let attached = Attached::open(&found).unwrap();
    child.kill();
    assert!(!discover::sweep().contains(&found.segment) && found.segment.exists(), "it is mapped");
    drop(attached);
    wait_for("the sweep", || sweeps(&found.segment));
    assert!(!found.segment.exists() && !found.control.exists());
}

/// Such a process looks like a zombie in /proc.
#[test]
fn a_process_whose_first_thread_has_ended_lives() {
    let _turn = turn();
    let mut child = Role::FirstThreadEnds.start();
    let pid = child.line().parse().unwrap();
    let found = wait_for("the tap", || discover::find(pid).ok());
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    wait_for("the first thread's end", || state().contains(") Z ").then_some(()));
    assert!(discover::find(pid).is_ok());
    assert!(!discover::sweep().contains(&found.segment) && found.segment.exists());
    child.kill();
    // SAFETY: no memory is passed; the process is the grandchild, which has not been waited for.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
    remove(&found);
}

/// One that died before its header was whole left its names for ever.
#[test]
fn a_segment_whose_maker_died_before_it_was_whole_is_swept() {
    let _turn = turn();
    let mut child = Role::NeverPublished.start();
    let segment = child.line();
    assert!(!discover::sweep().contains(&segment.clone().into()) && Path::new(&segment).exists(), "its maker lives");
    child.kill();
    wait_for("the sweep", || sweeps(Path::new(&segment)));
    assert!(!Path::new(&segment).exists() && !Path::new(&segment).with_extension("ctl").exists());
}

/// Opening a FIFO waits for its other end; a link may lead anywhere.
#[test]
fn what_only_looks_like_a_segment_holds_nobody_up() {
    let _turn = turn();
    let name = |nonce: u64| format!("/dev/shm/gputap-1-{}-{nonce:016x}.ring", std::process::id());
    let fifo = std::ffi::CString::new(name(1)).unwrap();
    // SAFETY: the name is NUL-terminated.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    std::os::unix::fs::symlink(name(3), name(2)).unwrap();
    std::fs::write(name(3), vec![0xff; PAGE_BYTES]).unwrap();
    let found = discover::discover();
    let opened = [1, 2, 3].map(|n| Attached::open_path(Path::new(&name(n))).err());
    [1, 2, 3].into_iter().for_each(|n| std::fs::remove_file(name(n)).unwrap());
    use AttachError::{Header, Io};
    assert!(matches!(opened, [Some(Io { .. }), Some(Io { .. }), Some(Header { .. })]), "{opened:?}");
    assert!(!found.iter().any(|f| f.segment == Path::new(&name(1)) || f.segment == Path::new(&name(2))));
}

#[test]
fn a_small_file_size_limit_is_an_error_and_no_signal() {
    let _turn = turn();
    for backing in [Backing::Shm, Backing::Memfd] {
        for limit_bytes in [0, 4096, 1 << 20, 8 << 20] {
            let mut child = Role::UnderFileSizeLimit(backing, limit_bytes).start();
            let outcome = child.line();
            assert!(child.wait().success(), "{backing:?}, {limit_bytes} bytes: {outcome}");
            assert_eq!(outcome == "made", limit_bytes == 8 << 20, "{backing:?}, {limit_bytes} bytes: {outcome}");
        }
    }
}

#[test]
fn a_memfd_cannot_be_cut_by_anybody() {
    let _turn = turn();
    let child = Role::Idle(Backing::Memfd).start();
    let found = found(&child);
    for path in [&found.segment, &found.control] {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        assert!(file.set_len(0).is_err() && file.set_len(1 << 40).is_err());
    }
    let attached = Attached::open(&found).unwrap();
    assert_eq!(attached.status().state.map(|s| s.name()), Some("idle"));
}

#[test]
fn a_process_without_a_tap_and_one_that_is_not_there_are_told_apart() {
    let child = Role::NoTap.start();
    assert!(matches!(discover::find(child.pid()), Err(FindError::NoTap { .. })));
    assert!(matches!(discover::find(u32::MAX >> 1), Err(FindError::NoProcess { .. })));
}

/// The last lane word and the last byte of each area can be reached by a view of the whole file.
#[test]
fn the_whole_of_a_segment_is_mapped() {
    let _turn = turn();
    let child = Role::Idle(Backing::Memfd).start();
    let attached = Attached::open(&found(&child)).unwrap();
    let Mapped { words, size_bytes, .. } = MappedFile::open(&found(&child).segment, 0).unwrap();
    assert!(words.len() == attached.layout().total_words && size_bytes == words.len() as u64 * 8);
    assert_eq!(words.load(words.len() - 1, Ordering::Relaxed), 0);
}

/// A segment is sparse, and a core dump would fill it in: gigabytes, in a process that is just dying.
#[test]
fn a_core_dump_leaves_the_segment_out() {
    let created = create(Sizes::STATUS_ONLY, BackingChoice::Only(Backing::Memfd)).unwrap();
    let name = format!("gputap-{:016x}.ring", created.identity.nonce);
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let flags = smaps.lines().skip_while(|l| !l.contains(&name)).find_map(|l| l.strip_prefix("VmFlags:")).unwrap();
    assert!(flags.split(' ').any(|flag| flag == "dd"), "{flags}");
}

/// A memfd's control object is found by a descriptor, which after exec may be the next tap's.
#[test]
fn no_lease_is_taken_on_another_tap_than_the_one_that_was_found() {
    let _turn = turn();
    let mut children = [0, 1].map(|_| Role::WriteForEver(Backing::Memfd).start());
    let [mut one, other] = [found(&children[0]), found(&children[1])];
    assert!(ControlClient::open(&one).is_ok());
    one.control = other.control;
    let error = ControlClient::open(&one).err().unwrap();
    children.iter_mut().for_each(Child::kill);
    assert!(matches!(error, ControlError::Attach(AttachError::Gone { .. })), "{error}");
}
