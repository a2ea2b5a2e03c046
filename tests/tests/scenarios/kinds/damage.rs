//! Records that are dropped, doubled, out of order, without a name, with an endless one, or of kinds that nobody knows;
//! buffers that never come back, and several threads that bring them.

use gputap_ringbuf::control::Command;
use gputap_ringbuf::event::EventKind;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::State;

use super::run::{Run, Wish};
use super::told::Told;
use super::wishes::RECORDS;
use crate::reading::{balanced, is_unknown, lost};

/// All kinds but overhead, of which each flush leaves a record behind.
const KINDS: u64 = RECORDS & !EventKind::Overhead.bit();

/// Something of everything, twice, under this damage; what CUPTI showed has come, field by field.
fn damaged(env: &[(&str, &str)]) -> Run {
    let mut run = Run::start(env);
    let wish = run.wish(KINDS);
    for _ in 0..2 {
        run.actor.act("all");
        run.catch_up();
    }
    run.compare(RECORDS);
    run.assert_books();
    assert_eq!((run.tap.status().state, run.count(Counter::Panics)), (Some(State::Recording), 0));
    drop(wish);
    run
}

#[test]
fn dropped_records() {
    let mut run = damaged(&[("FAKE_CUPTI_DROP_EVERY", "3")]);
    let fake = run.actor.counters();
    assert!(fake.records_dropped > 50);
    let snapshot = balanced(&run.session);
    assert_eq!(lost(&snapshot, "cupti_dropped"), run.count(Counter::CuptiDropped));
    assert!(!is_unknown(&snapshot, "cupti_dropped"));
}

#[test]
fn doubled_records() {
    let run = damaged(&[("FAKE_CUPTI_DUPLICATE_EVERY", "4")]);
    let told = &run.got.told;
    assert!(told.windows(2).filter(|pair| pair[0] == pair[1]).count() > 20, "as they are");
}

#[test]
fn records_out_of_order() {
    let run = damaged(&[("FAKE_CUPTI_SWAP_EVERY", "3")]);
    let ids = |told: &[Told]| told.iter().map(Told::correlation_id).filter(|id| *id != 0).collect::<Vec<_>>();
    assert!(ids(&run.got.told).windows(2).filter(|pair| pair[0] > pair[1]).count() > 20, "as they came");
}

#[test]
fn records_without_a_name() {
    let run = damaged(&[("FAKE_CUPTI_NULL_NAME_EVERY", "3")]);
    let kernels = run.got.of(EventKind::Kernel);
    let nameless = kernels.iter().filter(|told| told.name.is_none()).count();
    assert!(nameless > 10 && nameless < kernels.len());
}

/// More of them in one buffer than there is room ready for: those are told without their name, and counted; the next
/// time there is room.
#[test]
fn records_with_a_name_of_half_a_megabyte() {
    let mut run = Run::start(&[("FAKE_CUPTI_LONG_NAME_EVERY", "2")]);
    let _wish = run.wish(KINDS);
    for _ in 0..3 {
        run.actor.act("all");
        run.catch_up();
        run.turn();
    }
    let (_, nameless) = run.compare_but_for_names(KINDS);
    assert_eq!(nameless, run.count(Counter::NamesLost));
    run.assert_books();
    let named = |kind: EventKind| run.got.of(kind).into_iter().filter(|told| told.has_long_name()).count() as u64;
    let (kernels, marks) = (named(EventKind::Kernel), named(EventKind::Marker));
    assert!(kernels > 10 && marks > 2 && kernels + marks > nameless, "{kernels} {marks} {nameless}");
}

#[test]
fn records_of_a_kind_that_nobody_knows() {
    let mut run = Run::start(&[("FAKE_CUPTI_ALIEN_KIND_EVERY", "5")]);
    let _wish = run.wish(KINDS);
    run.actor.act("all");
    run.catch_up();
    run.compare(KINDS);
    let fake = run.assert_books();
    assert_eq!(run.count(Counter::UnknownRecords), fake.records_delivered / 5);
    assert!(fake.records_delivered > 100);
}

#[test]
fn buffers_that_never_come_back() {
    let mut run = Run::start(&[("FAKE_CUPTI_KEEP_BUFFER_EVERY", "2")]);
    let _wish = run.wish(KINDS);
    for _ in 0..5 {
        run.actor.act("all");
        run.catch_up();
    }
    run.compare(KINDS);
    let fake = run.assert_books();
    // What is in them reached nobody: it is no loss that could be counted, and the next buffers are others.
    assert_eq!((fake.buffers_kept, fake.records_written), (2, fake.records_kept + fake.records_delivered));
    assert!(fake.records_kept > 200 && fake.records_delivered > 300, "{fake:?}");
}

/// Until the pool is empty: before 12.9 CUPTI must have a buffer all the same, and what it writes there is unknown.
#[test]
fn all_buffers_that_there_are_never_come_back() {
    let env = [("FAKE_CUPTI_KEEP_BUFFER_EVERY", "1"), ("FAKE_CUPTI_VERSION", "27"), ("GPUTAP_FLUSH_MS", "1")];
    let mut run = Run::start(&env);
    run.actor.act("load 1");
    let _wish = Wish::hold(&run.found, EventKind::Kernel.bit());
    run.settle(EventKind::Kernel.bit());
    let began = std::time::Instant::now();
    while run.count(Counter::PoolEmpty) == 0 {
        run.actor.act("launch 300");
        assert!(began.elapsed() < crate::reading::LIMIT, "{:?}", run.actor.counters());
    }
    run.actor.act("launch 10");
    let fake = run.actor.counters();
    assert!(fake.buffers_kept >= 512 && fake.records_delivered == 0, "{fake:?}");
    let snapshot = balanced(&run.session);
    assert!(is_unknown(&snapshot, "pool_empty") && snapshot.counts.delivered == 0);
    let (snapshot, _) = run.end();
    assert!(is_unknown(&snapshot, "pool_empty"), "{:?}", snapshot.counts);
}

#[test]
fn buffers_brought_by_several_threads() {
    let mut run = Run::start(&[("FAKE_CUPTI_COMPLETERS", "3")]);
    run.actor.act("load 1");
    let _wish = run.wish(EventKind::Kernel.bit());
    // A lane for each of them: the timer makes two ready ahead.
    for _ in 0..6 {
        run.actor.act("launch 1");
        run.flush();
        run.turn();
    }
    run.actor.act("launch 6000");
    run.catch_up();
    run.actor.act("shown");
    let by_launch = |told: &mut Vec<Told>| told.sort_by_key(Told::correlation_id);
    let (mut shown, mut got) = (run.actor.shown.clone(), run.got.told.clone());
    by_launch(&mut shown);
    by_launch(&mut got);
    let ahead_ns = shown[0].times()[0].wrapping_sub(got[0].times()[0]);
    assert_eq!(got.len(), 6006);
    assert!(shown.iter().map(|told| told.earlier(ahead_ns)).eq(got));
    let fake = run.assert_books();
    assert_eq!(fake.completers, 3);
    assert!(fake.buffers_completed > 10 && run.count(Counter::NoLane) == 0, "{fake:?}");
}

/// All of it at once, on several threads, and neither the application nor the tap stumbles.
#[test]
fn everything_that_can_be_wrong_at_once() {
    let env = [
        ("FAKE_CUPTI_DROP_EVERY", "7"),
        ("FAKE_CUPTI_DUPLICATE_EVERY", "11"),
        ("FAKE_CUPTI_SWAP_EVERY", "5"),
        ("FAKE_CUPTI_ZERO_TIMES_EVERY", "13"),
        ("FAKE_CUPTI_REVERSE_TIMES_EVERY", "9"),
        ("FAKE_CUPTI_NULL_NAME_EVERY", "6"),
        ("FAKE_CUPTI_LONG_NAME_EVERY", "17"),
        ("FAKE_CUPTI_ALIEN_KIND_EVERY", "19"),
        ("FAKE_CUPTI_KEEP_BUFFER_EVERY", "5"),
        ("FAKE_CUPTI_FAULTS", "flush=999@3,enable.MEMORY_POOL=1,dropped=1@2"),
        ("GPUTAP_LAUNCHES", "1"),
    ];
    let mut run = Run::start(&env);
    let wish = Wish::hold(&run.found, KINDS | EventKind::Launch.bit());
    run.turn();
    for _ in 0..4 {
        run.actor.act("all");
        run.command(Command::Flush);
        run.turn();
    }
    run.read_all();
    let (_, nameless) = run.compare_but_for_names(KINDS);
    let fake = run.actor.counters();
    let counters = run.tap.counters();
    let launches = run.got.count(EventKind::Launch);
    let lost: u64 = counters.lost().map(|(_, count)| count).sum();
    let not_events = counters.get(Counter::Unwanted) + counters.get(Counter::UnknownRecords);
    assert_eq!(counters.attempted, run.got.told.len() as u64 + lost);
    assert_eq!(run.got.told.len() as u64 - launches + not_events, fake.records_delivered);
    assert_eq!(counters.get(Counter::NamesLost), nameless);
    // What was dropped after the last buffer had come back is told with the next one.
    assert!(counters.get(Counter::CuptiDropped).abs_diff(fake.records_dropped) <= 1, "{counters:?} {fake:?}");
    drop(wish);
    let (snapshot, _) = run.end();
    assert!(lost_by_name(&snapshot).iter().all(|name| ["cupti_dropped", "no_lane"].contains(name)), "{snapshot:?}");
}

fn lost_by_name(snapshot: &gputap_reader::model::snapshot::Snapshot) -> Vec<&str> {
    snapshot.counts.lost.iter().filter(|lost| lost.count > 0).map(|lost| lost.reason.as_str()).collect()
}
