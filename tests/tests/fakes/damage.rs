//! Faults by script: what they do to records and to calls.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fake_cupti::damage::LONG_NAME_BYTES;
use fake_cupti::layout::KernelRecord;
use gputap_tests::{in_child, isolated};

use crate::cuda::{Cuda, cubin};
use crate::cupti::{BUFFER_BYTES, Cupti, Record, completers, name, records};

/// Launches `n` kernels `k` under a recording CUPTI, waits for them and flushes.
fn launch(n: usize) -> (Cuda, Cupti, Vec<Record>) {
    let (cuda, cupti) = (Cuda::load(), Cupti::load());
    cuda.start();
    cupti.record();
    let module = cuda.load_module(&cubin("k", 1_000)).unwrap();
    let function = cuda.function(module, "k").unwrap();
    (0..n).for_each(|_| assert_eq!(cuda.launch(function, std::ptr::null_mut()), 0));
    cuda.synchronize();
    assert_eq!(cupti.flush(false), 0);
    let delivered = records();
    (cuda, cupti, delivered)
}

fn kernels(records: &[Record]) -> Vec<KernelRecord> {
    let kernel = |record: &Record| match record {
        Record::Kernel(kernel) => *kernel,
        other => panic!("{other:?}"),
    };
    records.iter().map(kernel).collect()
}

/// Correlation ids, counted from the first launch.
fn order(records: &[Record]) -> Vec<u32> {
    let first = records.iter().map(Record::correlation_id).min().unwrap();
    records.iter().map(|record| record.correlation_id() - first).collect()
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn every_nth_record_comes_twice() {
    isolated("damage::every_nth_record_comes_twice", &[("FAKE_CUPTI_DUPLICATE_EVERY", "3")], || {
        assert_eq!(order(&launch(6).2), [0, 1, 2, 2, 3, 4, 5, 5]);
    });
}

#[test]
fn every_nth_record_comes_after_the_next() {
    isolated("damage::every_nth_record_comes_after_the_next", &[("FAKE_CUPTI_SWAP_EVERY", "3")], || {
        assert_eq!(order(&launch(7).2), [0, 1, 3, 2, 4, 6, 5]);
    });
}

#[test]
fn a_record_held_back_comes_with_the_flush() {
    isolated("damage::a_record_held_back_comes_with_the_flush", &[("FAKE_CUPTI_SWAP_EVERY", "3")], || {
        assert_eq!(order(&launch(3).2), [0, 1, 2]);
    });
}

#[test]
fn every_nth_record_ends_before_it_starts() {
    isolated("damage::every_nth_record_ends_before_it_starts", &[("FAKE_CUPTI_REVERSE_TIMES_EVERY", "2")], || {
        let reversed: Vec<_> = launch(4).2.iter().map(|r| r.times().1 < r.times().0).collect();
        assert_eq!(reversed, [false, true, false, true]);
    });
}

#[test]
fn names_are_missing_or_endless() {
    let env = [("FAKE_CUPTI_NULL_NAME_EVERY", "2"), ("FAKE_CUPTI_LONG_NAME_EVERY", "3")];
    isolated("damage::names_are_missing_or_endless", &env, || {
        let delivered = kernels(&launch(5).2);
        let lengths: Vec<_> = delivered.iter().map(|kernel| name(kernel).len()).collect();
        assert_eq!(lengths, [1, 0, LONG_NAME_BYTES, 0, 1]);
        assert!(delivered[1].name.is_null());
        assert!(name(&delivered[2]).starts_with("_Z4longILj7ELj7E"));
    });
}

#[test]
fn every_nth_record_is_of_a_kind_that_nobody_knows() {
    isolated(
        "damage::every_nth_record_is_of_a_kind_that_nobody_knows",
        &[("FAKE_CUPTI_ALIEN_KIND_EVERY", "2")],
        || {
            let delivered = launch(4).2;
            let [Record::Kernel(_), Record::Alien(999), Record::Kernel(_), Record::Alien(999)] = delivered[..] else {
                panic!("{delivered:?}");
            };
        },
    );
}

#[test]
fn buffers_that_are_kept_never_come_back() {
    isolated("damage::buffers_that_are_kept_never_come_back", &[("FAKE_CUPTI_KEEP_BUFFER_EVERY", "2")], || {
        BUFFER_BYTES.store(216 * 10, Ordering::Relaxed);
        let (_, cupti, delivered) = launch(40);
        assert_eq!(delivered.len(), 20);
        let counters = cupti.counters();
        assert_eq!((counters.buffers_requested, counters.buffers_completed), (4, 2));
        assert_eq!((counters.buffers_kept, counters.records_kept), (2, 20));
        assert_eq!(cupti.dropped(std::ptr::null_mut()), 0, "CUPTI does not know that it lost them");
    });
}

#[test]
fn several_threads_complete_buffers() {
    isolated("damage::several_threads_complete_buffers", &[("FAKE_CUPTI_COMPLETERS", "3")], || {
        BUFFER_BYTES.store(216 * 10, Ordering::Relaxed);
        let (_, cupti, delivered) = launch(120);
        assert_eq!(delivered.len(), 120, "all of them before the flush returned");
        assert_eq!((completers(), cupti.counters().completers), (3, 3));
        let mut sorted = order(&delivered);
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..120));
    });
}

#[test]
fn a_silent_cupti_says_nothing_and_fails_nowhere() {
    isolated("damage::a_silent_cupti_says_nothing_and_fails_nowhere", &[("FAKE_CUPTI_SILENT", "1")], || {
        let (_, cupti, delivered) = launch(10);
        assert_eq!(delivered.len(), 0);
        assert_eq!((cupti.counters().buffers_requested, cupti.dropped(std::ptr::null_mut())), (0, 0));
    });
}

#[test]
fn the_clock_steps_at_a_record() {
    isolated("damage::the_clock_steps_at_a_record", &[("FAKE_CUPTI_CLOCK_STEP_MS", "-3600000@3")], || {
        const HOUR_NS: u64 = 3_600_000_000_000;
        const SOON_NS: u64 = 60_000_000_000;
        let (_, cupti, delivered) = launch(4);
        let now = now_ns();
        let ends: Vec<_> = delivered.iter().map(|record| record.times().1).collect();
        assert!(ends[..2].iter().all(|&end| now.abs_diff(end) < SOON_NS), "{ends:?} {now}");
        assert!(ends[2..].iter().all(|&end| (now - HOUR_NS).abs_diff(end) < SOON_NS), "{ends:?} {now}");
        assert!(cupti.timestamp().abs_diff(now - HOUR_NS) < SOON_NS);
    });
}

#[test]
fn a_clients_clock_does_not_step() {
    isolated("damage::a_clients_clock_does_not_step", &[("FAKE_CUPTI_CLOCK_STEP_MS", "3600000@1")], || {
        unsafe extern "C" fn clock() -> u64 {
            now_ns()
        }
        Cuda::load();
        Cupti::load().register_clock(clock);
        let (_, cupti, delivered) = launch(2);
        assert!(delivered[1].times().1 <= now_ns() && cupti.timestamp() <= now_ns());
    });
}

#[test]
fn a_clients_clock_is_forgotten_at_finalize() {
    isolated("damage::a_clients_clock_is_forgotten_at_finalize", &[], || {
        unsafe extern "C" fn clock() -> u64 {
            1_000
        }
        let (_, cupti, _) = launch(1);
        cupti.register_clock(clock);
        assert_eq!(cupti.timestamp(), 1_000);
        assert_eq!(cupti.finalize(), 0);
        assert!(cupti.timestamp().abs_diff(now_ns()) < 60_000_000_000);
        let (_, _, again) = launch(1);
        assert!(again[0].times().1.abs_diff(now_ns()) < 60_000_000_000);
    });
}

#[test]
fn the_version_and_the_layouts_may_disagree() {
    let env = [("FAKE_CUPTI_VERSION", "130500"), ("FAKE_CUPTI_LAYOUTS", "130001")];
    isolated("damage::the_version_and_the_layouts_may_disagree", &env, || {
        // Room for ten records of 13.0, and for eight of 13.5.
        BUFFER_BYTES.store(216 * 10, Ordering::Relaxed);
        let (_, cupti, delivered) = launch(20);
        assert_eq!((cupti.version(), delivered.len()), (130_500, 20));
        assert_eq!(cupti.counters().buffers_completed, 2);
    });
}

#[test]
fn one_call_fails_and_those_around_it_do_not() {
    let env = [("FAKE_CUPTI_FAULTS", "flush=999@2,enable.MEMORY2=1@1,disable=3@2")];
    isolated("damage::one_call_fails_and_those_around_it_do_not", &env, || {
        let (_, cupti, _) = launch(1);
        let flushes: Vec<_> = (0..3).map(|_| cupti.flush(false)).collect();
        assert_eq!(flushes, [999, 0, 0], "the first was the launch's");
        assert_eq!((cupti.enable(49), cupti.enable(49)), (1, 0));
        assert_eq!((cupti.disable(49), cupti.disable(49), cupti.disable(49)), (0, 3, 0));
    });
}

#[test]
fn a_slow_flush_takes_its_time() {
    isolated("damage::a_slow_flush_takes_its_time", &[("FAKE_CUPTI_FLUSH_MS", "80")], || {
        let (_, cupti, _) = launch(1);
        let began = Instant::now();
        assert_eq!(cupti.flush(false), 0);
        assert!(began.elapsed() >= Duration::from_millis(80));
    });
}

#[test]
fn a_fault_that_cannot_be_read_is_named() {
    let test = "damage::a_fault_that_cannot_be_read_is_named";
    let ended = in_child(test, &[("FAKE_CUPTI_FAULTS", "flush=often")], || {
        assert_eq!(launch(1).1.flush(false), 0);
    });
    if let Some(ended) = ended {
        assert!(ended.status.success() && ended.stderr.contains("cannot read the fault \"flush=often\""), "{ended:?}");
    }
}
