//! Whatever fails is a state with a reason that readers see, and the job runs as if untapped.

use gputap_reader::clock::Now;
use gputap_reader::list::{Tap, list};
use gputap_reader::session::NoSink;
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::control::{Answer, Command};
use gputap_ringbuf::discover::find;
use gputap_ringbuf::event::{BASIC_KINDS, EventKind};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::{Reason, State, Status};

use crate::app::App;
use crate::job::{Job, generated, spec};
use crate::reading::{
    balanced, command, is_unknown, lost, read_to_the_end, read_until_delivered, session, step_until, wait_for,
    wait_for_state, wait_for_status,
};

/// As `gputap ps` shows it.
fn listed(job: &Job) -> Tap {
    list(Now::read()).into_iter().find(|tap| tap.pid == job.pid()).expect("listed")
}

/// A job whose tap is off from the start; its status.
fn off(env: &[(&str, &str)], reason: Reason) -> Status {
    let mut job = Job::start(&spec(), env);
    let status = wait_for_state(&job.attached(), State::Off);
    assert_eq!(status.reason, reason, "{}", status.detail);
    let listed = listed(&job);
    assert_eq!((listed.state.as_str(), listed.alive, listed.error.as_str()), ("off", true, ""));
    assert!(listed.reason.contains(reason.explanation()), "{}", listed.reason);
    job.wait_for_progress(100);
    assert!(job.end().report.kernels > 0);
    status
}

#[test]
fn no_cupti() {
    let status = off(&[("GPUTAP_CUPTI", "/nonexistent/libcupti.so.13")], Reason::NoCupti);
    assert!(status.detail.contains("/nonexistent/libcupti.so.13"), "{}", status.detail);
}

#[test]
fn cupti_that_is_too_old() {
    let status = off(&[("FAKE_CUPTI_VERSION", "12")], Reason::CuptiTooOld);
    assert!(status.detail.contains("12") && status.detail.contains("libfake_cupti.so"), "{}", status.detail);
}

#[test]
fn a_library_that_is_no_cupti() {
    let path = gputap_tests::artifact("loader_lock_lib").expect("built");
    let status = off(&[("GPUTAP_CUPTI", path.to_str().expect("UTF-8"))], Reason::CuptiError);
    assert!(status.detail.contains("libloader_lock_lib.so"), "{}", status.detail);
}

#[test]
fn another_subscriber_at_the_start_and_then_no_more() {
    let mut app = App::start(&[("FAKE_CUPTI_FAULTS", "subscribe=39*2")]);
    let tap = app.attached();
    let status = wait_for_state(&tap, State::Off);
    assert_eq!(status.reason, Reason::OtherSubscriber);
    assert!(status.detail.contains("39"), "{}", status.detail);
    app.load(1);
    let status = wait_for_state(&tap, State::Idle);
    assert_eq!((status.reason, status.detail.as_str()), (Reason::None, ""));
    app.load(2);
    assert_eq!(tap.counters().get(Counter::ModuleLoads), 1, "the first was loaded unseen");
    assert!(balanced(&app.session(0)).module_counts.unknown, "and that is said");
}

#[test]
fn another_subscriber_that_stays_is_asked_a_bounded_number_of_times() {
    let app = App::start(&[("FAKE_CUPTI_FAULTS", "subscribe=39")]);
    let tap = app.attached();
    let errors = || tap.counters().get(Counter::CuptiErrors);
    wait_for("eleven attempts", || errors().to_string(), || (errors() == 11).then_some(()));
    let heartbeat_ns = tap.status().heartbeat_ns;
    let status = wait_for_status(&tap, "turns", |status| status.heartbeat_ns > heartbeat_ns + 2_500_000_000);
    assert_eq!((errors(), status.state, status.reason), (11, Some(State::Off), Reason::OtherSubscriber));
    assert_eq!(tap.counters().get(Counter::YieldGaps), 1);
    assert_eq!(command(&app.found(), Command::Start), Answer::Refused);
}

#[test]
fn a_kind_that_cupti_refuses() {
    let mut job = Job::start(&spec(), &[("FAKE_CUPTI_FAULTS", "enable.MEMCPY=999")]);
    let tap = job.attached();
    let mut session = job.session(BASIC_KINDS);
    read_until_delivered(&mut session, 500);
    let status = tap.status();
    assert_eq!((status.state, status.reason), (Some(State::Recording), Reason::CuptiError));
    assert_eq!(status.kinds, BASIC_KINDS & !EventKind::Memcpy.bit());
    assert!(status.detail.contains("cuptiActivityEnable") && status.detail.contains("999"), "{}", status.detail);
    job.wait_for_progress(50);
    job.end();
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert!(snapshot.copies.is_empty() && snapshot.memsets > 0 && !snapshot.kernels.is_empty());
}

#[test]
fn a_flush_that_fails_for_a_while() {
    let faults = [("FAKE_CUPTI_FAULTS", "flush=999*5"), ("GPUTAP_START", "blackbox")];
    let mut job = Job::start(&spec(), &faults);
    let tap = job.attached();
    let mut session = job.session(0);
    let status = wait_for_status(&tap, "the failure", |status| status.reason == Reason::CuptiError);
    assert!(status.detail.contains("cuptiActivityFlushAll"), "{}", status.detail);
    let status = wait_for_status(&tap, "its end", |status| status.reason == Reason::None);
    assert_eq!((status.state, status.detail.as_str()), (Some(State::BlackBox), ""));
    assert_eq!(tap.counters().get(Counter::CuptiErrors), 5);
    job.wait_for_progress(50);
    let ended = job.end();
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!(snapshot.counts.delivered, generated(&ended.report), "nothing was lost by it");
}

#[test]
fn a_callback_that_cannot_be_enabled() {
    let status = off(&[("FAKE_CUPTI_FAULTS", "enable_callback=999")], Reason::CuptiError);
    assert!(status.detail.contains("MODULE_LOADED"), "{}", status.detail);
}

#[test]
fn a_setting_that_makes_no_sense() {
    let mut app = App::start(&[("GPUTAP_FLUSH_MS", "abc")]);
    let tap = app.attached();
    let status = wait_for_state(&tap, State::Idle);
    assert_eq!(status.reason, Reason::BadSetting);
    assert!(status.detail.contains("GPUTAP_FLUSH_MS=abc") && status.detail.contains("default"), "{}", status.detail);
    let mut session = app.session(BASIC_KINDS);
    wait_for_state(&tap, State::Recording);
    app.load(1);
    read_until_delivered(&mut session, 1);
}

/// Files may be no larger than this: the memory that the tap wants is refused without SIGXFSZ.
fn file_size_limit(bytes: u64, expected: Option<Reason>) {
    let mut job = Job::start_under(&spec(), &[], Some(bytes));
    job.wait_for_progress(100);
    match expected {
        Some(reason) => {
            let status = wait_for_state(&job.attached(), State::Off);
            assert_eq!(status.reason, reason);
            assert!(status.detail.contains(&bytes.to_string()), "{}", status.detail);
        }
        None => assert!(find(job.pid()).is_err(), "there is no room for a word"),
    }
    assert!(job.end().report.kernels > 0);
}

#[test]
fn files_limited_to_nothing() {
    file_size_limit(0, None);
}

#[test]
fn files_limited_to_a_megabyte() {
    file_size_limit(1 << 20, Some(Reason::NoRoom));
}

/// The area for cubins shrinks to what the limit leaves; what finds no room in it is counted.
#[test]
fn files_limited_to_less_than_a_segment() {
    let limit = 580 << 20;
    let mut job = Job::start_under(&spec(), &[("GPUTAP_START", "blackbox")], Some(limit));
    let found = job.found();
    assert!(std::fs::metadata(&found.segment).expect("there").len() <= limit);
    let mut session = session(&found, BASIC_KINDS);
    job.wait_for_progress(200);
    let ended = job.end();
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!(snapshot.counts.delivered, generated(&ended.report));
    assert_eq!(lost(&snapshot, "no_lane"), 0);
}

#[test]
fn an_application_that_was_off_is_off_for_a_session_too() {
    let mut job = Job::start(&spec(), &[("GPUTAP_CUPTI", "/nonexistent")]);
    let found = job.found();
    wait_for_state(&Attached::open(&found).expect("whole"), State::Off);
    let mut session = session(&found, BASIC_KINDS);
    job.wait_for_progress(50);
    step_until(&mut session, &mut NoSink, "a step", |_, progress| !progress.more);
    let snapshot = balanced(&session);
    assert_eq!((snapshot.target.state.as_str(), snapshot.counts.attempted), ("off", 0));
    job.end();
}

/// One libcupti is mapped already, another one is named and used.
#[test]
fn the_path_that_is_told_is_that_of_the_cupti_in_use() {
    let folder = std::env::temp_dir().join(format!("gputap-two-cuptis-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let other = folder.join("libcupti.so.99");
    std::fs::copy(gputap_tests::artifact("loader_lock_lib").expect("built"), &other).expect("copied");
    let app = App::start(&[("LD_PRELOAD", other.to_str().expect("UTF-8"))]);
    let path = app.attached().status().cupti_path;
    std::fs::remove_dir_all(&folder).expect("removed");
    assert!(path.ends_with("libfake_cupti.so"), "{path}");
}

/// As where the limit on threads is reached. Nobody could ask such a tap to yield.
#[test]
fn a_tap_without_its_thread_leaves_cupti_to_others() {
    // A stack that no address space has room for.
    let mut app = App::start(&[("RUST_MIN_STACK", "1125899906842624")]);
    let status = wait_for_state(&app.attached(), State::Off);
    assert_eq!(status.reason, Reason::NoThread);
    assert_eq!(app.ask("subscribe"), "ok");
}

/// What CUPTI is taken down for is a command of the user's, and nothing else.
#[test]
fn a_start_that_fails_halfway_does_not_take_cupti_down() {
    let mut app = App::start(&[("FAKE_CUPTI_FAULTS", "register_callbacks=999,finalize=7*1")]);
    let tap = app.attached();
    let status = wait_for_state(&tap, State::Off);
    assert_eq!((status.reason, tap.counters().get(Counter::CuptiErrors)), (Reason::CuptiError, 1));
    assert!(status.detail.contains("cuptiActivityRegisterCallbacks"), "{}", status.detail);
    assert_eq!(app.ask("finalize"), "7", "the first call is ours");
}

/// The walk through a buffer ends where CUPTI says no more than that something is wrong.
#[test]
fn records_that_cupti_cannot_show_are_unknown_and_not_none() {
    let faults = [("FAKE_CUPTI_FAULTS", "get_next_record=21"), ("GPUTAP_START", "blackbox")];
    let mut app = App::start(&faults);
    let mut session = app.session(0);
    app.load(1);
    app.launch(99);
    app.end("exit");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert!(is_unknown(&snapshot, "pool_empty"), "{:?}", snapshot.counts);
}
