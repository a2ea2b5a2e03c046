//! The locks of a tap's callbacks, as a preloaded watcher sees them: gputap takes none; the controls do, and the naive
//! one's closes the cycle of the deadlock even where it does not hang.

use std::path::PathBuf;
use std::time::Duration;

use gputap_sim_job::JobSpec;
use gputap_tests::{Outcome, TappedJob, artifact};

/// What the watcher wrote.
struct Seen {
    taken: Vec<String>,
    cycles: Vec<String>,
    /// Callbacks, locks taken in them, waits for the worker, cycles; None of a job that did not exit by itself.
    sum: Option<[u64; 4]>,
}

impl Seen {
    fn read(stderr: &str) -> Self {
        let lines = |word: &str| {
            let begins = format!("lock-watch: {word} ");
            stderr.lines().filter(|line| line.starts_with(&begins)).map(str::to_owned).collect()
        };
        let sum = stderr.lines().find_map(|line| {
            let numbers =
                line.strip_prefix("lock-watch: ")?.split(", ").map(|part| part.split(' ').next()?.parse().ok());
            numbers.collect::<Option<Vec<_>>>()?.try_into().ok()
        });
        Self { taken: lines("taken"), cycles: lines("cycle"), sum }
    }
}

/// A short job of one thread, with every sort of callback in it, under a tap that flushes rarely or often.
fn watch(shim: &str, env: &[(&'static str, &str)]) -> Seen {
    let preload = artifact("lock_watch").expect("built").to_str().expect("UTF-8").to_owned();
    let mut env: Vec<_> = env.iter().map(|&(name, value)| (name, value.to_owned())).collect();
    env.push(("LD_PRELOAD", preload));
    let job = TappedJob {
        program: PathBuf::from(env!("CARGO_BIN_EXE_deadlock")),
        spec: JobSpec {
            libcuda: artifact("fake_cuda").expect("built"),
            seconds: 1.0,
            layers: 1,
            module_bytes_max: 64 << 10,
            load_churn: true,
            context_churn: true,
            sync_every_steps: 4,
            heartbeat_ms: 50,
            ..JobSpec::default()
        },
        shim: Some(artifact(shim).expect("built")),
        cupti: artifact("fake_cupti").expect("built"),
        env,
        stall: Duration::from_secs(2),
        stacks: false,
    };
    match job.run().expect("started") {
        Outcome::Finished { stderr, .. } | Outcome::Hung { stderr, .. } => Seen::read(&stderr),
        Outcome::Failed { reason, stderr } => panic!("{reason}\n{stderr}"),
    }
}

#[test]
fn gputap_takes_no_lock_in_a_callback() {
    let seen = watch("gputap_shim", &[("GPUTAP_FLUSH_MS", "1"), ("GPUTAP_START", "blackbox")]);
    assert!(seen.taken.is_empty() && seen.cycles.is_empty(), "{:?} {:?}", seen.taken, seen.cycles);
    let [callbacks, taken, waits, cycles] = seen.sum.expect("it ended by itself");
    assert_eq!((taken, cycles), (0, 0));
    assert!(callbacks > 40 && waits > 3, "{callbacks} callbacks, {waits} waits");
}

#[test]
fn a_lock_of_the_callbacks_own_is_seen_and_closes_no_cycle() {
    for callback in ["module_load", "context_create", "launch", "synchronize"] {
        let seen = watch("locking_shim", &[("NAIVE_FLUSH_US", "1000"), ("NAIVE_CALLBACK", callback)]);
        assert!(seen.taken.iter().any(|line| line.contains("taken mutex")), "{callback}: {:?}", seen.taken);
        assert!(seen.cycles.is_empty(), "{callback}: {:?}", seen.cycles);
        let [_, taken, waits, _] = seen.sum.expect("it ended by itself");
        assert!(taken > 10 && waits > 3, "{callback}: {taken} taken, {waits} waits");
    }
}

#[test]
fn the_flushers_lock_in_a_callback_is_a_cycle_in_every_one() {
    let all = ["module_load", "module_unload", "context_create", "context_destroy", "launch", "synchronize"];
    for callback in all {
        // So seldom that most runs end well.
        let seen = watch("naive_shim", &[("NAIVE_FLUSH_US", "50000"), ("NAIVE_CALLBACK", callback)]);
        assert_eq!(seen.cycles.len(), 1, "{callback}: {:?}", seen.taken);
        let under_the_driver_lock = seen.taken.iter().any(|line| line.contains("while the driver lock is held"));
        assert!(under_the_driver_lock, "{callback}: {:?}", seen.taken);
    }
}
