//! What a recording on a real GPU shows holds for one of the simulated job on the fakes, and the other way round: if the
//! fakes drift from the real thing, this fails.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use gputap_reader::clock::Now;
use gputap_reader::recording::{Recording, Settings};
use gputap_reader::session::{Options, Session};
use gputap_recording::Block;
use gputap_ringbuf::event::{BASIC_KINDS, Event};
use gputap_sim_job::JobSpec;
use gputap_tests::{Watched, artifact};

/// What ran on the device, whatever file it comes from.
#[derive(Debug)]
struct Work {
    start_ns: u64,
    end_ns: u64,
    correlation: u64,
    context: u64,
    stream: u64,
    /// Of a kernel: its name's id, and its launch shape's first numbers.
    kernel: Option<(u64, [u64; 2])>,
}

/// Of a recording in which nothing was lost.
struct Recorded {
    work: Vec<Work>,
    names: HashSet<u64>,
    attempted: u64,
    delivered: u64,
}

/// The recording of the GPU is of the second format's time: CSV.
fn of_csv(folder: &Path) -> Recorded {
    let work = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
        let row = |line: &str| -> BTreeMap<String, u64> {
            let cells = line.split(',').map(|cell| cell.parse().unwrap_or_else(|_| panic!("{name}: {line}")));
            head.iter().map(|column| (*column).to_owned()).zip(cells).collect()
        };
        let of_row = |row: BTreeMap<String, u64>| Work {
            start_ns: row["start_ns"],
            end_ns: row["end_ns"],
            correlation: row["correlation"],
            context: row["context"],
            stream: row["stream"],
            kernel: row.get("name_id").map(|name| (*name, [row["grid_x"], row["block_x"]])),
        };
        lines.map(row).map(of_row).collect::<Vec<_>>()
    };
    let json = |text: &str| -> serde_json::Value { serde_json::from_str(text).expect("JSON") };
    let summary = json(&fs::read_to_string(folder.join("summary.json")).expect("a summary"));
    assert_eq!(summary["complete"], true);
    let names = fs::read_to_string(folder.join("names.jsonl")).expect("names");
    let counts = &summary["snapshot"]["counts"];
    Recorded {
        work: ["kernels.csv", "copies.csv", "memsets.csv"].into_iter().flat_map(work).collect(),
        names: names.lines().map(|line| json(line)["id"].as_u64().expect("an id")).collect(),
        attempted: counts["attempted"].as_u64().expect("a number"),
        delivered: counts["delivered"].as_u64().expect("a number"),
    }
}

fn of_segments(folder: &Path) -> Recorded {
    let recording = gputap_recording::Recording::open(folder).expect("a recording");
    let mut recorded = Recorded { work: Vec::new(), names: HashSet::new(), attempted: 0, delivered: 0 };
    let mut stream = recording.processes()[0].stream(BASIC_KINDS);
    while let Some(block) = stream.next_block() {
        match block {
            Block::Events(events) => recorded.work.extend(events.iter().filter_map(work_of)),
            Block::Status(status) => (recorded.attempted, recorded.delivered) = (status.attempted, status.delivered),
            Block::Module(_) => {}
        }
    }
    assert_eq!(stream.problems(), []);
    let ids = recorded.work.iter().filter_map(|work| work.kernel).map(|(name, _)| name);
    recorded.names = ids.filter(|id| stream.names().get(*id as u32).is_some()).collect();
    recorded
}

fn work_of(event: &Event) -> Option<Work> {
    let of = |start_ns, end_ns, correlation, context: u32, stream: u32, kernel| {
        Some(Work { start_ns, end_ns, correlation, context: context.into(), stream: stream.into(), kernel })
    };
    match event {
        Event::Kernel(k) => {
            let kernel = (u64::from(k.name_id), [k.grid[0].into(), k.block[0].into()]);
            of(k.start_ns, k.end_ns, k.correlation_id, k.context_id, k.stream_id, Some(kernel))
        }
        Event::Memcpy(c) => of(c.start_ns, c.end_ns, c.correlation_id, c.context_id, c.stream_id, None),
        Event::Memset(m) => of(m.start_ns, m.end_ns, m.correlation_id, m.context_id, m.stream_id, None),
        _ => None,
    }
}

/// What must hold of a recording in which nothing was lost. `is_wall_time`: CLOCK_REALTIME of this century.
fn check(recorded: &Recorded, is_wall_time: bool) {
    let Recorded { work, names, attempted, delivered } = recorded;
    let count = work.len() as u64;
    assert!(count > 0);
    assert_eq!((*delivered, *attempted), (count, count));
    let kernels = || work.iter().filter_map(|work| work.kernel);
    assert!(kernels().all(|(name, _)| names.contains(&name)), "every kernel has a name");
    assert!(kernels().all(|(_, [grid, block])| grid > 0 && block > 0));
    let distinct: HashSet<u64> = work.iter().map(|work| work.correlation).collect();
    assert_eq!(distinct.len(), work.len(), "each call has a correlation id of its own");

    let mut streams: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for work in work {
        let (start, end) = (work.start_ns, work.end_ns);
        assert!(start > 0 && end >= start && (start > 1_000_000_000_000_000_000) == is_wall_time, "{work:?}");
        streams.entry((work.context, work.stream)).or_default().push((start, end));
    }
    for (stream, mut times) in streams {
        times.sort_unstable();
        let overlap = times.windows(2).find(|pair| pair[1].0 < pair[0].1);
        assert_eq!(overlap, None, "a stream does one thing at a time: {stream:?}");
    }
}

#[test]
fn a_recording_of_a_real_job_is_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/h200-torch-gpt");
    check(&of_csv(&folder), true);
    let index: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.join("index.json")).expect("an index")).expect("JSON");
    let cubins = index["cubins"].as_array().expect("a list");
    assert_eq!(cubins.len(), 22);
    assert!(cubins.iter().all(|cubin| cubin["cupti_crc"].is_u64() && cubin["architecture"] == "sm_90"));
}

#[test]
fn a_recording_of_the_simulated_job_is_as_a_real_one() {
    let folder = record_the_simulated_job();
    check(&of_segments(&folder), false);
    fs::remove_dir_all(folder).expect("removed");
}

fn record_the_simulated_job() -> PathBuf {
    let spec = JobSpec { libcuda: artifact("fake_cuda").expect("built"), threads: 2, steps: 20, ..JobSpec::default() };
    let mut command = Command::new(env!("CARGO_BIN_EXE_deadlock"));
    command.arg("--as-job").args(spec.to_words().expect("words"));
    command.env("CUDA_INJECTION64_PATH", artifact("gputap_shim").expect("built"));
    command.env("GPUTAP_CUPTI", artifact("fake_cupti").expect("built")).env("GPUTAP_START", "recording");
    let job = Watched::spawn(&mut command).expect("started");
    let deadline = Instant::now() + Duration::from_secs(30);
    let options = || Options { kinds: BASIC_KINDS, cupti_crc: None };
    let mut session = loop {
        match Session::attach(job.pid(), options(), Now::read()) {
            Ok(session) => break session,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::yield_now();
    };
    let folder = std::env::temp_dir().join(format!("gputap-recorded-{}", std::process::id()));
    let recording = Recording::create(&folder, Settings::default(), Now::read()).expect("an empty folder");
    let mut recorder = recording.recorder(&session, Now::read()).expect("room");
    while !session.step(Now::read(), &mut recorder).expect("written").ended {
        recorder.keep(Now::read(), &session).expect("room");
        assert!(Instant::now() < deadline, "the job does not end");
        std::thread::yield_now();
    }
    recorder.finish(Now::read(), &session).expect("finished");
    recording.finish(Now::read()).expect("finished");
    folder
}
