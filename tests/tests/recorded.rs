//! What a recording on a real GPU shows holds for one of the simulated job on the fakes, and the other way round: if the
//! fakes drift from the real thing, or the format from its document, this fails.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use gputap_reader::clock::Now;
use gputap_reader::recording::{Recording as Folder, Settings};
use gputap_reader::session::{Options, Session};
use gputap_recording::{Block, Recording, Status};
use gputap_ringbuf::event::{BASIC_KINDS, Event, KernelEvent};
use gputap_sim_job::JobSpec;
use gputap_tests::{Watched, artifact};

/// What was read of a recording of one process.
#[derive(Default)]
struct Read {
    kernels: Vec<KernelEvent>,
    /// Context, stream, start, end and correlation id of whatever ran.
    runs: Vec<[u64; 5]>,
    nameless: usize,
    status: Status,
}

fn read(folder: &Path) -> Read {
    let recording = Recording::open(folder).expect("a recording");
    let [process] = recording.processes() else { panic!("{} processes", recording.processes().len()) };
    let mut stream = process.stream(BASIC_KINDS);
    let mut read = Read::default();
    let mut names = Vec::new();
    while let Some(block) = stream.next_block() {
        match block {
            Block::Status(status) => read.status = status,
            Block::Module(_) => {}
            Block::Events(events) => events.iter().for_each(|event| read.take(event)),
        }
        names.extend(read.kernels[names.len()..].iter().map(|kernel| kernel.name_id));
        read.nameless = names.iter().filter(|id| stream.names().index(**id).is_none()).count();
    }
    assert_eq!((recording.problems(), stream.problems()), (&[][..], &[][..]));
    read
}

impl Read {
    fn take(&mut self, event: &Event) {
        let run = |context: u32, stream: u32, start, end, correlation| {
            [u64::from(context), u64::from(stream), start, end, correlation]
        };
        self.runs.push(match event {
            Event::Kernel(k) => {
                self.kernels.push(*k);
                run(k.context_id, k.stream_id, k.start_ns, k.end_ns, k.correlation_id)
            }
            Event::Memcpy(c) => run(c.context_id, c.stream_id, c.start_ns, c.end_ns, c.correlation_id),
            Event::Memset(m) => run(m.context_id, m.stream_id, m.start_ns, m.end_ns, m.correlation_id),
            other => panic!("{other:?}"),
        });
    }
}

/// What must hold of a recording in which nothing was lost.
fn check(folder: &Path) {
    let read = read(folder);
    let counted = read.runs.len() as u64;
    assert!(counted > 0 && read.status.complete);
    assert_eq!((read.status.delivered, read.status.attempted), (counted, counted));
    assert_eq!(read.nameless, 0, "every kernel has a name");
    assert!(read.kernels.iter().all(|kernel| kernel.grid[0] > 0 && kernel.block[0] > 0));

    let distinct: HashSet<u64> = read.runs.iter().map(|run| run[4]).collect();
    assert_eq!(distinct.len(), read.runs.len(), "each call has a correlation id of its own");

    let mut streams: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for [context, stream, start, end, _] in read.runs {
        // CLOCK_MONOTONIC: no machine has run for so long.
        assert!(start > 0 && end >= start && end < 1_000_000_000_000_000_000, "{start} {end}");
        streams.entry((context, stream)).or_default().push((start, end));
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
    let recording = Folder::create(&folder, Settings::default(), Now::read()).expect("a new folder");
    let mut recorder = recording.recorder(&session, Now::read()).expect("room");
    while !session.step(Now::read(), &mut recorder).expect("written").ended {
        assert!(Instant::now() < deadline, "the job does not end");
        std::thread::yield_now();
    }
    recorder.finish(Now::read(), &session).expect("finished");
    recording.finish(Now::read()).expect("finished");
    folder
}
