//! Versions, faults and other settings of the fake CUPTI.

use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::Ordering;

use gputap_tests::{in_child, isolated};

use crate::cuda::{Cuda, cubin};
use crate::cupti::{BUFFER_BYTES, Cupti, Record, records};

/// Launches `n` kernels and gives their records.
fn launch(cuda: &Cuda, cupti: &Cupti, n: usize) -> Vec<Record> {
    let module = cuda.load_module(&cubin("k", 1_000)).unwrap();
    let function = cuda.function(module, "k").unwrap();
    (0..n).for_each(|_| assert_eq!(cuda.launch(function, std::ptr::null_mut()), 0));
    cuda.synchronize();
    cupti.flush(false);
    records()
}

fn record_size_is(test: &str, setting: &str, version: u32, bytes: u64) {
    isolated(test, &[("FAKE_CUPTI_VERSION", setting)], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        assert_eq!(cupti.version(), version);
        cuda.start();
        // Room for exactly ten records of this size: twenty fill two buffers.
        BUFFER_BYTES.store(10 * bytes as usize, Ordering::Relaxed);
        cupti.record();
        assert_eq!(launch(&cuda, &cupti, 20).len(), 20);
        assert_eq!(cupti.counters().buffers_completed, 2);
        BUFFER_BYTES.store(10 * bytes as usize - 8, Ordering::Relaxed);
        assert_eq!(launch(&cuda, &cupti, 20).len(), 20);
        assert_eq!(cupti.counters().buffers_completed, 2 + 3);
    });
}

#[test]
fn version_11_8_writes_kernel8() {
    record_size_is("settings::version_11_8_writes_kernel8", "11.8", 18, 200);
}

#[test]
fn version_12_4_writes_kernel9() {
    record_size_is("settings::version_12_4_writes_kernel9", "22", 22, 208);
}

#[test]
fn version_13_0_writes_kernel10() {
    record_size_is("settings::version_13_0_writes_kernel10", "130001", 130_001, 216);
}

#[test]
fn version_13_5_writes_kernel13() {
    record_size_is("settings::version_13_5_writes_kernel13", "130500", 130_500, 248);
}

#[test]
fn scripted_faults_hit_their_function() {
    let env = [("FAKE_CUPTI_FAULTS", "subscribe=39*2,flush=999*1,enable.CONCURRENT_KERNEL=1")];
    isolated("settings::scripted_faults_hit_their_function", &env, || {
        let (_cuda, cupti) = (Cuda::load(), Cupti::load());
        assert_eq!(cupti.subscribe(), Err(39));
        assert_eq!(cupti.subscribe(), Err(39));
        assert!(cupti.subscribe().is_ok());
        assert_eq!((cupti.flush(false), cupti.flush(false)), (999, 0));
        assert_eq!((cupti.enable(10), cupti.enable(10), cupti.enable(1)), (1, 1, 0));
    });
}

#[test]
fn every_nth_record_is_dropped_or_has_no_times() {
    let env = [("FAKE_CUPTI_DROP_EVERY", "5"), ("FAKE_CUPTI_ZERO_TIMES_EVERY", "4")];
    isolated("settings::every_nth_record_is_dropped_or_has_no_times", &env, || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        cuda.start();
        cupti.record();
        let delivered = launch(&cuda, &cupti, 20);
        assert_eq!(delivered.len(), 16);
        assert_eq!(cupti.dropped(std::ptr::null_mut()), 4);
        // Of 4, 8, 12, 16 and 20, the last is dropped.
        assert_eq!(delivered.iter().filter(|record| record.times() == (0, 0)).count(), 4);
    });
}

#[test]
fn a_null_buffer_crashes_before_12_9() {
    let test = "settings::a_null_buffer_crashes_before_12_9";
    let ended = in_child(test, &[("FAKE_CUPTI_VERSION", "22")], || {
        let (cuda, cupti) = (Cuda::load(), Cupti::load());
        cuda.start();
        BUFFER_BYTES.store(usize::MAX, Ordering::Relaxed);
        cupti.record();
        launch(&cuda, &cupti, 1);
    });
    if let Some(ended) = ended {
        assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{ended:?}");
    }
}

#[test]
fn the_crc_needs_no_driver() {
    isolated("settings::the_crc_needs_no_driver", &[], || {
        let cupti = Cupti::load();
        let mut image = cubin("k", 1_000);
        let crc = cupti.crc(&image);
        assert!(crc <= u64::from(u32::MAX) && crc == cupti.crc(&image));
        image[128] ^= 1;
        assert_ne!(crc, cupti.crc(&image));
        assert_eq!(cupti.subscribe(), Err(15), "but a subscription does");
    });
}
