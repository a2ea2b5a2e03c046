use super::*;
use gputap_recording::{Block, Recording};
use std::collections::BTreeMap;

fn small() -> Sample {
    Sample { kernels: 30_000, launches: true, ..Sample::default() }
}

#[test]
fn the_same_seed_gives_the_same_events() {
    assert_eq!(collect(&small(), 1), collect(&small(), 1));
    assert_ne!(collect(&small(), 1), collect(&Sample { seed: 2, ..small() }, 1));
    assert_ne!(collect(&small(), 1), collect(&small(), 0));
}

#[test]
fn what_is_written_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let sample = small();
    let wrote = sample.write(dir.path()).unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    assert_eq!(recording.processes().len(), 2);
    for (one, wrote) in recording.processes().iter().zip(&wrote.processes) {
        let mut by_name: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        let (mut events, mut complete) = (0, false);
        let mut stream = one.stream(u64::MAX);
        let mut ids = Vec::new();
        while let Some(block) = stream.next_block() {
            match block {
                Block::Events(block) => {
                    events += block.len() as u64;
                    ids.extend(block.iter().filter_map(|event| match event {
                        Event::Kernel(kernel) => Some(kernel.name_id),
                        _ => None,
                    }));
                }
                Block::Status(status) => complete = status.complete,
                Block::Module(_) => {}
            }
        }
        for id in ids {
            let name = stream.names().get(id).map_or(b"(unnamed)".to_vec(), |name| name.bytes.to_vec());
            *by_name.entry(name).or_default() += 1;
        }
        assert_eq!((events, complete, stream.problems().len()), (wrote.events, true, 0));
        let calls: BTreeMap<_, _> = wrote.kernels().into_iter().map(|(name, total)| (name, total.calls)).collect();
        assert_eq!(by_name, calls);
    }
}

#[test]
fn it_has_what_it_says() {
    let events = collect(&small(), 1);
    let kernels: Vec<_> = events.iter().filter_map(|e| if let Event::Kernel(k) = e { Some(k) } else { None }).collect();
    let flawed = kernels.iter().filter(|k| !is_timed(k.start_ns, k.end_ns)).count();
    assert_eq!((kernels.len(), flawed), (34 * 450 + 9, 1));
    let mut streams: Vec<_> = kernels.iter().map(|k| k.stream_id).collect();
    streams.sort_unstable();
    streams.dedup();
    assert_eq!(streams, [COMPUTE, SIDE, COLLECTIVE]);
    assert!(kernels.iter().any(|k| k.graph_id != 0));
    for stream in streams {
        let mut spans: Vec<_> =
            kernels.iter().filter(|k| k.stream_id == stream && is_timed(k.start_ns, k.end_ns)).collect();
        spans.sort_by_key(|k| k.start_ns);
        assert!(spans.windows(2).all(|two| two[0].end_ns <= two[1].start_ns), "stream {stream} is in order");
    }
}
