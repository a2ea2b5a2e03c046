//! A segment or control object that is cut or grows under its readers: a word of it, never their death or a wrong record.
#![cfg(not(loom))]

mod child;

use child::{Child, SMALL, backing, say, small_tap, wait_for};
use gputap_ringbuf::{
    attach::{Attached, guard},
    control::client::{ControlClient, ControlError},
    discover::{self, Found},
    layout::Layout,
    tap::{ModuleLoad, TapWriter},
};
use std::{
    fs::OpenOptions,
    os::unix::process::ExitStatusExt,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

/// What this test binary does when it is a child.
#[test]
fn child() {
    let role = child::role();
    let words: Vec<&str> = role.iter().map(String::as_str).collect();
    match words[..] {
        [] => {}
        ["tap"] => {
            let (tap, _created) = small_tap(backing("shm"));
            write(&tap);
            say("ready");
            child::stay();
        }
        ["reads", guarded, segment, at] => reads(guarded == "guarded", Path::new(segment), at.parse().unwrap()),
        ["commands", segment] => commands(Path::new(segment)),
        ["regrown", segment] => regrown(Path::new(segment)),
        ["before", kind] => had_a_handler_before(kind),
        _ => panic!("{role:?}"),
    }
}

const RECORDS: u64 = 2000;
const CUBINS: u32 = 16;

fn payload(seq: u64) -> [u64; 12] {
    std::array::from_fn(|i| (seq + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(5 * i as u32))
}

fn image(id: u32) -> Vec<u8> {
    (0..100_000u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8 ^ id as u8).collect()
}

fn write(tap: &TapWriter) {
    (0..RECORDS).for_each(|n| tap.enter_lane(100, 1).unwrap().write(1, &payload(n)).unwrap());
    for id in 0..CUBINS {
        let image = image(id);
        // SAFETY: `image` can be read and does not change.
        unsafe { tap.store_cubin(image.as_ptr(), image.len(), ModuleLoad { module_id: id, ..Default::default() }) };
    }
    tap.store_kernel_name(b"kernel", 0).unwrap();
}

fn cut(path: &Path, size_bytes: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(size_bytes).unwrap();
}

/// Reads everything again and again on two threads, has the segment cut to `at` bytes meanwhile, and says what came.
fn reads(guarded: bool, segment: &Path, at: u64) {
    if guarded {
        guard::catch_sigbus().unwrap();
    }
    let attached = Attached::open_path(segment).unwrap();
    assert!(!attached.is_cut());
    let (rounds, wrong, ended) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    wrong.fetch_add(wrong_in_a_round(&attached), Ordering::Relaxed);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        wait_for("rounds", || (rounds.load(Ordering::Relaxed) > 4).then_some(()));
        cut(segment, at);
        let cut_at = rounds.load(Ordering::Relaxed);
        // Rounds that began after the cut, on both threads.
        wait_for("more rounds", || (rounds.load(Ordering::Relaxed) > cut_at + 8).then_some(()));
        ended.store(true, Ordering::Relaxed);
    });
    say(format_args!("{} cut, {} wrong", attached.is_cut(), wrong.into_inner()));
}

/// Records and cubins that are not as they were written, or not there though the tap says that it is whole.
fn wrong_in_a_round(attached: &Attached) -> u64 {
    let (mut wrong, mut records, mut cubins) = (0, 0, 0);
    for lane in 0..attached.lane_count() {
        attached.lane(lane).drain(u64::MAX, |record| {
            records += 1;
            wrong += u64::from(record.words != payload(record.seq));
        });
    }
    let mut store = attached.cubins();
    while let Some(entry) = store.next_entry() {
        if let Ok(bytes) = store.read(&entry) {
            cubins += 1;
            wrong += u64::from(bytes != image(entry.a as u32));
        }
    }
    let _ = (attached.status(), attached.clock_points(), attached.counters());
    let whole = records == RECORDS && cubins == CUBINS;
    wrong + u64::from(!whole && !attached.is_cut())
}

/// A tap to cut, and where it lies.
fn tap() -> (Child, Found) {
    let mut child = Child::start("tap");
    assert_eq!(child.line(), "ready");
    let found = discover::find(child.pid()).unwrap();
    (child, found)
}

fn remove(found: &Found) {
    let _ = std::fs::remove_file(&found.segment);
    let _ = std::fs::remove_file(&found.control);
}

/// Where each area begins, and a little into it.
fn places() -> Vec<(&'static str, u64)> {
    let l = Layout::new(SMALL);
    let bytes = |word: usize| word as u64 * 8;
    vec![
        ("nothing is left", 0),
        ("in the identity", 100),
        ("in the header", bytes(l.fixed_words) / 2),
        ("before the lanes", bytes(l.lanes)),
        ("in a lane", bytes(l.lanes) + 70_000),
        ("before the cubins", bytes(l.cubins)),
        ("in a cubin", bytes(l.cubins) + 150_000),
        ("by a byte", bytes(l.total_words) - 1),
    ]
}

#[test]
fn a_segment_cut_anywhere_while_it_is_read_is_said_to_be_cut() {
    for (what, at) in places() {
        let (_tap, found) = tap();
        let mut reader = Child::start(&format!("reads guarded {} {at}", found.segment.display()));
        let said = reader.line();
        remove(&found);
        assert_eq!(said, "true cut, 0 wrong", "{what}");
        assert!(reader.wait().success(), "{what}");
    }
}

/// The control: without the handler the reader dies.
#[test]
fn without_the_guard_a_cut_is_the_reader_s_death() {
    let (_tap, found) = tap();
    let mut reader = Child::start(&format!("reads bare {} 0", found.segment.display()));
    let status = reader.wait();
    remove(&found);
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{status}");
}

#[test]
fn a_segment_that_grows_is_read_as_before() {
    let (_tap, found) = tap();
    let size_bytes = std::fs::metadata(&found.segment).unwrap().len();
    let mut reader = Child::start(&format!("reads guarded {} {}", found.segment.display(), size_bytes * 2));
    let said = reader.line();
    let attached = Attached::open(&found).map(|attached| wrong_in_a_round(&attached));
    remove(&found);
    assert_eq!(said, "false cut, 0 wrong");
    assert_eq!(attached.unwrap(), 0, "whoever comes later reads it too");
}

/// What a fault has put zeros in the place of stays cut, whatever the file is then.
fn regrown(segment: &Path) {
    guard::catch_sigbus().unwrap();
    let attached = Attached::open_path(segment).unwrap();
    let size_bytes = std::fs::metadata(segment).unwrap().len();
    cut(segment, 0);
    let _ = attached.status();
    cut(segment, size_bytes);
    say(attached.is_cut());
}

#[test]
fn a_segment_that_was_cut_and_grows_again_stays_cut() {
    let (_tap, found) = tap();
    let mut reader = Child::start(&format!("regrown {}", found.segment.display()));
    let said = reader.line();
    remove(&found);
    assert_eq!(said, "true");
}

/// The control object is cut while its client beats and asks.
fn commands(segment: &Path) {
    guard::catch_sigbus().unwrap();
    let found = discover::discover().into_iter().find(|f| f.segment == segment).unwrap();
    let client = ControlClient::open(&found).unwrap();
    client.want(1);
    assert!(client.renew());
    cut(&found.control, 0);
    assert!(!client.renew(), "the lease is gone");
    let command = gputap_ringbuf::control::Command::Flush;
    let answer = client.command(command, std::time::Duration::from_millis(20));
    assert!(matches!(answer, Err(ControlError::Lapsed { .. })), "{answer:?}");
    drop(client);
    let again = ControlClient::open(&found).err().unwrap().to_string();
    assert!(!Attached::open(&found).unwrap().is_cut(), "the segment is whole");
    say(again);
}

#[test]
fn a_control_object_that_is_cut_ends_the_lease() {
    let (_tap, found) = tap();
    let mut reader = Child::start(&format!("commands {}", found.segment.display()));
    let said = reader.line();
    remove(&found);
    assert!(said.contains("has 0 bytes, too few"), "{said}");
    assert!(reader.wait().success());
}

/// A fault that is none of ours goes to whoever had the signal before.
fn had_a_handler_before(kind: &str) {
    extern "C" fn theirs(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
        say("theirs");
        std::process::exit(0);
    }
    // SAFETY: zero is a valid sigaction.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    if kind == "handler" {
        action.sa_sigaction = theirs as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
    }
    // SAFETY: the action is whole; the handler does not return.
    assert_eq!(unsafe { libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) }, 0);
    guard::catch_sigbus().unwrap();
    guard::catch_sigbus().unwrap();
    let path = std::env::temp_dir().join(format!("gputap-cut-{}", std::process::id()));
    let file = std::fs::File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len(4096).unwrap();
    std::fs::remove_file(path).unwrap();
    let map = memmap2::MmapOptions::new().len(4096).map_raw(&file).unwrap();
    file.set_len(0).unwrap();
    // SAFETY: the page is mapped, and its file is not there: the fault is what this is about.
    let byte = unsafe { map.as_ptr().read_volatile() };
    say(format_args!("read {byte}"));
}

#[test]
fn a_fault_that_is_not_ours_goes_where_it_went_before() {
    let mut handled = Child::start("before handler");
    assert_eq!(handled.line(), "theirs");
    assert!(handled.wait().success());
    let mut died = Child::start("before nothing");
    assert_eq!(died.wait().signal(), Some(libc::SIGBUS));
}

/// More mappings than the table has places are refused, not left without a watch.
#[test]
fn places_in_the_table_come_free_again() {
    let (_child, found) = tap();
    for _ in 0..3 {
        let all: Vec<_> = std::iter::from_fn(|| Attached::open(&found).ok()).take(2000).collect();
        assert!((900..=1024).contains(&all.len()), "{}", all.len());
        let refused = Attached::open(&found).err().unwrap().to_string();
        assert!(refused.contains("too many taps"), "{refused}");
    }
    remove(&found);
}
