//! Records of what the CPU does: waits, memory, pools, flushes.

use gputap_tests::isolated;

use crate::cuda::{Cuda, cubin};
use crate::cupti::{Cupti, Record, delivered_bytes, records};

const NONE: u32 = u32::MAX;
const OVERHEAD: u32 = 17;
const SYNCHRONIZATION: u32 = 38;
const MEMORY2: u32 = 49;
const MEMORY_POOL: u32 = 50;
const GRAPH_TRACE: u32 = 51;
const RUNTIME: u32 = 5;

fn recording(kinds: &[u32]) -> (Cuda, Cupti) {
    let (cuda, cupti) = (Cuda::load(), Cupti::load());
    cuda.start();
    cupti.record();
    cupti.disable(10);
    kinds.iter().for_each(|&kind| assert_eq!(cupti.enable(kind), 0));
    (cuda, cupti)
}

#[test]
fn every_wait_is_a_record() {
    isolated("host::every_wait_is_a_record", &[], || {
        const LONG_NS: u64 = 30_000_000;
        let (cuda, cupti) = recording(&[SYNCHRONIZATION]);
        let module = cuda.load_module(&cubin("long", LONG_NS)).unwrap();
        let function = cuda.function(module, "long").unwrap();
        let (stream, other, event) = (cuda.stream(), cuda.stream(), cuda.event());
        cuda.launch(function, stream);
        assert_eq!(cuda.record_event(event, stream), 0);
        assert_eq!(cuda.wait_for_event(other, event), 0);
        assert_eq!(cuda.synchronize_event(event), 0);
        assert_eq!(cuda.synchronize_stream(stream), 0);
        cuda.synchronize();
        cupti.flush(false);
        let waits: Vec<_> = records()
            .iter()
            .map(|record| match record {
                Record::Synchronization(wait) => *wait,
                other => panic!("{other:?}"),
            })
            .collect();
        let facts: Vec<_> =
            waits.iter().map(|w| (w.synchronization_type, w.context_id, w.stream_id, w.event_id)).collect();
        assert_eq!(facts, [(2, 1, 14, 1), (1, 1, NONE, 1), (3, 1, 13, NONE), (4, 1, NONE, NONE)]);
        assert_eq!((waits[0].event_sync_id, waits[1].event_sync_id), (1, 1), "the event's first recording");
        assert_eq!(waits[2].event_sync_id, u64::from(NONE));
        assert!(waits[1].end - waits[1].start > LONG_NS / 2, "waited for the kernel: {:?}", waits[1]);
        assert!(waits.is_sorted_by(|a, b| a.end <= b.start && a.correlation_id < b.correlation_id));
    });
}

#[test]
fn a_stream_that_waits_for_an_event_begins_after_it() {
    isolated("host::a_stream_that_waits_for_an_event_begins_after_it", &[], || {
        let (cuda, cupti) = recording(&[10]);
        let module = cuda.load_module(&cubin("k", 3_000_000)).unwrap();
        let function = cuda.function(module, "k").unwrap();
        let (stream, other, event) = (cuda.stream(), cuda.stream(), cuda.event());
        cuda.launch(function, stream);
        cuda.record_event(event, stream);
        cuda.wait_for_event(other, event);
        cuda.launch(function, other);
        cuda.synchronize();
        cupti.flush(false);
        let [first, second] = records()[..] else { panic!("two kernels") };
        assert!(first.times().1 <= second.times().0);
    });
}

#[test]
fn memory_comes_and_goes() {
    isolated("host::memory_comes_and_goes", &[], || {
        let (cuda, cupti) = recording(&[MEMORY2, MEMORY_POOL]);
        let stream = cuda.stream();
        let plain = cuda.allocate();
        let pooled = cuda.allocate_async(1000, stream);
        assert_eq!(cuda.free(plain), 0);
        assert_eq!(cuda.free(plain), 1, "freed once");
        assert_eq!(cuda.free_async(pooled, stream), 0);
        cupti.flush(false);
        let memory: Vec<_> = records()
            .iter()
            .map(|record| match record {
                Record::Memory(memory) => *memory,
                other => panic!("{other:?}"),
            })
            .collect();
        let facts: Vec<_> = memory.iter().map(|m| (m.operation, m.address, m.bytes, m.is_async)).collect();
        let expected = [(1, plain, 4096, 0), (1, pooled, 1000, 1), (2, plain, 4096, 0), (2, pooled, 1000, 1)];
        assert_eq!(facts, expected);
        assert!(memory.iter().all(|m| m.memory_kind == 3 && m.process_id == std::process::id() && m.context_id == 1));
        assert_eq!((memory[0].stream_id, memory[1].stream_id), (7, 13));
        assert_eq!((memory[0].pool_type, memory[0].pool_address), (0, 0));
        assert_eq!((memory[1].pool_type, memory[1].pool_utilized_size), (1, 1000));
        assert_eq!((memory[3].pool_address, memory[3].pool_utilized_size), (memory[1].pool_address, 0));
        assert!(memory.is_sorted_by(|a, b| a.timestamp <= b.timestamp));
    });
}

#[test]
fn pools_are_made_trimmed_and_destroyed() {
    isolated("host::pools_are_made_trimmed_and_destroyed", &[], || {
        let (cuda, cupti) = recording(&[MEMORY_POOL]);
        let pool = cuda.create_pool();
        let memory = cuda.allocate_from_pool(3 << 20, pool, std::ptr::null_mut());
        assert_eq!(cuda.free_async(memory, std::ptr::null_mut()), 0);
        assert_eq!(cuda.trim_pool(pool, 1 << 20), 0);
        assert_eq!(cuda.destroy_pool(pool), 0);
        assert_eq!(cuda.destroy_pool(pool), 1);
        cupti.flush(false);
        let [Record::Pool(made), Record::Pool(trimmed), Record::Pool(gone)] = records()[..] else { panic!("three") };
        assert_eq!((made.operation, made.size, made.address), (1, 0, pool.addr() as u64));
        assert_eq!((trimmed.operation, trimmed.min_bytes_to_keep, trimmed.size), (3, 1 << 20, 1 << 20));
        assert_eq!((gone.operation, gone.address, gone.pool_type), (2, made.address, 1));
    });
}

#[test]
fn a_flush_costs_what_the_next_one_tells() {
    isolated("host::a_flush_costs_what_the_next_one_tells", &[("FAKE_CUPTI_FLUSH_MS", "30")], || {
        let (cuda, cupti) = recording(&[OVERHEAD]);
        cuda.clear(0, 0, 64, std::ptr::null_mut());
        cuda.synchronize();
        cupti.flush(false);
        assert!(matches!(records()[..], [Record::Memset(_)]));
        cupti.flush(false);
        let [Record::Overhead(flush)] = records()[..] else { panic!("the first flush") };
        assert_eq!((flush.overhead_kind, flush.object_kind), (1 << 16, 2));
        assert_eq!(flush.object_id[0], std::process::id());
        assert!(flush.end - flush.start >= 30_000_000, "slow by script: {flush:?}");
    });
}

/// So many bytes has a record of each kind in this version.
fn sizes_are(test: &str, version: &str, sizes: [(u32, u64); 6]) {
    isolated(test, &[("FAKE_CUPTI_VERSION", version)], || {
        let (cuda, cupti) = recording(&[]);
        let (_, exec) = cuda.graph(&[]);
        for (kind, bytes) in sizes {
            assert_eq!(cupti.enable(kind), 0);
            match kind {
                OVERHEAD => _ = cupti.flush(false),
                SYNCHRONIZATION => cuda.synchronize(),
                MEMORY2 => _ = cuda.allocate(),
                MEMORY_POOL => _ = cuda.create_pool(),
                GRAPH_TRACE => assert_eq!(cuda.launch_graph(exec, std::ptr::null_mut()), 0),
                _ => _ = cuda.runtime_launch(std::ptr::null_mut()),
            }
            assert_eq!(cupti.disable(kind), 0);
            assert_eq!(cupti.flush(false), 0);
            assert_eq!((records().len(), delivered_bytes()), (1, bytes), "kind {kind}");
        }
    });
}

#[test]
fn version_11_8_has_the_shortest_records() {
    let sizes =
        [(OVERHEAD, 40), (SYNCHRONIZATION, 40), (MEMORY2, 120), (MEMORY_POOL, 72), (GRAPH_TRACE, 48), (RUNTIME, 40)];
    sizes_are("host::version_11_8_has_the_shortest_records", "11.8", sizes);
}

#[test]
fn version_12_6_has_longer_memory_records() {
    let sizes =
        [(OVERHEAD, 56), (SYNCHRONIZATION, 40), (MEMORY2, 128), (MEMORY_POOL, 72), (GRAPH_TRACE, 56), (RUNTIME, 40)];
    sizes_are("host::version_12_6_has_longer_memory_records", "24", sizes);
}

#[test]
fn version_13_0_has_the_longest_records() {
    let sizes =
        [(OVERHEAD, 56), (SYNCHRONIZATION, 56), (MEMORY2, 128), (MEMORY_POOL, 80), (GRAPH_TRACE, 56), (RUNTIME, 40)];
    sizes_are("host::version_13_0_has_the_longest_records", "130001", sizes);
}
