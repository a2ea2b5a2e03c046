//! Every call of CUPTI that the tap makes fails once, a second time, or always: the application never notices, nothing
//! hangs, every record that came is accounted for, and the status says what failed.

use gputap_ringbuf::control::client::ControlClient;
use gputap_ringbuf::control::{Answer, Command};
use gputap_ringbuf::event::{ALL_KINDS, EventKind};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::{ClockSource, Reason, State};
use gputap_ringbuf::process::monotonic_ns;

use super::actor::{Actor, Front};
use super::run::{Run, Wish};
use super::wishes::RECORDS;
use crate::reading::{balanced, is_unknown, lost, step_until, total_lost, wait_for, wait_for_state, wait_for_status};

const CODE: u32 = 8;

/// Which calls fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    First,
    Second,
    Always,
}

fn fault(name: &str, when: When) -> String {
    match when {
        When::First => format!("{name}={CODE}@1"),
        When::Second => format!("{name}={CODE}@2"),
        When::Always => format!("{name}={CODE}"),
    }
}

/// Runs an application under the fault to its end, through a yield and a resume. Gives what `judge` says of it while it
/// records, or cannot.
fn survive<T>(name: &str, when: When, judge: impl FnOnce(&mut Run, When) -> T) -> T {
    let faults = fault(name, when);
    let env = [("FAKE_CUPTI_FAULTS", faults.as_str()), ("GPUTAP_CLOCK", "monotonic"), ("GPUTAP_LAUNCHES", "1")];
    let mut run = Run::of(Actor::start(Front::Witness, &env));
    let wish = Wish::hold(&run.found, ALL_KINDS);
    run.turn();
    for _ in 0..2 {
        run.actor.act("all");
        run.command(Command::Flush);
    }
    run.read_all();
    assert_accounted(&mut run, name);
    let judged = judge(&mut run, when);
    let left = run.command(Command::Yield);
    run.actor.act("all");
    let back = run.command(Command::Resume);
    run.turn();
    run.actor.act("all");
    run.command(Command::Flush);
    run.read_all();
    assert_accounted(&mut run, name);
    assert_eq!(run.count(Counter::Panics), 0);
    drop(wish);
    let (snapshot, _) = run.end();
    // Launches of threads for which no lane was ready yet.
    let other = total_lost(&snapshot) - lost(&snapshot, "no_lane");
    assert_eq!(other, 0, "{name} {when:?} {left:?} {back:?} {:?}", snapshot.counts);
    judged
}

/// Every record that reached the tap is an event or counted; behind a place that CUPTI could not show, it is unknown.
fn assert_accounted(run: &mut Run, name: &str) {
    if name != "get_next_record" {
        run.assert_books();
        return;
    }
    let (fake, counters) = (run.actor.counters(), run.tap.counters());
    let launches = run.got.count(EventKind::Launch);
    let told = run.got.told.len() as u64 - launches + counters.get(Counter::Unwanted);
    assert!(told <= fake.records_delivered, "{counters:?} {fake:?}");
    assert_eq!(told < fake.records_delivered, counters.get(Counter::PoolEmpty) > 0, "{counters:?} {fake:?}");
}

fn always(name: &str, judge: impl Fn(&mut Run, When)) {
    for when in [When::First, When::Second, When::Always] {
        survive(name, when, &judge);
    }
}

/// Something is wrong, and the status says what.
fn assert_said(run: &Run, call: &str) {
    let status = run.tap.status();
    assert_eq!(status.reason, Reason::CuptiError, "{status:?}");
    let expected = format!("{call} gave error {CODE}");
    assert!(status.detail.starts_with(&expected), "{} is not {expected}", status.detail);
}

/// The call is made at start-up, and without it there is no tap.
fn at_the_start(name: &str, call: &'static str) {
    always(name, |run, when| {
        let state = run.tap.status().state;
        match when {
            When::Second => assert_ne!(state, Some(State::Off)),
            _ => {
                assert_eq!(state, Some(State::Off));
                assert_said(run, call);
                assert_eq!(run.count(Counter::CuptiErrors), 1);
            }
        }
    });
}

#[test]
fn subscribe() {
    at_the_start("subscribe", "cuptiSubscribe");
}

#[test]
fn register_callbacks() {
    at_the_start("register_callbacks", "cuptiActivityRegisterCallbacks");
}

#[test]
fn enable_callback() {
    always("enable_callback", |run, when| {
        let status = run.tap.status();
        match when {
            // Modules come, and launches do not.
            When::Second => assert!(status.state == Some(State::Recording) && run.count(Counter::CuptiErrors) == 1),
            _ => {
                assert_eq!(status.state, Some(State::Off));
                assert_said(run, "cuptiEnableCallback(MODULE_LOADED)");
            }
        }
    });
}

/// A kind that cannot be had, and all the others.
fn kind(name: &str, kind: EventKind) {
    always(name, |run, when| {
        let missing = if when == When::Second { 0 } else { kind.bit() };
        assert_eq!(run.tap.status().kinds, ALL_KINDS & !missing, "{when:?}");
        if missing == 0 {
            assert_eq!((run.tap.status().reason, run.count(Counter::CuptiErrors)), (Reason::None, 0));
        } else {
            assert_said(run, "cuptiActivityEnable");
            assert_eq!(run.got.count(kind), 0);
        }
        for other in EventKind::in_mask(ALL_KINDS & !missing) {
            assert!(run.got.count(other) > 0 || other == EventKind::Kernel, "{}", other.name());
        }
    });
}

macro_rules! kinds {
    ($($test:ident: $name:literal is $kind:ident;)*) => {$(
        #[test]
        fn $test() {
            kind(concat!("enable.", $name), EventKind::$kind);
        }
    )*};
}

kinds! {
    enable_kernels: "CONCURRENT_KERNEL" is Kernel;
    enable_copies: "MEMCPY" is Memcpy;
    enable_sets: "MEMSET" is Memset;
    enable_waits: "SYNCHRONIZATION" is Sync;
    enable_graphs: "GRAPH_TRACE" is Graph;
    enable_memory: "MEMORY2" is Memory;
    enable_pools: "MEMORY_POOL" is Pool;
    enable_overhead: "OVERHEAD" is Overhead;
    enable_runtime: "RUNTIME" is Runtime;
    enable_driver: "DRIVER" is Driver;
    enable_marks: "MARKER" is Marker;
}

/// Without records of copies between devices there are those of the others.
#[test]
fn enable_peer_copies() {
    always("enable.MEMCPY2", |run, when| {
        assert_eq!(run.tap.status().kinds, ALL_KINDS);
        let expected = 2 * 3 + if when == When::Second { 2 * 2 } else { 0 };
        assert_eq!(run.got.count(EventKind::Memcpy), expected);
        assert_eq!(run.count(Counter::CuptiErrors), u64::from(when != When::Second));
    });
}

#[test]
fn enable_anything() {
    always("enable", |run, when| {
        let kinds = run.tap.status().kinds;
        match when {
            When::Always => assert_eq!(kinds, EventKind::Launch.bit(), "which needs none of CUPTI's"),
            When::First => assert_eq!(kinds, ALL_KINDS & !EventKind::Kernel.bit()),
            When::Second => assert_eq!(kinds, ALL_KINDS & !EventKind::Memcpy.bit()),
        }
        assert_said(run, "cuptiActivityEnable");
    });
}

#[test]
fn disable() {
    always("disable", |run, _| {
        assert_eq!(run.count(Counter::CuptiErrors), 0, "nothing has been switched off yet");
    });
    survive("disable", When::Always, |run, _| {
        assert_eq!(run.command(Command::Stop), Answer::Done);
        assert_eq!(run.count(Counter::CuptiErrors), 1);
        assert_eq!((run.tap.status().kinds, run.tap.status().state), (0, Some(State::Idle)));
        assert_eq!(run.command(Command::Start), Answer::Done);
    });
}

#[test]
fn flush() {
    always("flush", |run, when| {
        let errors = run.count(Counter::CuptiErrors);
        match when {
            When::Always => {
                assert!(errors >= 3 && run.got.of(EventKind::Kernel).is_empty(), "{errors}");
                assert_said(run, "cuptiActivityFlushAll");
            }
            _ => {
                assert_eq!((errors, run.tap.status().reason), (1, Reason::None), "it is over");
                run.compare(RECORDS);
            }
        }
    });
}

#[test]
fn get_next_record() {
    always("get_next_record", |run, when| {
        let unknown = balanced(&run.session).counts.lost.iter().any(|lost| lost.reason == "pool_empty" && lost.unknown);
        assert!(unknown, "{when:?}");
        run.compare(RECORDS);
    });
}

/// How much was dropped is not said; nothing was.
#[test]
fn dropped() {
    always("dropped", |run, _| {
        run.compare(RECORDS);
    });
}

#[test]
fn unsubscribe() {
    always("unsubscribe", |run, when| {
        let answer = run.command(Command::Yield);
        match when {
            When::Second => assert_eq!(answer, Answer::Done),
            _ => {
                assert_eq!(answer, Answer::Failed);
                assert_said(run, "cuptiUnsubscribe");
            }
        }
        assert_eq!(run.tap.status().state, Some(State::Yielded));
    });
}

#[test]
fn finalize() {
    always("finalize", |run, when| {
        let answer = run.command(Command::Yield);
        match when {
            When::Second => assert_eq!(answer, Answer::Done),
            _ => {
                assert_eq!(answer, Answer::Failed);
                assert_said(run, "cuptiFinalize");
            }
        }
        // Nobody has it now.
        assert_eq!(run.command(Command::Resume), Answer::Done);
        run.turn();
        assert_eq!(run.tap.status().state, Some(State::Recording));
    });
}

/// Times are converted then: they are right in any case.
fn clock(name: &str) {
    always(name, |run, when| {
        let source = if when == When::Second { ClockSource::Monotonic } else { ClockSource::Realtime };
        assert_eq!((run.tap.status().clock_source, run.tap.status().reason), (source, Reason::None));
        run.compare(RECORDS);
        let now_ns = monotonic_ns();
        assert!(run.got.told.iter().flat_map(|told| told.times()).all(|at| now_ns - at < 60_000_000_000));
    });
}

#[test]
fn timestamp_callback() {
    clock("timestamp_callback");
}

#[test]
fn timestamp() {
    clock("timestamp");
}

/// The application's NVTX stays off, as without us.
#[test]
fn nvtx() {
    always("nvtx", |run, when| {
        let marks = run.got.count(EventKind::Marker);
        assert_eq!(marks > 0, when == When::Second);
        let tally = run.actor.tally();
        assert_eq!((tally["nvtx-on"], tally["nvtx"] == marks), (u64::from(marks > 0), marks > 0));
    });
}

/// Without a version nothing can be read.
#[test]
fn version() {
    for when in [When::First, When::Always] {
        let mut actor = Actor::start(Front::Fake, &[("FAKE_CUPTI_FAULTS", &fault("version", when))]);
        let status = wait_for_state(&actor.attached(), State::Off);
        assert_eq!(status.reason, Reason::CuptiError);
        assert!(status.detail.contains(&format!("cuptiGetVersion gives error {CODE}")), "{}", status.detail);
        actor.act("all");
        assert!(actor.end().success());
    }
}

/// A flush that never returns holds up the tap's timer, and nobody else.
#[test]
fn a_flush_that_never_returns() {
    let mut run = Run::start(&[("FAKE_CUPTI_FAULTS", "flush_hang=1@2"), ("GPUTAP_LAUNCHES", "1")]);
    let wish = run.wish(ALL_KINDS);
    run.actor.act("load 1");
    let client = ControlClient::open(&run.found).expect("a place");
    client.send(Command::Flush).expect("sent");
    let flushes = |actor: &mut Actor| actor.counters().flushes;
    wait_for("the flush", String::new, || (flushes(&mut run.actor) == 2).then_some(()));
    for seed in 2..6 {
        run.actor.act(&format!("load {seed}"));
        run.actor.act("all");
    }
    run.read_all();
    let launches = run.got.count(EventKind::Launch);
    assert!(launches > 100, "launches go on being told: {launches}");
    assert_eq!(run.count(Counter::ModuleLoads), 5, "and modules");
    drop(wish);
    let Run { actor, mut session, mut got, .. } = run;
    assert!(actor.end().success(), "the exit does not wait for ever");
    step_until(&mut session, &mut got, "the end", |_, progress| progress.ended);
    let snapshot = balanced(&session);
    assert!(is_unknown(&snapshot, "held_by_cupti"), "{snapshot:?}");
}

/// A flush that takes its time holds up the tap's timer for so long, and nobody else.
#[test]
fn a_flush_that_takes_its_time() {
    let mut run = Run::start(&[("FAKE_CUPTI_FLUSH_MS", "150"), ("GPUTAP_FLUSH_MS", "1")]);
    let _wish = run.wish(RECORDS);
    run.actor.act("all");
    let kernels = run.actor.tally()["kernel"];
    wait_for_status(&run.tap, "records", |_| run.tap.counters().attempted > kernels);
    assert_eq!(run.command(Command::Stop), Answer::Done);
    run.read_all();
    run.compare(RECORDS);
    assert!(run.count(Counter::FlushMaxNs) >= 150_000_000);
    run.assert_books();
}
