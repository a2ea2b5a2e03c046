//! CUPTI's checksums through a child process, and everything that can go wrong with one.
//!
//! The child is this test binary itself, run on the one test `crc_child`; the "library" names how it behaves. The real
//! libcupti answers too where GPUTAP_REAL_CUPTI names one (CI: that of the wheel nvidia-cuda-cupti-cu12 12.9).

#[allow(dead_code, reason = "each file of tests uses its part")]
mod support;

use gputap_reader::clock::Now;
use gputap_reader::crc::{Candidate, CrcError, CrcWorker, CuptiCrc, Deadlines, Program, cupti_crc_child_main, probe};
use gputap_reader::doctor::examine;
use gputap_reader::session::{NoSink, Options, Session};
use gputap_ringbuf::header::identity::Backing;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::Tap;

const MARKER: &str = "as-the-crc-child";
const HELLO: u8 = 1;
const CRC: u8 = 2;
const CUPTI_RESULT: u8 = 3;

/// The self-test's checksum, as the real library gives it.
const SELF_TEST_CRC: u64 = 0x7de7_7325;

fn this_binary() -> Program {
    let arguments = ["--exact", "crc_child", "--test-threads=1", MARKER].map(str::to_owned).to_vec();
    Program { path: std::env::current_exe().expect("this binary"), arguments }
}

fn deadlines() -> Deadlines {
    // Long enough for a loaded machine, save where a test waits for one to pass.
    Deadlines { start: Duration::from_secs(20), cubin: Duration::from_secs(20), cubin_mib: Duration::from_millis(1) }
}

fn candidate(path: &str) -> Candidate {
    Candidate { path: path.into(), origin: "the test" }
}

fn crc_of(libraries: &[&str], deadlines: Deadlines) -> CuptiCrc {
    CuptiCrc::new(this_binary(), libraries.iter().map(|path| candidate(path)).collect(), deadlines)
}

/// Does nothing when the tests are run; is the child when [`this_binary`] is.
#[test]
fn crc_child() {
    let arguments: Vec<String> = std::env::args().collect();
    let Some(at) = arguments.iter().position(|argument| argument == MARKER) else { return };
    let library = arguments[at + 1].clone();
    match library.strip_prefix("behave:") {
        Some(behaviour) => behave(behaviour),
        None => {
            cupti_crc_child_main(Path::new(&library));
        }
    }
    // Whatever the harness prints afterwards goes nowhere.
}

fn reply(socket: &mut UnixStream, tag: u8, value: u64) {
    let mut bytes = vec![tag];
    bytes.extend(value.to_le_bytes());
    socket.write_all(&bytes).expect("the parent reads");
}

fn behave(behaviour: &str) {
    let fd = std::io::stdin().as_fd().try_clone_to_owned().expect("a socket");
    let mut socket = UnixStream::from(fd);
    match behaviour {
        "exit" => std::process::exit(7),
        "hang" => forever(),
        "nonsense" => socket.write_all(&[0x5a; 64]).expect("the parent reads"),
        _ => {}
    }
    reply(&mut socket, HELLO, 130000);
    let mut asked = 0;
    let mut len = [0; 8];
    while socket.read_exact(&mut len).is_ok() {
        let behaves = asked == 0 || behaviour == "well";
        if !behaves && behaviour == "hang-unread" {
            forever();
        }
        let mut cubin = vec![0; u64::from_le_bytes(len) as usize];
        socket.read_exact(&mut cubin).expect("the parent sends all");
        asked += 1;
        match behaviour {
            "wrong-value" => reply(&mut socket, CRC, 1),
            _ if behaves => reply(&mut socket, CRC, if asked == 1 { SELF_TEST_CRC } else { cubin.len() as u64 }),
            "cupti-error" => reply(&mut socket, CUPTI_RESULT, 999),
            "crash-later" => std::process::abort(),
            "hang-later" => forever(),
            "nonsense-later" => reply(&mut socket, 99, 0),
            other => panic!("no behaviour {other}"),
        }
    }
}

fn forever() -> ! {
    loop {
        std::thread::park();
    }
}

#[test]
fn a_well_behaved_library_answers_and_is_named() {
    let mut crc = crc_of(&["behave:well"], deadlines());
    assert!(crc.library().is_none());
    let cubin = vec![1; 5 << 20];
    assert_eq!(crc.crc(&cubin).expect("an answer"), 5 << 20);
    assert_eq!(crc.crc(b"abc").expect("an answer"), 3);
    let library = crc.library().expect("it works");
    assert_eq!((library.path.as_path(), library.version), (Path::new("behave:well"), 130000));
}

#[test]
fn the_first_candidate_that_works_is_taken() {
    let mut crc = crc_of(&["/nowhere/libcupti.so.13", "behave:exit", "behave:wrong-value", "behave:well"], deadlines());
    assert_eq!(crc.crc(b"abc").expect("an answer"), 3);
    assert_eq!(crc.library().map(|library| library.path.clone()), Some(PathBuf::from("behave:well")));
}

#[test]
fn no_library_is_a_reason_that_names_each_one_tried() {
    let mut crc = crc_of(&["/nowhere/libcupti.so.13", "libm.so.6", "behave:nonsense"], deadlines());
    let error = crc.crc(b"abc").expect_err("none works");
    assert!(matches!(error, CrcError::NoLibrary { .. }));
    let text = error.to_string();
    for part in ["/nowhere/libcupti.so.13", "cannot open", "cuptiGetCubinCrc", "nonsense", "GPUTAP_CUPTI"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Later cubins cost no processes.
    assert!(matches!(crc.crc(b"abc"), Err(CrcError::GivenUp { .. })));
    assert!(matches!(crc_of(&[], deadlines()).crc(b"abc"), Err(CrcError::NoLibrary { .. })));
}

#[test]
fn an_error_of_cupti_costs_one_cubin_and_no_process() {
    let mut crc = crc_of(&["behave:cupti-error"], deadlines());
    for _ in 0..10 {
        let error = crc.crc(b"abc").expect_err("999");
        assert!(matches!(error, CrcError::Cupti { code: 999 }), "{error}");
    }
}

#[test]
fn a_crashing_child_is_started_again_a_few_times() {
    let mut crc = crc_of(&["behave:crash-later"], deadlines());
    let errors: Vec<String> = (0..6).map(|_| crc.crc(b"abc").expect_err("a crash").to_string()).collect();
    assert!(errors[0].contains("ended (signal: 6"), "{errors:?}");
    assert!(errors[5].contains("given up after 3 restarts"), "{errors:?}");
}

#[test]
fn a_hanging_child_is_killed_at_its_deadline() {
    let deadlines = Deadlines { cubin: Duration::from_millis(100), ..deadlines() };
    for behaviour in ["behave:hang-later", "behave:hang-unread"] {
        let mut crc = crc_of(&[behaviour], deadlines);
        // More than a socket holds, so that sending has to wait as well.
        let cubin = vec![0; 8 << 20];
        let error = crc.crc(&cubin).expect_err("no answer");
        assert!(matches!(error, CrcError::Hung { .. }), "{behaviour}: {error}");
    }
}

#[test]
fn a_child_that_never_starts_up_is_killed_at_its_deadline() {
    let deadlines = Deadlines { start: Duration::from_millis(100), ..deadlines() };
    let began = Instant::now();
    let error = probe(&this_binary(), Path::new("behave:hang"), &deadlines).expect_err("silence");
    assert!(matches!(error, CrcError::Hung { waited_ms: 100 }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn nonsense_and_a_missing_program_are_reasons() {
    let mut crc = crc_of(&["behave:nonsense-later"], deadlines());
    assert!(matches!(crc.crc(b"abc"), Err(CrcError::BadReply)));
    let program = Program { path: "/nowhere/gputap".into(), arguments: vec![] };
    let error = probe(&program, Path::new("libcupti.so"), &deadlines()).expect_err("no program");
    assert!(error.to_string().contains("/nowhere/gputap"), "{error}");
}

#[test]
fn the_worker_answers_every_cubin_it_took() {
    let mut worker = CrcWorker::start(crc_of(&["behave:well"], deadlines())).expect("a thread");
    let mut answers = Vec::new();
    let mut next = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    while answers.len() < 20 {
        assert!(Instant::now() < deadline, "only {} answers", answers.len());
        if next < 20 && worker.submit(next, vec![0; next as usize + 1]) {
            next += 1;
        }
        while let Some(done) = worker.next_done() {
            answers.push((done.slot, done.crc.expect("an answer")));
        }
        std::thread::yield_now();
    }
    assert_eq!(worker.outstanding(), 0);
    assert_eq!(answers, (0..20).map(|slot| (slot, u64::from(slot) + 1)).collect::<Vec<_>>());
}

#[test]
fn a_session_gets_cuptis_checksum_of_every_cubin_or_a_reason() {
    let tap = Tap::new(Backing::Shm);
    let ready = CuptiCrc::new(this_binary(), vec![candidate("behave:well")], deadlines());
    let missing = CuptiCrc::new(this_binary(), vec![candidate("/nowhere/libcupti.so.13")], deadlines());
    for (crc, works) in [(ready, true), (missing, false)] {
        let options = Options { kinds: 0, cupti_crc: Some(crc) };
        let mut session = Session::open(&tap.found, options, Now::read()).expect("readable");
        // More than wait at once.
        (1..=30usize).for_each(|size| tap.cubin(&vec![b'x'; size]));
        support::step_until(&mut session, &mut NoSink, |progress| !progress.more && progress.pending_checksums == 0);
        let snapshot = session.snapshot(Now::read());
        assert_eq!(snapshot.modules.len(), 30);
        for row in &snapshot.modules {
            assert_eq!(row.cupti_crc, works.then_some(row.size_bytes), "{row:?}");
            assert_eq!(row.cupti_crc_reason.is_empty(), works, "{row:?}");
        }
        assert_eq!(snapshot.cupti_crc_by.contains("behave:well"), works, "{}", snapshot.cupti_crc_by);
    }
}

#[test]
fn the_doctor_asks_the_helper_and_not_itself() {
    let report = examine(&this_binary(), Now::read());
    assert!(!report.cupti.is_empty() && !report.kernel_version.is_empty());
    assert!(report.cupti.iter().all(|found| found.version.is_some() == found.error.is_empty()), "{:?}", report.cupti);
    assert!(serde_json::to_value(&report).is_ok());
}

/// Bytes `i * 37 + 11`, and what libcupti 12.9.79 says of them; 11.8, 12.1, 12.4 and 13.0 say the same.
const VECTORS: [(usize, u64); 16] = [
    (1, 0x3e80_1244),
    (2, 0xdf67_d11c),
    (3, 0xce08_c8db),
    (7, 0x17d4_95e9),
    (8, 0x1b80_0041),
    (15, 0x6b91_b807),
    (16, 0xe001_5b65),
    (17, 0x6c41_da4c),
    (63, 0xcd3b_6296),
    (64, SELF_TEST_CRC),
    (65, 0xef07_6f4e),
    (255, 0x0eeb_8357),
    (256, 0xdd80_175a),
    (1000, 0xe673_ed6c),
    (4096, 0x6f98_ca25),
    (65536, 0xb406_634c),
];
const CUBINS: [(&[u8], u64); 3] = [
    (include_bytes!("data/two-12.4-sm_90a.cubin"), 0xc718_6006),
    (include_bytes!("data/two-13.5-sm_75.cubin"), 0x5ad4_c4c5),
    (include_bytes!("data/two-13.5-sm_90-lineinfo.cubin"), 0x4411_71bd),
];

#[test]
#[ignore = "needs NVIDIA's libcupti, named in GPUTAP_REAL_CUPTI; .ci/run installs one and runs this"]
fn the_real_library_gives_the_known_values() {
    let library = std::env::var_os("GPUTAP_REAL_CUPTI").expect("GPUTAP_REAL_CUPTI names a libcupti");
    let candidate = Candidate { path: library.into(), origin: "GPUTAP_REAL_CUPTI" };
    let mut crc = CuptiCrc::new(this_binary(), vec![candidate], deadlines());
    for (len, expected) in VECTORS {
        let bytes: Vec<u8> = (0..len).map(|i| (i as u8).wrapping_mul(37).wrapping_add(11)).collect();
        assert_eq!(crc.crc(&bytes).expect("an answer"), expected, "{len} bytes");
    }
    for (cubin, expected) in CUBINS {
        assert_eq!(crc.crc(cubin).expect("an answer"), expected);
    }
    assert!(matches!(crc.crc(b""), Err(CrcError::Cupti { code: 1 })));
    assert!(crc.library().is_some_and(|library| library.version >= 12));
}
