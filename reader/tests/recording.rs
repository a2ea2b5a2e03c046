//! Recordings of taps made in this process: what is in the files, and what is left after kill -9.

#[allow(dead_code, reason = "each file of tests uses its part")]
mod support;

use gputap_reader::clock::Now;
use gputap_reader::recording::{CubinList, RecordError, Recorder, Recording, Settings};
use gputap_reader::session::{EventSink, Session};
use gputap_recording::{Block, Module, Process, Status};
use gputap_ringbuf::discover::discover;
use gputap_ringbuf::event::{ALL_KINDS, Event, MemcpyEvent, MemsetEvent, NO_NAME};
use gputap_ringbuf::header::identity::Backing;
use gputap_ringbuf::header::status::ClockPoint;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{Tap, drain, kernel, options};

const CUBIN: &[u8] = include_bytes!("data/two-13.5-sm_90-lineinfo.cubin");
const NAMES: [&[u8]; 4] = [b"_Z6vecaddPfS_i", b"say \"hi\" \\ \x1b[2J, and, commas", b"\xff\xfe", b""];

fn index(dir: &Path) -> Value {
    let path = dir.join("index.json");
    serde_json::from_slice(&fs::read(&path).expect("an index")).expect("JSON")
}

fn create(dir: &Path, settings: Settings) -> Recording {
    Recording::create(dir, settings, Now::read()).expect("a new folder")
}

/// A recording of everything, of one session.
fn recorder(dir: &Path, session: &Session) -> (Recording, Recorder) {
    let recording = create(dir, Settings::default());
    let recorder = recording.recorder(session, Now::read()).expect("room");
    (recording, recorder)
}

/// What the segments of one process say.
#[derive(Default)]
struct Read {
    process: Process,
    events: Vec<Event>,
    /// By the event's kernel's name, where there is one.
    calls: BTreeMap<Vec<u8>, u64>,
    modules: BTreeMap<u32, Module>,
    status: Status,
    problems: Vec<String>,
}

fn read(dir: &Path) -> Vec<Read> {
    let recording = gputap_recording::Recording::open(dir).expect("a recording");
    assert_eq!(recording.problems(), []);
    recording.processes().iter().map(read_process).collect()
}

fn read_process(recorded: &gputap_recording::Recorded) -> Read {
    let mut read = Read { process: recorded.process.clone(), ..Read::default() };
    let mut stream = recorded.stream(ALL_KINDS);
    loop {
        let events = match stream.next_block() {
            Some(Block::Events(events)) => events.to_vec(),
            Some(Block::Module(module)) => {
                read.modules.insert(module.slot, module);
                continue;
            }
            Some(Block::Status(status)) => {
                read.status = status;
                continue;
            }
            None => break,
        };
        for event in events {
            if let Event::Kernel(kernel) = event
                && let Some(name) = stream.names().get(kernel.name_id)
            {
                *read.calls.entry(name.bytes.to_vec()).or_default() += 1;
            }
            read.events.push(event);
        }
    }
    read.problems = stream.problems().iter().map(|problem| problem.what.clone()).collect();
    read
}

#[test]
fn a_recording_holds_every_event_name_and_cubin() {
    let tap = Tap::new(Backing::Shm);
    let root = tempfile::tempdir().expect("a folder");
    let dir = root.path().join("new/recording");
    let mut session = tap.session();
    let (recording, mut recorder) = recorder(&dir, &session);
    let names: Vec<u32> = NAMES.iter().map(|name| tap.name(name)).collect();
    for i in 0..1000u64 {
        tap.write(100 + i % 3, &kernel(names[i as usize % names.len()], i + 1, i + 11));
    }
    tap.write(100, &kernel(NO_NAME, 5, 0));
    let copy = Event::Memcpy(MemcpyEvent { copy_kind: 2, bytes: 77, start_ns: 3, end_ns: 4, ..Default::default() });
    tap.write(100, &copy);
    tap.write(100, &Event::Memset(MemsetEvent { bytes: 88, value: 9, ..Default::default() }));
    tap.cubin(CUBIN);
    tap.cubin(b"no ELF at all");
    drain(&mut session, &mut recorder);
    tap.cubin(CUBIN);
    // The loads of later are told too.
    let later = Now { monotonic_ns: Now::read().monotonic_ns + 1_000_000_000, ..Now::read() };
    session.step(later, &mut recorder).expect("room");
    recorder.finish(Now::read(), &session).expect("room");
    let written = recording.finish(Now::read()).expect("room");
    assert_eq!((written.events, written.cubins, written.complete), (1003, 2, true));

    let [read] = &read(&dir)[..] else { panic!("one process") };
    assert_eq!((read.events.len(), &read.problems), (1003, &Vec::new()));
    assert!(read.events.contains(&copy) && read.events.contains(&kernel(NO_NAME, 5, 0)));
    let expected: BTreeMap<Vec<u8>, u64> = NAMES.iter().map(|name| (name.to_vec(), 250)).collect();
    assert_eq!(read.calls, expected);
    assert_eq!((read.process.pid, read.process.cupti_version), (std::process::id(), 130_001));
    let status = &read.status;
    assert_eq!((status.attempted, status.delivered, status.pending, status.complete), (1003, 1003, 0, true));
    let loads: Vec<u64> = read.modules.values().map(|module| module.loads).collect();
    assert_eq!(loads, [2, 1]);

    let index = index(&dir);
    assert_eq!((&index["format"], &index["version"]), (&json!("gputap recording"), &json!(3)));
    assert_eq!(index["complete"], true);
    let process = &index["processes"][0];
    assert_eq!(process["process"]["pid"], std::process::id());
    assert_eq!((&process["events"], &process["counts"]["delivered"]), (&json!(1003), &json!(1003)));
    for segment in process["segments"].as_array().expect("a list") {
        let bytes = fs::metadata(dir.join(segment["file"].as_str().expect("a name"))).expect("a file").len();
        assert_eq!(segment["bytes"], bytes);
    }
    let cubins = index["cubins"].as_array().expect("a list");
    assert_eq!(cubins.len(), 2);
    assert_eq!((&cubins[0]["loads"], &cubins[0]["architecture"]), (&json!(2), &json!("sm_90")));
    let k0 = json!({"name": "k0", "code_bytes": 384, "registers": 8, "static_shared_bytes": 0,
        "local_bytes": 0, "stack_bytes": 0, "max_threads": null});
    assert_eq!((&cubins[0]["kernels"][0], &cubins[0]["kernels"][1]["name"]), (&k0, &cubins[0]["functions"][1]));
    assert_eq!(
        (&cubins[0]["loaded_by"][0]["loads"], cubins[0]["loaded_by"].as_array().map(Vec::len)),
        (&json!(2), Some(1))
    );
    assert_eq!(cubins[0]["functions"], json!(["k0", "_Z5scaleIfEvPT_S0_i"]));
    assert_eq!((&cubins[0]["cupti_crc"], &cubins[0]["cupti_crc_reason"]), (&Value::Null, &json!("not asked for")));
    let name = format!("{:08x}-{}.cubin", crc32fast::hash(CUBIN), CUBIN.len());
    assert_eq!(cubins[0]["file"], Value::from(name.as_str()));
    assert_eq!(read.modules[&0].file.as_deref(), Some(name.as_str()));
    assert_eq!(fs::read(dir.join("cubins").join(name)).expect("the cubin"), CUBIN);
    assert!(cubins[1]["parse_error"].as_str().is_some_and(|error| !error.is_empty()));
    let list = CubinList::open(&dir).expect("the recording");
    assert_eq!((list.of_kernel("k0"), list.cubins()[0].loads, list.index_error()), (&[0][..], Some(2), ""));
    assert_eq!(list.cubins()[1].error, cubins[1]["parse_error"].as_str().unwrap_or_default());
}

#[test]
fn processes_share_a_folder_its_cubins_and_its_index() {
    let taps = [Tap::new(Backing::Shm), Tap::new(Backing::Memfd), Tap::new(Backing::Shm)];
    let root = tempfile::tempdir().expect("a folder");
    let recording = create(root.path(), Settings::default());
    for (number, tap) in taps.iter().enumerate() {
        let mut session = tap.session();
        let mut recorder = recording.recorder(&session, Now::read()).expect("room");
        let name = tap.name(format!("k{number}").as_bytes());
        (0..=number as u64).for_each(|i| tap.write(100, &kernel(name, i + 1, i + 2)));
        (0..=number).for_each(|_| tap.cubin(CUBIN));
        drain(&mut session, &mut recorder);
        recorder.finish(Now::read(), &session).expect("room");
    }
    let written = recording.finish(Now::read()).expect("room");
    assert_eq!((written.events, written.cubins, written.segments), (6, 1, 3));
    let read = read(root.path());
    let mut calls: Vec<_> = read.iter().flat_map(|one| one.calls.clone()).collect();
    calls.sort();
    assert_eq!(calls, [(b"k0".to_vec(), 1), (b"k1".to_vec(), 2), (b"k2".to_vec(), 3)]);
    let index = index(root.path());
    assert_eq!(index["processes"].as_array().map(Vec::len), Some(3));
    assert_eq!(index["cubins"][0]["loads"], 6);
    let by: Vec<u64> = index["cubins"][0]["loaded_by"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|by| by["loads"].as_u64().expect("a number"))
        .collect();
    assert_eq!(by, [1, 2, 3]);
    let folders = fs::read_dir(root.path()).expect("the folder").count();
    assert_eq!(folders, 3 + 2, "a folder each, cubins, index.json");
}

#[test]
fn kernels_that_are_filtered_are_counted_and_not_written() {
    let tap = Tap::new(Backing::Shm);
    let root = tempfile::tempdir().expect("a folder");
    let filter = Some("^vec".parse().expect("a pattern"));
    let recording = create(root.path(), Settings { filter, ..Settings::default() });
    let mut session = tap.session();
    let mut recorder = recording.recorder(&session, Now::read()).expect("room");
    let (wanted, other) = (tap.name(b"_Z6vecaddPfS_i"), tap.name(b"_Z6matmulPfS_i"));
    (0..10u64).for_each(|i| tap.write(100, &kernel(wanted, i + 1, i + 2)));
    (0..30u64).for_each(|i| tap.write(100, &kernel(other, i + 1, i + 2)));
    tap.write(100, &Event::Memset(MemsetEvent::default()));
    drain(&mut session, &mut recorder);
    recorder.finish(Now::read(), &session).expect("room");
    recording.finish(Now::read()).expect("room");
    let read = &read(root.path())[0];
    assert_eq!(read.calls, BTreeMap::from([(b"_Z6vecaddPfS_i".to_vec(), 10)]));
    assert_eq!(read.events.len(), 11);
    assert_eq!((read.status.attempted, read.status.delivered, read.status.lost.len()), (41, 41, 0));
    assert!(read.status.notes.iter().any(|note| note.starts_with("30 events of other kernels")), "{:?}", read.status);
    let process = &index(root.path())["processes"][0];
    assert_eq!((&process["events"], &process["filtered_events"]), (&json!(11), &json!(30)));
}

fn folder_bytes(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => folder_bytes(&entry.path()),
        // One that has just been removed is none.
        meta => meta.map_or(0, |meta| meta.len()),
    };
    entries.flatten().map(size).sum()
}

/// Times that compress badly, as real ones do.
fn busy(tap: &Tap, name: u32, number: u64) {
    let noise = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let start_ns = (number + 1) * 1_000;
    tap.write(100 + number % 4, &kernel(name, start_ns + noise % 1_000, start_ns + 1_000 + noise % 9_001));
}

#[test]
fn a_limited_recording_keeps_the_newest_of_all_processes_within_its_size() {
    const MAX: u64 = 1 << 20;
    let taps = [Tap::new(Backing::Shm), Tap::new(Backing::Shm)];
    let root = tempfile::tempdir().expect("a folder");
    let recording = create(root.path(), Settings { max_bytes: Some(MAX), ..Settings::default() });
    let mut both: Vec<(Session, Recorder, u32)> = taps
        .iter()
        .map(|tap| {
            let session = tap.session();
            let recorder = recording.recorder(&session, Now::read()).expect("room");
            (session, recorder, tap.name(b"k"))
        })
        .collect();
    taps[0].cubin(&[7; 100_000]);
    const ROUNDS: u64 = 300;
    for round in 0..ROUNDS {
        for (tap, (session, recorder, name)) in taps.iter().zip(&mut both) {
            (0..2_000).for_each(|i| busy(tap, *name, round * 2_000 + i));
            drain(session, recorder);
            recorder.keep(Now::read(), session).expect("room");
        }
        let bytes = folder_bytes(root.path());
        assert!(bytes <= MAX, "{bytes} bytes after round {round}");
    }
    both.into_iter().for_each(|(session, recorder, _)| recorder.finish(Now::read(), &session).expect("room"));
    let written = recording.finish(Now::read()).expect("room");
    assert!(written.complete && folder_bytes(root.path()) <= MAX && written.bytes > MAX / 2, "{written:?}");
    let index = index(root.path());
    for (read, process) in read(root.path()).iter().zip(index["processes"].as_array().expect("a list")) {
        assert_eq!(read.status.delivered, ROUNDS * 2_000);
        let number = |name: &str| process[name].as_u64().expect("a number");
        assert_eq!(number("events") + number("removed_events"), ROUNDS * 2_000);
        assert!(number("removed_events") > 0 && read.events.len() >= 2_000);
        let newest = read.events.iter().filter_map(|event| match event {
            Event::Kernel(kernel) => Some(kernel.start_ns / 1_000),
            _ => None,
        });
        assert_eq!(newest.max(), Some(ROUNDS * 2_000));
    }
}

#[test]
fn a_recording_has_the_readings_by_which_times_are_told_as_wall_time() {
    let tap = Tap::new(Backing::Shm);
    let root = tempfile::tempdir().expect("a folder");
    let point = |monotonic_ns| ClockPoint { monotonic_ns, realtime_ns: monotonic_ns + 1_000, error_ns: 30 };
    tap.writer.status().add_clock_point(point(7));
    let session = tap.session();
    let (recording, recorder) = recorder(root.path(), &session);
    recorder.look(&session);
    tap.writer.status().add_clock_point(point(8));
    recorder.finish(Now::read(), &session).expect("room");
    recording.finish(Now::read()).expect("room");
    let read = &read(root.path())[0];
    let clock =
        |monotonic_ns| Some(gputap_recording::Clock { monotonic_ns, realtime_ns: monotonic_ns + 1_000, error_ns: 30 });
    assert_eq!((read.process.clock, read.status.clock), (clock(7), clock(8)));
}

#[test]
fn status_and_index_are_written_on_the_way_when_due() {
    let tap = Tap::new(Backing::Shm);
    let root = tempfile::tempdir().expect("a folder");
    let mut session = tap.session();
    let now = Now::read();
    let recording = Recording::create(root.path(), Settings::default(), now).expect("an empty folder will do");
    assert!(!root.path().join("index.json").exists(), "before there is a process there is nothing");
    let mut recorder = recording.recorder(&session, now).expect("room");
    let name = tap.name(b"k");
    tap.write(100, &kernel(name, 1, 2));
    session.step(now, &mut recorder).expect("room");
    recorder.keep(now, &session).expect("room");
    let events = || index(root.path())["processes"][0]["events"].clone();
    assert_eq!(events(), 0, "the index of the beginning");
    let later = Now { monotonic_ns: now.monotonic_ns + 3_000_000_000, ..now };
    recorder.keep(later, &session).expect("room");
    assert_eq!((events(), index(root.path())["complete"].clone()), (json!(1), json!(false)));
    let read = &read(root.path())[0];
    assert_eq!((read.status.delivered, read.status.complete, read.events.len()), (1, false, 1));
}

#[test]
fn existing_output_and_impossible_folders_are_refused_with_a_word() {
    let root = tempfile::tempdir().expect("a folder");
    let file = root.path().join("file");
    fs::write(&file, b"precious").expect("room");
    let create = |dir: &Path| Recording::create(dir, Settings::default(), Now::read()).err().expect("refused");
    let occupied = create(root.path());
    assert!(matches!(occupied, RecordError::NotEmpty { .. }));
    assert!(occupied.to_string().contains("-o"), "{occupied}");
    assert!(matches!(create(&file), RecordError::NotAFolder { .. }));
    assert!(matches!(create(&file.join("below")), RecordError::Create { .. }));
    assert!(matches!(create(Path::new("/proc/gputap-recording")), RecordError::Create { .. }));
    assert_eq!(fs::read(&file).expect("still there"), b"precious");
}

#[test]
fn a_folder_that_goes_away_is_an_error_once_and_the_session_goes_on() {
    let tap = Tap::new(Backing::Shm);
    let root = tempfile::tempdir().expect("a folder");
    let dir = root.path().join("recording");
    let mut session = tap.session();
    let (recording, mut recorder) = recorder(&dir, &session);
    tap.cubin(CUBIN);
    drain(&mut session, &mut recorder);
    fs::remove_dir_all(&dir).expect("ours");
    fs::write(&dir, b"in the way").expect("room");
    tap.cubin(b"another");
    let error = session.step(Now::read(), &mut recorder).expect_err("no folder");
    assert!(error.to_string().contains("could not be"), "{error}");
    assert_eq!(session.snapshot(Now::read()).modules.len(), 2);
    tap.cubin(b"a third");
    session.step(Now::read(), &mut recorder).expect("told once");
    assert!(recording.has_failed());
    recorder.finish(Now::read(), &session).expect("nothing more to write");
    assert!(!recording.finish(Now::read()).expect("told before").complete);
}

fn session_with_the_parent(segment: &str) -> Session {
    let mut found = discover().into_iter().find(|found| found.segment == Path::new(segment)).expect("the parent's tap");
    // One of several that the parent has.
    found.alive = true;
    Session::open(&found, options(), Now::read()).expect("readable")
}

const MARKER: &str = "as-the-recorder";

/// Does nothing when the tests are run; as the child it records the tap of its parent until it is killed.
#[test]
fn recording_process() {
    if !std::env::args().any(|argument| argument == MARKER) {
        return;
    }
    let variable = |name: &str| std::env::var(name).expect("set by the parent");
    let mut session = session_with_the_parent(&variable("GPUTAP_TEST_SEGMENT"));
    let (_recording, mut recorder) = recorder(Path::new(&variable("GPUTAP_TEST_DIR")), &session);
    loop {
        let now = Now::read();
        session.step(now, &mut recorder as &mut dyn EventSink).expect("room");
        recorder.keep(now, &session).expect("room");
    }
}

#[test]
fn after_kill_9_the_segments_are_whole_up_to_the_last_block() {
    let tap = Tap::new(Backing::Shm);
    let name = tap.name(b"k0");
    for round in 0..5u64 {
        let root = tempfile::tempdir().expect("a folder");
        let dir = root.path().join("recording");
        let mut child = std::process::Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", "recording_process", "--test-threads=1", MARKER])
            .env("GPUTAP_TEST_SEGMENT", &tap.found.segment)
            .env("GPUTAP_TEST_DIR", &dir)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("the child starts");
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut written = 0;
        let segments = dir.join(folder_of(&tap));
        while folder_bytes(&segments) < 100_000 * (round + 1) {
            assert!(Instant::now() < deadline, "the child records nothing");
            (0..100).for_each(|i| busy(&tap, name, written * 100 + i));
            written += 1;
            tap.cubin(format!("cubin {round} {written:07}").repeat(20).as_bytes());
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        check_what_is_left(&dir, written * 100);
    }
}

/// Of its segments.
fn folder_of(tap: &Tap) -> String {
    let identity = tap.session().identity();
    format!("pid-{}-{:016x}", identity.pid, identity.nonce)
}

fn check_what_is_left(dir: &Path, written: u64) {
    let read = &read(dir)[0];
    assert!(read.events.len() > 1000 && read.events.len() as u64 <= written, "{} events", read.events.len());
    assert_eq!(read.calls, BTreeMap::from([(b"k0".to_vec(), read.events.len() as u64)]));
    let cut = ["the last block is cut off".to_owned()];
    assert!(read.problems.is_empty() || read.problems == cut, "{:?}", read.problems);
    assert!(!read.status.complete && !read.modules.is_empty());
    for module in read.modules.values() {
        let name = module.file.as_ref().expect("kept");
        let bytes = fs::read(dir.join("cubins").join(name)).expect("the cubin");
        assert_eq!(*name, format!("{:08x}-{}.cubin", crc32fast::hash(&bytes), bytes.len()));
    }
    assert_eq!(index(dir)["complete"], false);
}

const LIMITED_MARKER: &str = "as-the-recorder-that-runs-out-of-room";

/// Does nothing when the tests are run; as the child it records the tap of its parent until there is no room, and says
/// what it was told.
#[test]
fn recording_process_without_room() {
    if !std::env::args().any(|argument| argument == LIMITED_MARKER) {
        return;
    }
    let variable = |name: &str| std::env::var(name).expect("set by the parent");
    let mut session = session_with_the_parent(&variable("GPUTAP_TEST_SEGMENT"));
    let dir = PathBuf::from(variable("GPUTAP_TEST_DIR"));
    let (recording, mut recorder) = recorder(&dir, &session);
    let deadline = Instant::now() + Duration::from_secs(60);
    let error = loop {
        let now = Now::read();
        let stepped = session.step(now, &mut recorder).map(drop);
        if let Err(error) = stepped.and_then(|()| recorder.keep(now, &session)) {
            break error;
        }
        assert!(Instant::now() < deadline, "there is room for all");
    };
    recorder.finish(Now::read(), &session).expect("told before");
    let written = recording.finish(Now::read()).expect("told before");
    assert!(!written.complete);
    fs::write(dir.join("told"), format!("{error}")).expect("room for a line");
}

#[test]
fn running_out_of_room_is_an_error_and_leaves_whole_blocks() {
    let tap = Tap::new(Backing::Shm);
    let name = tap.name(b"k0");
    (0..14_000u64).for_each(|i| busy(&tap, name, i));
    let root = tempfile::tempdir().expect("a folder");
    let dir = root.path().join("recording");
    // 12 KiB a file; the signal that goes with the limit is ignored, so that it is an error like a full disk.
    let command = format!(
        "trap '' XFSZ; ulimit -f 24; exec \"$0\" --exact recording_process_without_room --nocapture {LIMITED_MARKER}"
    );
    let status = std::process::Command::new("sh")
        .arg("-c")
        .arg(command)
        .arg(std::env::current_exe().expect("this binary"))
        .env("GPUTAP_TEST_SEGMENT", &tap.found.segment)
        .env("GPUTAP_TEST_DIR", &dir)
        .stdout(std::process::Stdio::null())
        .status()
        .expect("a shell");
    assert!(status.success(), "{status}");
    let told = fs::read_to_string(dir.join("told")).expect("what it was told");
    assert!(told.contains(".gtap") && told.contains("ulimit -f") && told.contains("whole"), "{told}");
    let read = &read(&dir)[0];
    assert_eq!(read.problems, [""; 0], "the block that found no room is not there at all");
    assert!(read.events.len() >= 4096 && read.events.len() < 14_000, "{} events", read.events.len());
    assert_eq!(read.calls, BTreeMap::from([(b"k0".to_vec(), read.events.len() as u64)]));
    let index = index(&dir);
    assert_eq!((&index["complete"], index["failure"].as_str()), (&json!(false), Some(told.as_str())));
    assert_eq!(index["processes"][0]["counts"]["delivered"], 14_000);
}
