//! What a recording on a real GPU shows holds for one of the simulated job on the fakes, and the other way round: if the
//! fakes drift from the real thing, or the format from its document, this fails.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use gputap_reader::clock::Now;
use gputap_reader::recording::Recorder;
use gputap_reader::session::{Options, Session};
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_sim_job::JobSpec;
use gputap_tests::{Watched, artifact};

/// Lines of a CSV file as columns by name.
struct Table(Vec<BTreeMap<String, u64>>);

impl Table {
    fn read(folder: &Path, name: &str) -> Table {
        let text = fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
        let row = |line: &str| {
            let cells = line.split(',').map(|cell| cell.parse().unwrap_or_else(|_| panic!("{name}: {line}")));
            head.iter().map(|column| (*column).to_owned()).zip(cells).collect()
        };
        Table(lines.map(row).collect())
    }

    fn column(&self, name: &str) -> Vec<u64> {
        self.0.iter().map(|row| row[name]).collect()
    }
}

/// What must hold of a recording in which nothing was lost.
fn check(folder: &Path) {
    let [kernels, copies, memsets] = ["kernels.csv", "copies.csv", "memsets.csv"].map(|name| Table::read(folder, name));
    let summary: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.join("summary.json")).expect("a summary")).expect("JSON");
    assert_eq!(summary["complete"], true);
    // CLOCK_REALTIME of this century in the first version, CLOCK_MONOTONIC since then.
    let is_wall_time = summary["version"] == 1;
    let counts = &summary["snapshot"]["counts"];
    let lines = (kernels.0.len() + copies.0.len() + memsets.0.len()) as u64;
    assert!(lines > 0);
    assert_eq!((counts["delivered"].as_u64(), counts["attempted"].as_u64()), (Some(lines), Some(lines)));

    let names: HashSet<u64> = fs::read_to_string(folder.join("names.jsonl"))
        .expect("names")
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["id"].as_u64().expect("an id"))
        .collect();
    assert!(kernels.column("name_id").iter().all(|id| names.contains(id)), "every kernel has a name");
    assert!(kernels.column("grid_x").iter().chain(&kernels.column("block_x")).all(|size| *size > 0));

    let correlations: Vec<u64> = [&kernels, &copies, &memsets].iter().flat_map(|t| t.column("correlation")).collect();
    let distinct: HashSet<&u64> = correlations.iter().collect();
    assert_eq!(distinct.len(), correlations.len(), "each call has a correlation id of its own");

    let mut streams: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for row in [&kernels, &copies, &memsets].iter().flat_map(|table| &table.0) {
        let (start, end) = (row["start_ns"], row["end_ns"]);
        assert!(start > 0 && end >= start && (start > 1_000_000_000_000_000_000) == is_wall_time, "{row:?}");
        streams.entry((row["context"], row["stream"])).or_default().push((start, end));
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
    check(&folder);
    let index: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.join("index.json")).expect("an index")).expect("JSON");
    let cubins = index["cubins"].as_array().expect("a list");
    assert_eq!(cubins.len(), 22);
    assert!(cubins.iter().all(|cubin| cubin["cupti_crc"].is_u64() && cubin["architecture"] == "sm_90"));
}

#[test]
fn a_recording_of_the_simulated_job_is_as_a_real_one() {
    let folder = record_the_simulated_job();
    check(&folder);
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
    let mut recorder = Recorder::create(&folder, &session, Now::read()).expect("an empty folder");
    while !session.step(Now::read(), &mut recorder).expect("written").ended {
        assert!(Instant::now() < deadline, "the job does not end");
        std::thread::yield_now();
    }
    let now = Now::read();
    recorder.finish(&session.snapshot(now), now).expect("finished");
    folder
}
