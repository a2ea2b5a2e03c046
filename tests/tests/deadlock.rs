//! The deadlock on the fakes, in short: `cargo run -p gputap-tests --bin deadlock -- --callback all` is the long form.

use std::path::PathBuf;
use std::time::Duration;

use gputap_sim_job::JobSpec;
use gputap_tests::deadlock::{Callback, Rounds, Tap};
use gputap_tests::{Outcome, TappedJob, artifact};

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_deadlock"))
}

fn rounds(callback: Callback, n: usize) -> Rounds {
    Rounds { callback, program: program(), rounds: n, seconds: 1.0, threads: 4, stall: Duration::from_secs(2) }
}

/// The naive tap hangs with its lock taken in this callback; a lock of the callback's own, and gputap, do not.
fn only_the_naive_tap_hangs(callback: Callback) {
    let naive = rounds(callback, 1).run(Tap::Naive).expect("rounds");
    assert_eq!(naive.hung, 1);
    let stacks = naive.first_stacks.expect("of the first hang");
    for thread in ["job-0", "control-timer", "cupti-worker"] {
        assert!(stacks.contains(thread), "{thread} is missing in:\n{stacks}");
    }
    let locking = rounds(callback, 1).run(Tap::Locking).expect("rounds");
    assert_eq!(locking.hung, 0, "{}", locking.first_stacks.unwrap_or_default());
    assert!(locking.callbacks > 20, "{} callbacks", locking.callbacks);
    let gputap = rounds(callback, 1).run(Tap::Gputap).expect("rounds");
    assert_eq!(gputap.hung, 0, "{}", gputap.first_stacks.unwrap_or_default());
}

#[test]
fn only_the_naive_tap_hangs_when_modules_load() {
    only_the_naive_tap_hangs(Callback::ModuleLoad);
}

#[test]
fn only_the_naive_tap_hangs_when_modules_unload() {
    only_the_naive_tap_hangs(Callback::ModuleUnload);
}

#[test]
fn only_the_naive_tap_hangs_when_contexts_are_made() {
    only_the_naive_tap_hangs(Callback::ContextCreate);
}

#[test]
fn only_the_naive_tap_hangs_when_contexts_are_destroyed() {
    only_the_naive_tap_hangs(Callback::ContextDestroy);
}

#[test]
fn only_the_naive_tap_hangs_when_kernels_are_launched() {
    only_the_naive_tap_hangs(Callback::Launch);
}

#[test]
fn only_the_naive_tap_hangs_when_streams_are_waited_for() {
    only_the_naive_tap_hangs(Callback::Synchronize);
}

#[test]
fn gputap_does_not_hang() {
    let hangs = rounds(Callback::ModuleLoad, 3).run(Tap::Gputap).expect("rounds");
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
