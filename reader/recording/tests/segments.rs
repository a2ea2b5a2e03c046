//! What was written comes back: whole, rotated, cut off, damaged, and with limits.

use gputap_recording::{Block, Limits, Loss, Module, Process, Recording, Status, Stream, Writer, Written};
use gputap_ringbuf::event::{ALL_KINDS, Event, EventKind, KernelEvent, MarkerEvent, MemcpyEvent, NO_NAME};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SECOND_NS: u64 = 1_000_000_000;

fn process(pid: u32) -> Process {
    let clock = Some(gputap_recording::Clock { monotonic_ns: 5, realtime_ns: 1_000, error_ns: 1 });
    Process { pid, rank: Some(3), nonce: format!("{pid:x}"), host: "h".into(), clock, ..Default::default() }
}

/// The `n`th of a training job's kernels: names and shapes repeat, times do not.
fn kernel(n: u64) -> Event {
    let start_ns = 1_000_000_000 + n * 17_000 + n * n % 4_001;
    Event::Kernel(KernelEvent {
        start_ns,
        end_ns: start_ns + 2_000 + n * 7_919 % 30_000,
        correlation_id: n * 11,
        name_id: (n % 30) as u32,
        context_id: 1,
        stream_id: 7,
        grid: [(n % 30) as u32 * 16, 1, 1],
        block: [128, 1, 1],
        registers_per_thread: 32 + (n % 30) as u16,
        ..Default::default()
    })
}

fn copy(n: u64) -> Event {
    Event::Memcpy(MemcpyEvent { start_ns: n, end_ns: n + 5, bytes: 1 << 20, copy_kind: 8, ..Default::default() })
}

fn writer(dir: &Path, limits: Limits) -> Writer {
    let mut writer = Writer::create(&dir.join("pid-1"), process(1), limits, 0).unwrap();
    (0..30_u32).for_each(|id| writer.name(id, format!("_Z6kernel{id}v").as_bytes()));
    writer
}

#[derive(Default)]
struct Read {
    events: Vec<Event>,
    modules: BTreeMap<u32, Module>,
    status: Option<Status>,
    problems: usize,
    nameless: usize,
}

fn read(mut stream: Stream) -> Read {
    let mut read = Read::default();
    let mut referred = Vec::new();
    while let Some(block) = stream.next_block() {
        match block {
            Block::Events(events) => {
                read.events.extend_from_slice(events);
                referred = events.iter().flat_map(Event::names).filter(|id| *id != NO_NAME).collect();
            }
            Block::Module(module) => drop(read.modules.insert(module.slot, module)),
            Block::Status(status) => read.status = Some(status),
        }
        read.nameless += referred.drain(..).filter(|id| stream.names().index(*id).is_none()).count();
    }
    read.problems = stream.problems().len();
    read
}

fn read_all(dir: &Path) -> Read {
    read(Recording::open(dir).unwrap().processes()[0].stream(ALL_KINDS))
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(dir.join("pid-1")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn done() -> Status {
    let lost = vec![Loss { reason: "overwritten".into(), count: 2, unknown: false }];
    Status { attempted: 12, delivered: 10, lost, complete: true, ..Default::default() }
}

#[test]
fn all_comes_back_from_rotated_segments() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { segment_bytes: 10_000, ..Limits::default() };
    let mut writer = writer(dir.path(), limits);
    let module = Module { slot: 4, crc32: 5, size_bytes: 6, loads: 1, ..Default::default() };
    writer.module(module.clone()).unwrap();
    let mut expected = Vec::new();
    for n in 0..20_000 {
        for event in [Some(kernel(n)), (n % 10 == 0).then(|| copy(n))].into_iter().flatten() {
            writer.event(&event).unwrap();
            expected.push(event);
        }
        writer.tick(n * SECOND_NS / 1000).unwrap();
    }
    writer.module(Module { loads: 2, ..module.clone() }).unwrap();
    let written = writer.finish(done()).unwrap();
    assert_eq!(written.events, expected.len() as u64);
    assert!(written.segments > 3, "{written:?}");
    let all = read_all(dir.path());
    assert_eq!((all.problems, all.nameless), (0, 0));
    assert_eq!(all.status, Some(done()));
    assert_eq!(all.modules[&4], Module { loads: 2, ..module });
    let of = |events: &[Event], kind| events.iter().copied().filter(|e: &Event| e.kind() == kind).collect::<Vec<_>>();
    for kind in [EventKind::Kernel, EventKind::Memcpy] {
        assert_eq!(of(&all.events, kind), of(&expected, kind));
    }
    assert_eq!(all.events.len(), expected.len());
}

#[test]
fn a_segment_is_readable_alone() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { segment_bytes: 20_000, ..Limits::default() };
    let mut writer = writer(dir.path(), limits);
    writer.module(Module { slot: 4, ..Default::default() }).unwrap();
    (0..20_000).for_each(|n| {
        writer.event(&kernel(n)).unwrap();
        writer.tick(n * SECOND_NS / 1000).unwrap();
    });
    writer.finish(done()).unwrap();
    let paths = segments(dir.path());
    let (last, others) = paths.split_last().unwrap();
    others.iter().for_each(|path| fs::remove_file(path).unwrap());
    let recording = Recording::open(dir.path()).unwrap();
    assert_eq!(recording.processes()[0].process, process(1));
    let alone = read(recording.processes()[0].stream(ALL_KINDS));
    assert!(!alone.events.is_empty() && alone.nameless == 0 && alone.modules.contains_key(&4), "{last:?}");
}

/// Whatever a kill, a full disk or a copy leaves: the whole blocks before the cut, and no more.
#[test]
fn a_cut_costs_what_is_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), Limits::default());
    for n in 0..60 {
        writer.event(&kernel(n)).unwrap();
        if n % 20 == 19 {
            writer.status(done()).unwrap();
        }
    }
    drop(writer);
    let path = segments(dir.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let mut seen = Vec::new();
    for length in 0..=whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let recording = Recording::open(dir.path()).unwrap();
        let Some(one) = recording.processes().first() else {
            assert_eq!(recording.problems().len(), 1);
            continue;
        };
        let all = read(one.stream(ALL_KINDS));
        assert!(all.events.iter().enumerate().all(|(n, event)| *event == kernel(n as u64)), "at {length}");
        seen.push(all.events.len());
    }
    assert!(seen.is_sorted());
    seen.dedup();
    assert_eq!(seen, [0, 20, 40, 60]);
}

/// No flipped byte gives a wrong event: the block that it lies in is missing, with a word.
#[test]
fn a_flipped_byte_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), Limits::default());
    (0..40).for_each(|n| writer.event(&kernel(n)).unwrap());
    writer.finish(done()).unwrap();
    let path = segments(dir.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(&path, &bytes).unwrap();
        let recording = Recording::open(dir.path()).unwrap();
        let all = recording.processes().first().map(|one| read(one.stream(ALL_KINDS))).unwrap_or_default();
        let problems = recording.problems().len() + all.problems;
        assert!(all.events.iter().enumerate().all(|(n, event)| *event == kernel(n as u64)), "at {at}");
        // The number of the segment, bytes 12 to 15, orders it among others and decides nothing here.
        assert!(problems == 1 || (12..16).contains(&at), "byte {at}: {problems} problems, {} events", all.events.len());
    }
}

#[test]
fn limits_remove_the_oldest() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { segment_bytes: 10_000, keep_bytes: 60_000, ..Limits::default() };
    let mut writer = writer(dir.path(), limits);
    let mut at_most = 0;
    for n in 0..60_000 {
        writer.event(&kernel(n)).unwrap();
        writer.tick(n * SECOND_NS / 1000).unwrap();
        at_most = at_most.max(writer.written().bytes);
    }
    let written: Written = writer.finish(done()).unwrap();
    let on_disk: u64 = segments(dir.path()).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert_eq!(on_disk, written.bytes);
    // The open segment may be a block more than it is to be.
    assert!(at_most <= 60_000 + 60_000 && written.removed_segments > 0, "{at_most} {written:?}");
    let all = read_all(dir.path());
    assert_eq!(all.events.len() as u64 + written.removed_events, 60_000);
    assert_eq!(all.events.last(), Some(&kernel(59_999)), "the newest stay");
}

#[test]
fn age_removes_until_all_is_to_be_kept() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { segment_ns: SECOND_NS, keep_ns: 3 * SECOND_NS, block_ns: 0, ..Limits::default() };
    let mut writer = Writer::create(&dir.path().join("pid-1"), process(1), limits, 0).unwrap();
    let event = |second: u64| {
        Event::Memcpy(MemcpyEvent {
            start_ns: second * SECOND_NS,
            end_ns: second * SECOND_NS + 1,
            ..Default::default()
        })
    };
    let first_second = |dir: &Path| match read_all(dir).events[0] {
        Event::Memcpy(copy) => copy.start_ns / SECOND_NS,
        _ => unreachable!("only copies were written"),
    };
    for second in 0..20 {
        writer.event(&event(second)).unwrap();
        writer.tick(second * SECOND_NS).unwrap();
    }
    let kept = first_second(dir.path());
    assert!((14..=17).contains(&kept), "{kept}");
    writer.keep_all();
    for second in 20..40 {
        writer.event(&event(second)).unwrap();
        writer.tick(second * SECOND_NS).unwrap();
    }
    writer.finish(done()).unwrap();
    assert_eq!(first_second(dir.path()), kept);
}

#[test]
fn what_was_kept_stays_when_age_counts_again() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits { segment_ns: SECOND_NS, keep_ns: 3 * SECOND_NS, block_ns: 0, ..Limits::default() };
    let mut writer = Writer::create(&dir.path().join("pid-1"), process(1), limits, 0).unwrap();
    let write = |writer: &mut Writer, seconds: std::ops::Range<u64>| {
        for second in seconds {
            writer.event(&copy(second)).unwrap();
            writer.tick(second * SECOND_NS).unwrap();
        }
    };
    write(&mut writer, 0..20);
    writer.keep_all();
    write(&mut writer, 20..25);
    writer.keep_last(3 * SECOND_NS).unwrap();
    write(&mut writer, 25..60);
    assert!(writer.oldest_ended_ns().is_some_and(|ended_ns| ended_ns <= 17 * SECOND_NS));
    writer.remove_oldest().unwrap();
    assert_eq!(writer.segments().iter().map(|segment| segment.bytes).sum::<u64>(), writer.written().bytes);
    writer.finish(done()).unwrap();
    let seconds: Vec<u64> = read_all(dir.path())
        .events
        .iter()
        .map(|event| match event {
            Event::Memcpy(copy) => copy.start_ns,
            _ => unreachable!("only copies were written"),
        })
        .collect();
    let kept = |range: std::ops::Range<u64>| range.into_iter().filter(|second| seconds.contains(second)).count();
    assert_eq!(kept(18..25), 7, "what was kept: {seconds:?}");
    assert_eq!((kept(0..14), kept(26..54), kept(58..60)), (0, 0, 2), "{seconds:?}");
}

#[test]
fn kinds_and_times_choose_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), Limits::default());
    for n in 0..10_000 {
        writer.event(&kernel(n)).unwrap();
        writer.event(&copy(n)).unwrap();
    }
    writer.finish(done()).unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    let stream = |kinds| recording.processes()[0].stream(kinds);
    let copies = read(stream(EventKind::Memcpy.bit()));
    assert_eq!(copies.events.len(), 10_000);
    let Event::Kernel(last) = kernel(9_999) else { unreachable!() };
    let late = read(stream(EventKind::Kernel.bit()).between(last.start_ns, u64::MAX));
    assert!(late.events.contains(&kernel(9_999)) && late.events.len() < 4096, "{}", late.events.len());
}

#[test]
fn names_of_any_bytes_and_lengths_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(&dir.path().join("pid-1"), process(1), Limits::default(), 0).unwrap();
    let names: Vec<Vec<u8>> =
        vec![b"\"\\\0\x1b[31m\xff\xfe".to_vec(), vec![b'x'; 512 << 10], Vec::new(), b"same".to_vec(), b"same".to_vec()];
    for (id, name) in names.iter().enumerate() {
        writer.name(id as u32, name);
    }
    writer.text(9, b"same");
    for id in [0, 1, 2, 3, 4, 9] {
        let marker = MarkerEvent { name_id: id, domain_id: NO_NAME, ..Default::default() };
        writer.event(&Event::Marker(marker)).unwrap();
    }
    writer.finish(done()).unwrap();
    let mut stream = Recording::open(dir.path()).unwrap().processes()[0].stream(ALL_KINDS);
    while stream.next_block().is_some() {}
    for (id, name) in names.iter().enumerate() {
        assert_eq!(stream.names().get(id as u32).unwrap().bytes.as_ref(), name.as_slice());
    }
    assert_eq!(stream.names().index(3), stream.names().index(4));
    assert_ne!(stream.names().index(3), stream.names().index(9), "a text is no kernel's name");
}

#[test]
fn a_gpt_job_takes_less_than_24_bytes_a_kernel() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path(), Limits::default());
    (0..100_000).for_each(|n| writer.event(&kernel(n)).unwrap());
    let written = writer.finish(done()).unwrap();
    let each = written.bytes as f64 / 100_000.0;
    println!("{each:.1} bytes a kernel");
    assert!(each < 24.0, "{each}");
}

#[test]
fn what_is_no_recording_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let error = |dir: &Path| Recording::open(dir).unwrap_err().to_string();
    assert!(error(dir.path()).contains("holds no recording"), "{}", error(dir.path()));
    fs::write(dir.path().join("kernels.csv"), b"").unwrap();
    assert!(error(dir.path()).contains("format 2"), "{}", error(dir.path()));
    assert!(error(&dir.path().join("none")).contains("none"));
    fs::write(dir.path().join("x.gtap"), b"GPUTAPRC\x63\0\0\0\x01\0\0\0").unwrap();
    let recording = Recording::open(dir.path()).unwrap();
    assert!(recording.problems()[0].what.contains("format 99"), "{:?}", recording.problems());
}
