//! The deadlock on the fakes, in short: `cargo run -p gputap-tests --bin deadlock` is the long form.

use std::path::PathBuf;
use std::time::Duration;

use gputap_sim_job::JobSpec;
use gputap_tests::deadlock::{Rounds, Tap};
use gputap_tests::{Outcome, TappedJob, artifact};

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_deadlock"))
}

fn rounds(n: usize) -> Rounds {
    Rounds { program: program(), rounds: n, seconds: 1.0, threads: 4, stall: Duration::from_secs(2) }
}

#[test]
fn the_naive_tap_hangs_every_time_in_the_known_cycle() {
    let hangs = rounds(2).run(Tap::Naive).expect("rounds");
    assert_eq!(hangs.hung, 2);
    let stacks = hangs.first_stacks.expect("of the first hang");
    for thread in ["job-0", "control-timer", "cupti-worker"] {
        assert!(stacks.contains(thread), "{thread} is missing in:\n{stacks}");
    }
}

#[test]
fn a_tap_with_a_lock_that_no_flusher_holds_does_not_hang() {
    let hangs = rounds(3).run(Tap::Locking).expect("rounds");
    assert_eq!(hangs.hung, 0, "{}", hangs.first_stacks.unwrap_or_default());
    assert!(hangs.module_loads > 100);
}

#[test]
fn gputap_does_not_hang() {
    let hangs = rounds(3).run(Tap::Gputap).expect("rounds");
    assert_eq!(hangs.hung, 0, "{}", hangs.first_stacks.unwrap_or_default());
    assert!(hangs.module_loads > 100);
}

#[test]
fn the_jobs_own_count_is_what_cupti_saw() {
    let job = TappedJob {
        program: program(),
        spec: JobSpec {
            libcuda: artifact("fake_cuda").expect("built"),
            threads: 3,
            steps: 20,
            modules: 30,
            module_bytes_max: 64 << 10,
            load_churn: true,
            heartbeat_ms: 50,
            ..JobSpec::default()
        },
        shim: Some(artifact("locking_shim").expect("built")),
        cupti: artifact("fake_cupti").expect("built"),
        env: Vec::new(),
        stall: Duration::from_secs(10),
        stacks: true,
    };
    let Outcome::Finished { report, tap, .. } = job.run().expect("started") else { panic!("the job did not finish") };
    assert_eq!(report.steps, 60);
    assert_eq!(report.kernels, report.kernels_by_name.values().sum::<u64>());
    assert_eq!(report.module_loads, 30 + 60, "30 that stay, one a step that comes and goes");
    assert_eq!(report.module_loads, tap.module_callbacks);
    let copies = report.host_to_device.count + report.device_to_host.count + report.device_to_device.count;
    assert_eq!(report.kernels + copies + report.memsets.count, tap.records_written);
    assert_eq!(tap.records_dropped, 0);
}
