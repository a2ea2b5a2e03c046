//! A session on taps made in this process, or in a child that ends.

#[allow(dead_code, reason = "each file of tests uses its part")]
mod support;

use gputap_reader::clock::Now;
use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::recording::RecordError;
use gputap_reader::session::{EventSink, NoSink, Session, StoredCubin};
use gputap_ringbuf::control::LEASE_NS;
use gputap_ringbuf::event::{BASIC_KINDS, Event, EventKind, KernelEvent, LaunchEvent, MemcpyEvent, NO_NAME};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::identity::Backing;
use gputap_ringbuf::header::status::{ClockPoint, ClockSource, Reason, State};
use support::{SIZES, Tap, drain, kernel, options, step_until};

const CUBIN: &[u8] = include_bytes!("data/two-13.5-sm_90-lineinfo.cubin");

fn lost(snapshot: &Snapshot, reason: &str) -> u64 {
    snapshot.counts.lost.iter().filter(|lost| lost.reason == reason).map(|lost| lost.count).sum()
}

fn assert_balanced(snapshot: &Snapshot) {
    let counts = &snapshot.counts;
    let lost: u64 = counts.lost.iter().map(|lost| lost.count).sum();
    assert_eq!(counts.attempted, counts.delivered + lost + counts.pending, "{counts:?}");
}

#[test]
fn events_names_and_cubins_arrive_on_both_backings() {
    for backing in [Backing::Shm, Backing::Memfd] {
        let tap = Tap::new(backing);
        let mut session = tap.session();
        let (first, again, other) = (tap.name(b"_Z6vecaddPfS_i"), tap.name(b"_Z6vecaddPfS_i"), tap.name(b"k0"));
        tap.write(100, &kernel(first, 10, 20));
        tap.write(200, &kernel(again, 10, 40));
        tap.write(200, &kernel(other, 10, 15));
        tap.write(200, &kernel(NO_NAME, 10, 0));
        tap.write(
            100,
            &Event::Memcpy(MemcpyEvent { copy_kind: 1, bytes: 64, start_ns: 1, end_ns: 3, ..Default::default() }),
        );
        tap.cubin(CUBIN);
        tap.cubin(CUBIN);
        drain(&mut session, &mut NoSink);
        let snapshot = session.snapshot(Now::read());
        assert_balanced(&snapshot);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered, snapshot.counts.pending), (5, 5, 0));
        assert_eq!(snapshot.counts.flagged_times, 1);
        let rows: Vec<_> = snapshot.kernels.iter().map(|row| (row.name.as_str(), row.calls, row.total_ns)).collect();
        assert_eq!(rows, [("vecadd(float*, float*, int)", 2, 40), ("k0", 1, 5), ("(unnamed)", 1, 0)]);
        assert_eq!((snapshot.copies[0].direction.as_str(), snapshot.copies[0].bytes), ("HtoD", 64));
        let module = &snapshot.modules[0];
        assert_eq!((snapshot.modules.len(), module.size_bytes, module.loads), (1, CUBIN.len() as u64, 2));
        assert_eq!(module.crc32, Some(crc32fast::hash(CUBIN)));
        assert_eq!((module.architecture.as_str(), module.line_info), ("sm_90", Some(true)));
        assert_eq!(module.functions, ["k0", "void scale<float>(float*, float, int)"]);
        assert_eq!((snapshot.module_counts.attempted, snapshot.module_counts.stored), (2, 1));
        let target = &snapshot.target;
        assert_eq!((target.pid, target.alive, target.state.as_str()), (std::process::id(), true, "idle"));
        assert_eq!((target.backing.as_str(), target.cupti_version), (backing.name(), 130001));
    }
}

#[test]
fn overflow_is_counted_exactly_before_and_after_attaching() {
    let tap = Tap::new(Backing::Shm);
    let name = tap.name(b"k0");
    // A lane of 8 chunks holds about 5,400 kernels.
    let write = |count: u64| (0..count).for_each(|i| tap.write(100, &kernel(name, i + 1, i + 2)));
    write(20_000);
    let mut late = tap.session();
    drain(&mut late, &mut NoSink);
    let first = late.snapshot(Now::read());
    assert_balanced(&first);
    assert!(lost(&first, "before_attach") > 10_000 && lost(&first, "overwritten") == 0, "{:?}", first.counts);
    write(20_000);
    drain(&mut late, &mut NoSink);
    let second = late.snapshot(Now::read());
    assert_balanced(&second);
    assert!(lost(&second, "overwritten") > 10_000, "{:?}", second.counts);
    assert_eq!((second.counts.attempted, second.counts.pending), (40_000, 0));
    assert_eq!(second.counts.delivered, second.kernels[0].calls);
}

#[test]
fn more_threads_than_lanes_are_lost_by_name() {
    let tap = Tap::new(Backing::Shm);
    let mut session = tap.session();
    (0..10u64).for_each(|thread| tap.write(1000 + thread, &kernel(NO_NAME, 1, 2)));
    drain(&mut session, &mut NoSink);
    let snapshot = session.snapshot(Now::read());
    assert_balanced(&snapshot);
    let lanes = SIZES.lanes as u64;
    assert_eq!((snapshot.counts.delivered, lost(&snapshot, "no_lane")), (lanes, 10 - lanes));
}

#[test]
fn unknown_kinds_and_short_records_are_counted_and_skipped() {
    let tap = Tap::new(Backing::Shm);
    let mut session = tap.session();
    tap.write_raw(100, 999, &[1, 2, 3]);
    tap.write_raw(100, 1, &[1, 2, 3]);
    tap.write(100, &kernel(12345, 1, 2));
    drain(&mut session, &mut NoSink);
    let snapshot = session.snapshot(Now::read());
    assert_balanced(&snapshot);
    assert_eq!((snapshot.counts.delivered, lost(&snapshot, "undecodable")), (1, 2));
    assert_eq!(snapshot.kernels[0].name, "(unnamed)");
}

#[test]
fn two_readers_see_the_same_and_one_step_is_bounded() {
    let tap = Tap::new(Backing::Shm);
    let (mut first, mut second) = (tap.session(), tap.session());
    let names: Vec<u32> = (0..50).map(|i| tap.name(format!("k{i}").as_bytes())).collect();
    for i in 0..4_000u64 {
        tap.write(100 + i % 3, &kernel(names[i as usize % names.len()], i + 1, i + 3));
        if i % 1000 == 0 {
            drain(&mut first, &mut NoSink);
        }
    }
    drain(&mut first, &mut NoSink);
    drain(&mut second, &mut NoSink);
    let now = Now::read();
    let strip = |mut snapshot: Snapshot| {
        snapshot.elapsed_ns = 0;
        serde_json::to_value(snapshot).expect("plain data")
    };
    assert_eq!(strip(first.snapshot(now)), strip(second.snapshot(now)));
    assert_eq!(first.snapshot(now).counts.delivered, 4_000);
}

#[test]
fn a_session_holds_a_lease_and_gives_it_up() {
    let mut tap = Tap::new(Backing::Shm);
    let mut session = tap.session();
    assert_eq!(tap.control.poll(0).kinds, BASIC_KINDS);
    session.step(Now::read(), &mut NoSink).expect("no sink");
    assert_eq!(tap.control.poll(LEASE_NS - 1).kinds, BASIC_KINDS);
    session.step(Now::read(), &mut NoSink).expect("no sink");
    assert_eq!(tap.control.poll(LEASE_NS + 1).kinds, BASIC_KINDS);
    // This reader is stopped for too long; its wish lapses, and it asks again when it goes on.
    assert_eq!(tap.control.poll(3 * LEASE_NS).kinds, 0);
    let later = Now { monotonic_ns: Now::read().monotonic_ns + 3 * LEASE_NS, ..Now::read() };
    session.step(later, &mut NoSink).expect("no sink");
    assert_eq!(tap.control.poll(3 * LEASE_NS + 1).kinds, BASIC_KINDS);
    drop(session);
    assert_eq!(tap.control.poll(3 * LEASE_NS + 2).kinds, 0);
    let watching =
        Session::open(&tap.found, gputap_reader::session::Options { kinds: 0, cupti_crc: None }, Now::read());
    assert_eq!(tap.control.poll(3 * LEASE_NS + 3).leases, 0);
    drop(watching);
}

#[test]
fn rates_come_from_the_records() {
    let tap = Tap::new(Backing::Shm);
    let mut session = tap.session();
    let name = tap.name(b"k0");
    let now = Now { monotonic_ns: 1_000_300_000_000, realtime_ns: 0 };
    for i in 0..500u64 {
        let start = 999_000_000_000 + i * 2_000_000;
        tap.write(100, &kernel(name, start, start + 1_000_000));
    }
    session.step(now, &mut NoSink).expect("no sink");
    let snapshot = session.snapshot(now);
    assert_eq!((snapshot.kernels_per_s, snapshot.gpu_busy), (500.0, 0.5));
    assert_eq!(snapshot.devices.len(), 1);
}

fn asking_for(tap: &Tap, kinds: u64, now: Now) -> Session {
    let options = gputap_reader::session::Options { kinds, ..options() };
    Session::open(&tap.found, options, now).expect("the tap can be read")
}

fn said(session: &Session, now: Now) -> Vec<String> {
    session.remarks(now).into_iter().map(|remark| remark.words).collect()
}

fn later(now: Now, by_ns: u64) -> Now {
    Now { monotonic_ns: now.monotonic_ns + by_ns, ..now }
}

#[test]
fn what_the_tap_says_of_itself_is_in_the_snapshot() {
    let tap = Tap::new(Backing::Shm);
    let (kernel, sync, nvtx) = (EventKind::Kernel.bit(), EventKind::Sync.bit(), EventKind::Marker.bit());
    let status = tap.writer.status();
    status.set_kinds(kernel | sync);
    status.set_driver_version(12_040);
    status.set_notes(nvtx, "nvtx events cannot be had in this process: x\nthe library is odd\x1b[2J");
    status.set_clock_source(ClockSource::Monotonic);
    status.add_clock_point(ClockPoint { monotonic_ns: 5, realtime_ns: 1_000, error_ns: 40 });
    tap.writer.count(Counter::ClockSteps, 2);
    tap.writer.count(Counter::ClockDoubtful, 3);
    let session = tap.session();
    let snapshot = session.snapshot(Now::read());
    let target = &snapshot.target;
    assert_eq!((target.kinds.as_slice(), target.unavailable.as_slice()), (&["kernel", "sync"][..], &["nvtx"][..]));
    assert_eq!((target.driver_version.as_str(), target.notes.len()), ("12.4", 2));
    let point = snapshot.clock.point.map(|point| (point.monotonic_ns, point.realtime_ns, point.error_ns));
    assert_eq!((snapshot.clock.source, point), ("monotonic", Some((5, 1_000, 40))));
    assert_eq!((snapshot.clock.steps, snapshot.clock.doubtful_times), (2, 3));
    // What nobody asked for is no remark; the rest is, and cannot steer a terminal.
    assert!(snapshot.notes.iter().any(|note| note.starts_with("the library is odd")), "{:?}", snapshot.notes);
    assert!(!snapshot.notes.iter().any(|note| note.contains("nvtx")), "{:?}", snapshot.notes);
    assert!(!snapshot.notes.concat().chars().any(char::is_control), "{:?}", snapshot.notes);
    let wanting = asking_for(&tap, nvtx, Now::read());
    let said = said(&wanting, Now::read());
    assert_eq!(said[0], "nvtx events cannot be had in this process: x");
    assert!(said.len() == 2 && said[1].starts_with("the library is odd"), "{said:?}");
    assert!(wanting.snapshot(Now::read()).notes.iter().any(|note| note.contains("nvtx")));
}

#[test]
fn a_wish_that_is_not_followed_is_told_once_it_should_have_been() {
    let tap = Tap::new(Backing::Shm);
    tap.writer.status().set_state(State::Recording, Reason::None, "");
    tap.writer.status().set_kinds(EventKind::Kernel.bit());
    let now = Now::read();
    let mut session = asking_for(&tap, EventKind::Kernel.bit() | EventKind::Graph.bit(), now);
    session.step(now, &mut NoSink).expect("no sink");
    assert!(said(&session, now).is_empty(), "{:?}", said(&session, now));
    let said = said(&session, later(now, 1_000_000_000));
    assert!(said.len() == 1 && said[0].contains("another reader wants every kernel"), "{said:?}");
}

#[test]
fn trouble_is_told_once_however_its_figures_change() {
    let tap = Tap::new(Backing::Shm);
    let mut session = tap.session();
    let mut trouble = |detail: &str| {
        tap.writer.status().set_state(State::Recording, Reason::NoRecords, detail);
        session.step(Now::read(), &mut NoSink).expect("no sink");
        session.remarks(Now::read())
    };
    let (first, second) = (trouble("9 launches in 10 s"), trouble("10 launches in 11 s"));
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(first[0].about, second[0].about);
    assert!(second[0].words.contains("no records") && second[0].words.contains("10 launches"), "{second:?}");
    tap.writer.status().set_state(State::Yielded, Reason::ByCommand, "");
    session.step(Now::read(), &mut NoSink).expect("no sink");
    assert!(session.remarks(Now::read()).is_empty());
}

fn launch(correlation_id: u64) -> Event {
    Event::Launch(LaunchEvent {
        correlation_id,
        time_ns: Now::read().monotonic_ns,
        name_id: NO_NAME,
        ..Default::default()
    })
}

fn ended(correlation_id: u64) -> Event {
    Event::Kernel(KernelEvent { correlation_id, start_ns: 1, end_ns: 2, name_id: NO_NAME, ..Default::default() })
}

#[test]
fn what_is_in_flight_is_told_whichever_lane_is_read_first_and_loss_makes_it_uncertain() {
    let tap = Tap::new(Backing::Shm);
    let mut session = asking_for(&tap, BASIC_KINDS | EventKind::Launch.bit(), Now::read());
    // Lanes take turns in being the first.
    for round in 0..10u64 {
        let (first, second) = (2 * round + 1, 2 * round + 2);
        tap.write(100, &launch(first));
        tap.write(200, &ended(first));
        tap.write(200, &ended(second));
        tap.write(100, &launch(second));
        drain(&mut session, &mut NoSink);
    }
    tap.write(100, &launch(1000));
    drain(&mut session, &mut NoSink);
    let in_flight = session.snapshot(Now::read()).in_flight;
    assert_eq!((in_flight.launches, in_flight.open, in_flight.uncertain), (21, 1, 0));
    assert_eq!((in_flight.oldest[0].correlation, in_flight.oldest[0].uncertain), (1000, false));
    tap.writer.count(Counter::CuptiDropped, 1);
    drain(&mut session, &mut NoSink);
    let in_flight = session.snapshot(Now::read()).in_flight;
    assert_eq!((in_flight.open, in_flight.uncertain), (1, 1));
}

#[test]
fn records_near_a_step_of_the_wall_clock_are_counted_and_not_averaged() {
    let tap = Tap::new(Backing::Shm);
    let now = Now::read();
    let mut session = tap.session();
    session.step(now, &mut NoSink).expect("no sink");
    tap.writer.count(Counter::ClockSteps, 1);
    let name = tap.name(b"k0");
    let at_ns = now.monotonic_ns + 500;
    tap.write(100, &kernel(name, at_ns, at_ns + 10));
    tap.write(100, &kernel(name, at_ns - 10_000_000_000, at_ns - 9_999_999_900));
    session.step(later(now, 1_000), &mut NoSink).expect("no sink");
    let snapshot = session.snapshot(later(now, 2_000));
    assert_eq!((snapshot.counts.flags.doubtful, snapshot.counts.flagged_times), (1, 1));
    assert_eq!((snapshot.kernels[0].calls, snapshot.kernels[0].total_ns), (2, 100));
    assert!(snapshot.notes.iter().any(|note| note.contains("wall clock was set 1 times")), "{:?}", snapshot.notes);
}

#[test]
fn a_late_reader_knows_of_a_step_by_the_tap_s_clock_points() {
    let tap = Tap::new(Backing::Shm);
    let second = 1_000_000_000;
    for (monotonic_ns, ahead_ns) in [(10 * second, 50 * second), (11 * second, 90 * second)] {
        let point = ClockPoint { monotonic_ns, realtime_ns: monotonic_ns + ahead_ns, error_ns: 20 };
        tap.writer.status().add_clock_point(point);
    }
    tap.write(100, &kernel(NO_NAME, 10 * second, 10 * second + 5));
    tap.write(100, &kernel(NO_NAME, 20 * second, 20 * second + 5));
    let mut session = tap.session();
    drain(&mut session, &mut NoSink);
    let snapshot = session.snapshot(Now::read());
    assert_eq!((snapshot.counts.flags.doubtful, snapshot.kernels[0].total_ns), (1, 5));
}

/// Fails on the n-th event.
struct Failing {
    left: u32,
}

impl EventSink for Failing {
    fn name(&mut self, _: u32, _: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }
    fn text(&mut self, _: u32, _: &[u8]) -> Result<(), RecordError> {
        Ok(())
    }

    fn event(&mut self, _: &Event) -> Result<(), RecordError> {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return Err(RecordError::NotAFolder { path: "/x".into() }),
        }
        Ok(())
    }
    fn cubin(&mut self, _: &StoredCubin<'_>) -> Result<(), RecordError> {
        Ok(())
    }
    fn cupti_crc(&mut self, _: u32, _: Result<u64, &str>) -> Result<(), RecordError> {
        Ok(())
    }
    fn step_ends(&mut self) -> Result<(), RecordError> {
        Ok(())
    }
}

#[test]
fn a_failing_sink_costs_no_figure() {
    let tap = Tap::new(Backing::Shm);
    let mut session = tap.session();
    (0..10).for_each(|_| tap.write(100, &kernel(NO_NAME, 1, 2)));
    assert!(session.step(Now::read(), &mut Failing { left: 3 }).is_err());
    assert_eq!(session.snapshot(Now::read()).counts.delivered, 10);
}

const MARKER: &str = "as-the-tapped-process";
const IN_CHILD: u64 = 700;

/// Does nothing when the tests are run; in the child it taps itself, writes, says so, and waits to be killed.
#[test]
fn tapped_process() {
    if !std::env::args().any(|argument| argument == MARKER) {
        return;
    }
    let mut tap = Tap::new(Backing::Shm);
    let name = tap.name(b"in_the_child");
    (0..IN_CHILD).for_each(|_| tap.write(100, &kernel(name, 1, 2)));
    tap.cubin(CUBIN);
    tap.writer.status().set_state(State::Recording, Reason::None, "");
    std::fs::write(std::env::var_os("GPUTAP_TEST_READY").expect("set by the parent"), b"ready").expect("room");
    loop {
        tap.beat(Now::read());
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_killed_process_leaves_everything_readable_and_says_what_is_unknown() {
    let folder = tempfile::tempdir().expect("a folder");
    let ready = folder.path().join("ready");
    let mut child = std::process::Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "tapped_process", "--test-threads=1", MARKER])
        .env("GPUTAP_TEST_READY", &ready)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the child starts");
    wait_for(|| ready.exists());
    let mut session = Session::attach(child.id(), options(), Now::read()).expect("the child is tapped");
    let mut second = Session::attach(child.id(), options(), Now::read()).expect("by two");
    assert!(!drain(&mut second, &mut NoSink).ended);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(step_until(&mut session, &mut NoSink, |progress| progress.ended).ended);
    let snapshot = session.snapshot(Now::read());
    assert_balanced(&snapshot);
    assert_eq!((snapshot.counts.delivered, snapshot.counts.pending, snapshot.modules.len()), (IN_CHILD, 0, 1));
    assert_eq!((snapshot.target.alive, snapshot.target.state.as_str()), (false, "exited"));
    assert!(snapshot.counts.lost.iter().any(|lost| lost.reason == "held_by_cupti" && lost.unknown));
    // Post mortem: found among the dead, read without a lease.
    let found = session.found().clone();
    let dead = gputap_ringbuf::discover::discover().into_iter().find(|dead| dead.segment == found.segment);
    let mut after = Session::open(&dead.expect("it stays"), options(), Now::read()).expect("readable");
    assert!(step_until(&mut after, &mut NoSink, |progress| progress.ended).ended);
    assert_eq!(after.snapshot(Now::read()).counts.delivered, IN_CHILD);
    std::fs::remove_file(&found.segment).expect("the segment");
    std::fs::remove_file(&found.control).expect("its control object");
}

const EXEC_MARKER: &str = "as-the-process-that-replaces-itself";

/// Does nothing when the tests are run; as the child it taps itself, then becomes another program.
#[test]
fn replaced_process() {
    use std::os::unix::process::CommandExt;
    if !std::env::args().any(|argument| argument == EXEC_MARKER) {
        return;
    }
    let tap = Tap::new(Backing::Shm);
    tap.write(100, &kernel(NO_NAME, 1, 2));
    std::fs::write(std::env::var_os("GPUTAP_TEST_READY").expect("set by the parent"), b"ready").expect("room");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("the parent says when");
    let error = std::process::Command::new("sleep").arg("1000").exec();
    panic!("exec: {error}");
}

#[test]
fn a_process_that_replaces_itself_by_exec_has_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let ready = folder.path().join("ready");
    let mut child = std::process::Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "replaced_process", "--test-threads=1", EXEC_MARKER])
        .env("GPUTAP_TEST_READY", &ready)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the child starts");
    wait_for(|| ready.exists());
    let mut session = Session::attach(child.id(), options(), Now::read()).expect("the child is tapped");
    // Quiet for long, but the segment is still mapped: stopped, not gone.
    let ahead = |seconds: u64| Now { monotonic_ns: Now::read().monotonic_ns + seconds * 1_000_000_000, ..Now::read() };
    assert!(!session.step(ahead(10), &mut NoSink).expect("no sink").ended);
    drop(child.stdin.take());
    let mut seconds = 20;
    wait_for(|| {
        seconds += 10;
        session.step(ahead(seconds), &mut NoSink).expect("no sink").ended
    });
    assert_eq!(session.snapshot(Now::read()).counts.delivered, 1);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    std::fs::remove_file(&session.found().segment).expect("the segment");
    std::fs::remove_file(&session.found().control).expect("its control object");
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "not within a minute");
        std::thread::yield_now();
    }
}

#[test]
fn a_process_without_a_tap_is_an_error_that_says_what_to_do() {
    let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("sleep runs");
    let error = Session::attach(child.id(), options(), Now::read()).err().expect("no tap").to_string();
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(error.contains("gputap record"), "{error}");
}

/// Cut by a byte, which raises no fault, in the middle, and altogether.
#[test]
fn a_segment_that_is_cut_ends_its_session_with_a_word_and_no_other() {
    gputap_ringbuf::attach::guard::catch_sigbus().expect("a handler");
    let whole = Tap::new(Backing::Shm);
    let write = |tap: &Tap| (0..100).for_each(|n| tap.write(100, &kernel(NO_NAME, n + 1, n + 2)));
    write(&whole);
    for share in [0.999_999_9, 0.5, 0.05, 0.0] {
        let cut = Tap::new(Backing::Shm);
        write(&cut);
        let (mut session, mut other) = (cut.session(), whole.session());
        drain(&mut session, &mut NoSink);
        let file = std::fs::File::options().write(true).open(&cut.found.segment).expect("root may");
        let size_bytes = file.metadata().expect("it is there").len();
        file.set_len((size_bytes as f64 * share) as u64).expect("it is not sealed");
        assert!(step_until(&mut session, &mut NoSink, |progress| progress.ended).ended);
        let snapshot = session.snapshot(Now::read());
        assert_balanced(&snapshot);
        assert!(session.is_cut() && session.has_ended());
        assert_eq!((snapshot.target.state.as_str(), snapshot.counts.delivered), ("cut", 100));
        assert!(snapshot.counts.lost.iter().any(|lost| lost.reason == "cut" && lost.unknown), "{:?}", snapshot.counts);
        let words = format!("the segment of process {} was cut while it was read", std::process::id());
        assert!(snapshot.notes.iter().any(|note| note.starts_with(&words)), "{:?}", snapshot.notes);
        drain(&mut other, &mut NoSink);
        assert!(!other.is_cut() && other.snapshot(Now::read()).counts.delivered == 100);
    }
}
