//! Recordings of taps made in this process: what is in the files, and what is left after kill -9.

#[allow(dead_code, reason = "each file of tests uses its part")]
mod support;

use gputap_reader::clock::Now;
use gputap_reader::recording::{CubinList, RecordError, Recorder};
use gputap_reader::session::{EventSink, Session};
use gputap_ringbuf::discover::discover;
use gputap_ringbuf::event::{Event, MemcpyEvent, MemsetEvent, NO_NAME};
use gputap_ringbuf::header::identity::Backing;
use gputap_ringbuf::header::status::ClockPoint;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use support::{Tap, drain, kernel, options};

const CUBIN: &[u8] = include_bytes!("data/two-13.5-sm_90-lineinfo.cubin");
const NAMES: [&[u8]; 4] = [b"_Z6vecaddPfS_i", b"say \"hi\" \\ \x1b[2J, and, commas", b"\xff\xfe", b""];

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&text(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    text(path).lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn a_recording_holds_every_event_name_and_cubin() {
    let tap = Tap::new(Backing::Shm);
    let root = tempfile::tempdir().expect("a folder");
    let dir = root.path().join("new/recording");
    let mut session = tap.session();
    let mut recorder = Recorder::create(&dir, &session, Now::read()).expect("a new folder");
    let names: Vec<u32> = NAMES.iter().map(|name| tap.name(name)).collect();
    for i in 0..1000u64 {
        tap.write(100 + i % 3, &kernel(names[i as usize % names.len()], i + 1, i + 11));
    }
    tap.write(100, &kernel(NO_NAME, 5, 0));
    tap.write(
        100,
        &Event::Memcpy(MemcpyEvent { copy_kind: 2, bytes: 77, start_ns: 3, end_ns: 4, ..Default::default() }),
    );
    tap.write(100, &Event::Memset(MemsetEvent { bytes: 88, value: 9, ..Default::default() }));
    tap.cubin(CUBIN);
    tap.cubin(b"no ELF at all");
    drain(&mut session, &mut recorder);
    tap.cubin(CUBIN);
    // The loads of later are in the index too.
    let later = Now { monotonic_ns: Now::read().monotonic_ns + 1_000_000_000, ..Now::read() };
    session.step(later, &mut recorder).expect("room");
    let snapshot = session.snapshot(Now::read());
    let written = recorder.finish(&snapshot, Now::read()).expect("room");
    assert_eq!((written.events, written.cubins, written.complete), (1003, 2, true));

    let kernels = rows(&dir.join("kernels.csv"));
    assert_eq!(kernels.len(), 1 + 1001);
    assert!(kernels.iter().all(|row| row.len() == kernels[0].len()));
    assert_eq!(kernels[0][..3], ["start_ns", "end_ns", "name_id"]);
    assert_eq!(kernels.iter().filter(|row| row[2].is_empty()).count(), 1);
    let copies = rows(&dir.join("copies.csv"));
    assert_eq!(copies[1][..4], ["3", "4", "77", "2"]);
    assert_eq!(rows(&dir.join("memsets.csv"))[1][2..4], ["88", "9"]);

    let lines: Vec<Value> =
        text(&dir.join("names.jsonl")).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), NAMES.len());
    assert_eq!(lines[0]["name"], "vecadd(float*, float*, int)");
    assert_eq!(lines[1]["mangled"].as_str().map(str::as_bytes), Some(NAMES[1]));
    assert_eq!((&lines[2]["mangled_hex"], &lines[2]["mangled"]), (&Value::from("fffe"), &Value::Null));
    let ids: Vec<&Value> = lines.iter().map(|line| &line["id"]).collect();
    assert_eq!(ids, names.iter().map(|id| Value::from(*id)).collect::<Vec<_>>().iter().collect::<Vec<_>>());

    let index = json(&dir.join("index.json"));
    let cubins = index["cubins"].as_array().expect("a list");
    assert_eq!(cubins.len(), 2);
    assert_eq!((&cubins[0]["loads"], &cubins[0]["architecture"]), (&Value::from(2), &Value::from("sm_90")));
    assert_eq!(cubins[0]["functions"], serde_json::json!(["k0", "_Z5scaleIfEvPT_S0_i"]));
    let k0 = serde_json::json!({"name": "k0", "code_bytes": 384, "registers": 8, "static_shared_bytes": 0,
        "local_bytes": 0, "stack_bytes": 0, "max_threads": null});
    assert_eq!((&cubins[0]["kernels"][0], &cubins[0]["kernels"][1]["name"]), (&k0, &cubins[0]["functions"][1]));
    assert_eq!(
        (&cubins[0]["cupti_crc"], &cubins[0]["cupti_crc_reason"]),
        (&Value::Null, &Value::from("not asked for"))
    );
    let name = format!("{:08x}-{}.cubin", crc32fast::hash(CUBIN), CUBIN.len());
    assert_eq!(cubins[0]["file"], Value::from(name.as_str()));
    assert_eq!(fs::read(dir.join("cubins").join(name)).expect("the cubin"), CUBIN);
    assert!(cubins[1]["parse_error"].as_str().is_some_and(|error| !error.is_empty()));
    let list = CubinList::open(&dir).expect("the recording");
    assert_eq!((list.of_kernel("k0"), list.cubins()[0].loads, list.index_error()), (&[0][..], Some(2), ""));
    assert_eq!(list.cubins()[1].error, cubins[1]["parse_error"].as_str().unwrap_or_default());

    let summary = json(&dir.join("summary.json"));
    assert_eq!(summary["complete"], true);
    assert_eq!(summary["tap"]["pid"], std::process::id());
    assert_eq!(summary["snapshot"]["counts"]["delivered"], 1003);
    assert_eq!(summary["snapshot"]["counts"]["attempted"], 1003);
}

#[test]
fn a_summary_has_the_readings_by_which_times_are_told_as_wall_time() {
    let tap = Tap::new(Backing::Shm);
    let root = tempfile::tempdir().expect("a folder");
    let point = |monotonic_ns| ClockPoint { monotonic_ns, realtime_ns: monotonic_ns + 1_000, error_ns: 30 };
    tap.writer.status().add_clock_point(point(7));
    let session = tap.session();
    let recorder = Recorder::create(root.path(), &session, Now::read()).expect("an empty folder");
    tap.writer.status().add_clock_point(point(8));
    recorder.finish(&session.snapshot(Now::read()), Now::read()).expect("room");
    let clock = &json(&root.path().join("summary.json"))["clock"];
    assert_eq!(clock["begin"], serde_json::json!({"monotonic_ns": 7, "realtime_ns": 1_007, "error_ns": 30}));
    assert_eq!(clock["end"]["monotonic_ns"], 8);
}

#[test]
fn summary_and_index_are_written_on_the_way_when_due() {
    let tap = Tap::new(Backing::Shm);
    let root = tempfile::tempdir().expect("a folder");
    let mut session = tap.session();
    let now = Now::read();
    let mut recorder = Recorder::create(root.path(), &session, now).expect("an empty folder will do");
    session.step(now, &mut recorder).expect("room");
    recorder.keep(now, || panic!("not due")).expect("nothing to do");
    assert!(!root.path().join("summary.json").exists());
    let later = Now { monotonic_ns: now.monotonic_ns + 3_000_000_000, ..now };
    recorder.keep(later, || session.snapshot(later)).expect("room");
    assert_eq!(json(&root.path().join("summary.json"))["complete"], false);
    recorder.keep(later, || panic!("not due again")).expect("nothing to do");
}

#[test]
fn existing_output_and_impossible_folders_are_refused_with_a_word() {
    let tap = Tap::new(Backing::Shm);
    let session = tap.session();
    let root = tempfile::tempdir().expect("a folder");
    let file = root.path().join("file");
    fs::write(&file, b"precious").expect("room");
    let create = |dir: &Path| Recorder::create(dir, &session, Now::read()).expect_err("refused");
    let occupied = create(root.path());
    assert!(matches!(occupied, RecordError::NotEmpty { .. }));
    assert!(occupied.to_string().contains("-o"), "{occupied}");
    assert!(matches!(create(&file), RecordError::NotAFolder { .. }));
    assert!(matches!(create(&file.join("below")), RecordError::Create { .. }));
    assert!(matches!(create(Path::new("/proc/gputap-recording")), RecordError::Create { .. }));
    assert_eq!(fs::read(&file).expect("still there"), b"precious");
}

#[test]
fn a_folder_that_goes_away_is_an_error_and_the_session_goes_on() {
    let tap = Tap::new(Backing::Shm);
    let root = tempfile::tempdir().expect("a folder");
    let dir = root.path().join("recording");
    let mut session = tap.session();
    let mut recorder = Recorder::create(&dir, &session, Now::read()).expect("a new folder");
    fs::remove_dir_all(&dir).expect("ours");
    tap.cubin(CUBIN);
    let error = session.step(Now::read(), &mut recorder).expect_err("no folder");
    assert!(error.to_string().contains("could not be written"), "{error}");
    assert_eq!(session.snapshot(Now::read()).modules.len(), 1);
    assert!(recorder.finish(&session.snapshot(Now::read()), Now::read()).is_err());
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
    let mut recorder =
        Recorder::create(Path::new(&variable("GPUTAP_TEST_DIR")), &session, Now::read()).expect("a folder");
    loop {
        let now = Now::read();
        session.step(now, &mut recorder as &mut dyn EventSink).expect("room");
        recorder.keep(now, || session.snapshot(now)).expect("room");
    }
}

#[test]
fn after_kill_9_the_files_are_whole_up_to_the_last_line() {
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
        let size = || fs::metadata(dir.join("kernels.csv")).map_or(0, |meta| meta.len());
        while size() < 300_000 * (round + 1) {
            assert!(Instant::now() < deadline, "the child records nothing");
            (0..100).for_each(|_| tap.write(100, &kernel(name, written, written + 5)));
            written += 1;
            tap.cubin(format!("cubin {round} {written:07}").repeat(20).as_bytes());
        }
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        check_what_is_left(&dir);
    }
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
    let dir = variable("GPUTAP_TEST_DIR");
    let mut recorder = Recorder::create(Path::new(&dir), &session, Now::read()).expect("a folder");
    let error = loop {
        match session.step(Now::read(), &mut recorder) {
            Ok(progress) => assert!(progress.more, "all was written"),
            Err(error) => break error,
        }
    };
    let written = recorder.finish(&session.snapshot(Now::read()), Now::read()).expect("room for the documents");
    assert!(!written.complete);
    fs::write(format!("{dir}/told"), format!("{error}\n{}", written.events)).expect("room for a line");
}

#[test]
fn running_out_of_room_is_an_error_and_leaves_whole_lines() {
    let tap = Tap::new(Backing::Shm);
    let name = tap.name(b"k0");
    (0..4000u64).for_each(|i| tap.write(100, &kernel(name, i, i + 5)));
    let root = tempfile::tempdir().expect("a folder");
    let dir = root.path().join("recording");
    // 64 KiB a file; the signal that goes with the limit is ignored, so that it is an error like a full disk.
    let command =
        format!("trap '' XFSZ; ulimit -f 128; exec \"$0\" --exact recording_process_without_room {LIMITED_MARKER}");
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
    let told = text(&dir.join("told"));
    assert!(told.contains("kernels.csv could not be written") && told.contains("ulimit -f"), "{told}");
    let kernels = text(&dir.join("kernels.csv"));
    assert!(kernels.len() <= 65536 && kernels.len() > 65000 && kernels.ends_with('\n'), "{} bytes", kernels.len());
    let columns = kernels.lines().next().expect("the header").split(',').count();
    assert!(kernels.lines().all(|line| line.split(',').count() == columns));
    assert!(told.ends_with(&format!("\n{}", kernels.lines().count() - 1)), "{told}");
    // The other files are whole.
    assert_eq!(text(&dir.join("names.jsonl")).lines().count(), 1);
    let summary = json(&dir.join("summary.json"));
    assert_eq!(summary["snapshot"]["counts"]["delivered"], 4000);
    assert_eq!(summary["complete"], false);
}

fn check_what_is_left(dir: &Path) {
    let kernels = text(&dir.join("kernels.csv"));
    let whole = &kernels[..=kernels.rfind('\n').expect("at least the header")];
    let columns = whole.lines().next().expect("the header").split(',').count();
    let broken = whole.lines().find(|line| line.split(',').count() != columns);
    assert_eq!(broken, None);
    assert!(whole.lines().count() > 1000);
    for line in text(&dir.join("names.jsonl")).lines() {
        let _: Value = serde_json::from_str(line).expect("whole");
    }
    let mut cubins = 0;
    for entry in fs::read_dir(dir.join("cubins")).expect("the folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "cubin") {
            let bytes = fs::read(&path).expect("the cubin");
            let name = format!("{:08x}-{}.cubin", crc32fast::hash(&bytes), bytes.len());
            assert_eq!(path.file_name().and_then(|n| n.to_str()), Some(name.as_str()));
            cubins += 1;
        }
    }
    assert!(cubins > 0);
    if dir.join("summary.json").exists() {
        assert_eq!(json(&dir.join("summary.json"))["complete"], false);
    }
}
