//! Activity buffers and records.

use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gputap_tests::{in_child, isolated};

use crate::cuda::{Cuda, Handle, cubin};
use crate::cupti::{BUFFER_BYTES, Cupti, MAX_RECORDS, Record, name, records};
use fake_cupti::layout::KIND_MEMCPY;

const LONG_NS: u64 = 400_000_000;

/// A recording CUPTI, and a kernel of this duration, loaded, on a stream of its own.
fn recording(duration_ns: u64) -> (Cuda, Cupti, Handle, Handle) {
    let (cuda, cupti) = (Cuda::load(), Cupti::load());
    cuda.start();
    cupti.record();
    let module = cuda.load_module(&cubin("_Z4axpyfPfS_", duration_ns)).unwrap();
    let function = cuda.function(module, "_Z4axpyfPfS_").unwrap();
    let stream = cuda.stream();
    (cuda, cupti, function, stream)
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn a_plain_flush_keeps_an_unfinished_kernel_back() {
    isolated("activity::a_plain_flush_keeps_an_unfinished_kernel_back", &[], || {
        let (cuda, cupti, function, stream) = recording(LONG_NS);
        cuda.clear(0, 0, 64, std::ptr::null_mut());
        assert_eq!(cuda.launch(function, stream), 0);
        assert_eq!(cupti.flush(false), 0);
        assert_eq!(records().len(), 0, "the finished memset lies in the same buffer and waits too");
        cuda.synchronize();
        assert_eq!(cupti.flush(false), 0);
        let delivered = records();
        assert_eq!(delivered.len(), 2);
        let (start, end) = delivered[1].times();
        assert!((end - start).abs_diff(LONG_NS) < LONG_NS / 20 && end <= now_ns());
    });
}

#[test]
fn a_forced_flush_gives_zero_times_and_never_again() {
    isolated("activity::a_forced_flush_gives_zero_times_and_never_again", &[], || {
        let (cuda, cupti, function, stream) = recording(LONG_NS);
        assert_eq!(cuda.launch(function, stream), 0);
        assert_eq!(cupti.flush(true), 0);
        let delivered = records();
        assert_eq!(delivered.len(), 1);
        assert_eq!(delivered[0].times(), (0, 0));
        cuda.synchronize();
        cupti.flush(true);
        assert_eq!(records().len(), 0);
        assert_eq!(cupti.counters().records_unfinished, 1);
    });
}

#[test]
fn records_say_what_was_launched() {
    isolated("activity::records_say_what_was_launched", &[], || {
        static BATCH: [u8; 1000] = [0; 1000];
        let before = now_ns();
        let (cuda, cupti, function, stream) = recording(5_000);
        let memory = cuda.allocate();
        cuda.copy_to_device(memory, &BATCH, stream);
        cuda.clear(memory, 7, 256, std::ptr::null_mut());
        cuda.launch(function, stream);
        cuda.synchronize();
        cupti.flush(false);
        let [Record::Memcpy(copy), Record::Memset(set), Record::Kernel(kernel)] = records()[..] else {
            panic!("in launch order");
        };
        assert_eq!((copy.bytes, copy.copy_kind, copy.src_kind, copy.dst_kind, copy.copy_count), (1000, 1, 1, 3, 1));
        assert_eq!((set.bytes, set.value, set.memory_kind, set.stream_id), (256, 7, 3, 7));
        assert_eq!(name(&kernel), "_Z4axpyfPfS_");
        assert_eq!(kernel.kind, 10);
        assert_eq!(kernel.shape, [2, 3, 4, 32, 2, 1]);
        assert_eq!((kernel.registers_per_thread, kernel.static_shared_memory), (42, 128));
        assert_eq!(kernel.dynamic_shared_memory, 512);
        assert_eq!((kernel.device_id, kernel.context_id, kernel.stream_id), (0, 1, 13));
        assert_eq!(cupti.stream_id(std::ptr::null_mut(), stream), 13);
        assert_eq!(cupti.stream_id(std::ptr::null_mut(), std::ptr::null_mut()), 7);
        assert!(copy.correlation_id < set.correlation_id && set.correlation_id < kernel.correlation_id);
        assert!(copy.end <= kernel.start, "one stream, one thing after the other");
        assert!(before < copy.start && kernel.end < now_ns());
    });
}

#[test]
fn every_buffer_comes_back_with_every_record_once() {
    isolated("activity::every_buffer_comes_back_with_every_record_once", &[], || {
        const LAUNCHES: usize = 1_000;
        BUFFER_BYTES.store(1_000, Ordering::Relaxed);
        let (cuda, cupti, function, stream) = recording(1_000);
        for launch in 0..LAUNCHES {
            // Buffers of one record, and buffers that fill up.
            MAX_RECORDS.store(launch / 20 % 2, Ordering::Relaxed);
            assert_eq!(cuda.launch(function, stream), 0);
        }
        cuda.synchronize();
        cupti.flush(false);
        let counters = cupti.counters();
        assert_eq!(counters.buffers_requested, counters.buffers_completed);
        assert!(counters.buffers_completed as usize > LAUNCHES / 4);
        let ids: Vec<_> = records().iter().map(Record::correlation_id).collect();
        assert_eq!(ids.len(), LAUNCHES);
        assert!(ids.is_sorted_by(|a, b| a < b));
        assert_eq!(cupti.dropped(std::ptr::null_mut()), 0);
    });
}

#[test]
fn full_buffers_come_back_without_a_flush() {
    isolated("activity::full_buffers_come_back_without_a_flush", &[], || {
        let (cuda, cupti, function, stream) = recording(1_000);
        for _ in 0..200 {
            cuda.launch(function, stream);
        }
        cuda.synchronize();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        // 18 records of 216 bytes fit in 4096; the last buffer is not full.
        while cupti.counters().buffers_completed < 200 / 18 {
            assert!(std::time::Instant::now() < deadline, "{:?}", cupti.counters());
            std::thread::yield_now();
        }
        assert_eq!(records().len(), 200 / 18 * 18);
    });
}

#[test]
fn records_without_room_are_counted_once_for_the_global_queue() {
    isolated("activity::records_without_room_are_counted_once_for_the_global_queue", &[], || {
        BUFFER_BYTES.store(0, Ordering::Relaxed);
        let (cuda, cupti, function, stream) = recording(1_000);
        (0..5).for_each(|_| assert_eq!(cuda.launch(function, stream), 0));
        // From 12.9 on a null buffer drops too, and does not crash.
        BUFFER_BYTES.store(usize::MAX, Ordering::Relaxed);
        (0..2).for_each(|_| assert_eq!(cuda.launch(function, stream), 0));
        BUFFER_BYTES.store(4096, Ordering::Relaxed);
        (0..3).for_each(|_| assert_eq!(cuda.launch(function, stream), 0));
        cuda.synchronize();
        cupti.flush(false);
        let context = cuda.start();
        assert_eq!(cupti.dropped(context), 0, "there is no queue of the context's own");
        assert_eq!(cupti.dropped(std::ptr::null_mut()), 7);
        assert_eq!(cupti.dropped(std::ptr::null_mut()), 0, "told once");
        assert_eq!(records().len(), 3);
        let counters = cupti.counters();
        assert_eq!(counters.buffers_requested, counters.buffers_completed, "useless buffers come back too");
    });
}

#[test]
fn kinds_are_recorded_only_while_enabled() {
    isolated("activity::kinds_are_recorded_only_while_enabled", &[], || {
        let (cuda, cupti, function, stream) = recording(1_000);
        cupti.disable(10);
        cuda.launch(function, stream);
        cuda.clear(0, 0, 64, stream);
        cupti.enable(10);
        cuda.launch(function, stream);
        cuda.synchronize();
        cupti.flush(false);
        assert!(matches!(records()[..], [Record::Memset(_), Record::Kernel(_)]));
    });
}

#[test]
fn records_carry_the_clients_clock() {
    isolated("activity::records_carry_the_clients_clock", &[], || {
        unsafe extern "C" fn an_hour_ago() -> u64 {
            now_ns() - 3_600_000_000_000
        }
        let (cuda, cupti, function, stream) = recording(1_000);
        cupti.register_clock(an_hour_ago);
        cuda.launch(function, stream);
        cuda.synchronize();
        cupti.flush(false);
        let (start, end) = records()[0].times();
        let now = now_ns() - 3_600_000_000_000;
        assert!(start < end && now.abs_diff(end) < 10_000_000_000);
    });
}

/// The control for `leases::switching_recording_in_a_job_that_copies_leaves_it_alive`.
#[test]
fn switching_copies_off_in_a_process_that_copies_ends_it() {
    let finished = in_child("activity::switching_copies_off_in_a_process_that_copies_ends_it", &[], || {
        let (cuda, cupti, _function, stream) = recording(1000);
        assert_eq!(cupti.disable(KIND_MEMCPY), 0, "nothing has been copied yet");
        assert_eq!(cupti.enable(KIND_MEMCPY), 0);
        assert_eq!(cuda.copy_to_device(cuda.allocate(), b"bytes", stream), 0);
        cuda.synchronize();
        cupti.disable(KIND_MEMCPY);
    });
    if let Some(finished) = finished {
        assert!(
            !finished.status.success() && finished.stderr.contains("MEMCPY was switched off"),
            "{}",
            finished.stderr
        );
    }
}
