//! Whatever CUPTI does wrong by script, the tapped job ends as if untapped: it launches what it launches untapped, says
//! nothing on stderr, and exits with 0. (What a reader then sees is the scenarios' business.)

use std::path::PathBuf;
use std::time::Duration;

use gputap_sim_job::JobSpec;
use gputap_tests::{Outcome, TapCounts, TappedJob, artifact};

/// A short job with all sorts of callbacks in it: its kernels, and what CUPTI did.
fn job(shim: Option<&str>, env: &[(&'static str, &str)]) -> (u64, TapCounts) {
    let mut all = vec![("GPUTAP_FLUSH_MS", "5".to_owned()), ("GPUTAP_START", "blackbox".to_owned())];
    all.extend(env.iter().map(|&(name, value)| (name, value.to_owned())));
    let job = TappedJob {
        program: PathBuf::from(env!("CARGO_BIN_EXE_deadlock")),
        spec: JobSpec {
            libcuda: artifact("fake_cuda").expect("built"),
            threads: 2,
            steps: 20,
            layers: 1,
            module_bytes_max: 64 << 10,
            load_churn: true,
            context_churn: true,
            sync_every_steps: 2,
            heartbeat_ms: 50,
            ..JobSpec::default()
        },
        shim: shim.map(|shim| artifact(shim).expect("built")),
        cupti: artifact("fake_cupti").expect("built"),
        env: all,
        stall: Duration::from_secs(20),
        stacks: true,
    };
    match job.run().expect("started") {
        Outcome::Finished { report, tap, stderr } => {
            assert_eq!(stderr, "", "{env:?}");
            (report.kernels, tap)
        }
        Outcome::Hung { stacks, stderr, .. } => panic!("{env:?}: hung\n{stderr}\n{}", stacks.unwrap_or_default()),
        Outcome::Failed { reason, stderr } => panic!("{env:?}: {reason}\n{stderr}"),
    }
}

/// What must have become of records by the time that the job has ended; the last of them may still be on their way.
enum Records {
    Written,
    NoneDelivered,
    Any,
}

/// Runs the job under each setting.
fn unharmed(settings: &[&[(&'static str, &str)]], records: Records) {
    let (untapped, _) = job(None, &[]);
    assert!(untapped > 0);
    for env in settings {
        let (kernels, counts) = job(Some("gputap_shim"), env);
        assert_eq!(kernels, untapped, "{env:?}");
        let as_expected = match records {
            Records::Written => counts.records_written > 0,
            Records::NoneDelivered => counts.records_delivered == 0,
            Records::Any => true,
        };
        assert!(as_expected, "{env:?}: {counts:?}");
    }
}

#[test]
fn by_damaged_records() {
    let settings = [
        "FAKE_CUPTI_DROP_EVERY",
        "FAKE_CUPTI_DUPLICATE_EVERY",
        "FAKE_CUPTI_SWAP_EVERY",
        "FAKE_CUPTI_ZERO_TIMES_EVERY",
        "FAKE_CUPTI_REVERSE_TIMES_EVERY",
        "FAKE_CUPTI_NULL_NAME_EVERY",
        "FAKE_CUPTI_LONG_NAME_EVERY",
        "FAKE_CUPTI_ALIEN_KIND_EVERY",
    ];
    // Half a megabyte for every single kernel would only be slow.
    let all_of_them = ["FAKE_CUPTI_ZERO_TIMES_EVERY", "FAKE_CUPTI_NULL_NAME_EVERY", "FAKE_CUPTI_ALIEN_KIND_EVERY"];
    for setting in all_of_them {
        unharmed(&[&[(setting, "1")]], Records::Written);
    }
    for setting in settings {
        unharmed(&[&[(setting, "7")]], Records::Written);
    }
}

#[test]
fn by_other_layouts_than_it_was_told() {
    unharmed(
        &[
            &[("FAKE_CUPTI_VERSION", "130500"), ("FAKE_CUPTI_LAYOUTS", "130001")],
            &[("FAKE_CUPTI_VERSION", "130001"), ("FAKE_CUPTI_LAYOUTS", "130500")],
            &[("FAKE_CUPTI_VERSION", "130001"), ("FAKE_CUPTI_LAYOUTS", "11.8")],
            &[("FAKE_CUPTI_VERSION", "11.8"), ("FAKE_CUPTI_LAYOUTS", "130500")],
        ],
        Records::Written,
    );
}

#[test]
fn by_buffers_clocks_and_ids() {
    unharmed(
        &[
            &[("FAKE_CUPTI_KEEP_BUFFER_EVERY", "2")],
            &[("FAKE_CUPTI_COMPLETERS", "4")],
            &[("FAKE_CUPTI_CLOCK_STEP_MS", "-3600000@50")],
            &[("FAKE_CUPTI_CLOCK_STEP_MS", "3600000@50")],
            &[("FAKE_CUPTI_FLUSH_MS", "50")],
            &[("FAKE_CUDA_FIRST_CORRELATION", "4294967290")],
        ],
        Records::Written,
    );
}

#[test]
fn by_silence() {
    unharmed(&[&[("FAKE_CUPTI_SILENT", "1")], &[("FAKE_CUPTI_KEEP_BUFFER_EVERY", "1")]], Records::NoneDelivered);
}

#[test]
fn by_calls_that_fail_where_it_can_still_record() {
    for name in ["finalize", "get_next_record", "dropped", "set_attribute", "timestamp", "timestamp_callback", "ids"] {
        let (always, third) = (format!("{name}=999"), format!("{name}=999@3"));
        unharmed(
            &[&[("FAKE_CUPTI_FAULTS", always.as_str())], &[("FAKE_CUPTI_FAULTS", third.as_str())]],
            Records::Written,
        );
    }
    unharmed(&[&[("FAKE_CUPTI_FAULTS", "flush=999@2,enable=999@1")]], Records::Any);
}

#[test]
fn by_calls_that_fail_and_leave_it_nothing_to_record() {
    for name in ["subscribe", "enable_callback", "register_callbacks", "version", "enable"] {
        let always = format!("{name}=999");
        unharmed(&[&[("FAKE_CUPTI_FAULTS", always.as_str())]], Records::NoneDelivered);
    }
}
