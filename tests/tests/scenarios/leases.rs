//! What a tap does for whom: nothing while nobody asks, recording while somebody does.

use gputap_reader::session::NoSink;
use gputap_ringbuf::control::client::ControlClient;
use gputap_ringbuf::event::{BASIC_KINDS, EventKind};
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::State;

use crate::app::{App, Did};
use crate::job::{Job, spec};
use crate::reading::{balanced, step_until, wait_for_state, wait_for_status, wait_until_recording};

const NOTHING: Did = Did { records_written: 0, records_delivered: 0, flushes: 0, buffers_requested: 0 };

#[test]
fn an_idle_tap_records_nothing_and_keeps_cubins() {
    let mut app = App::start(&[("GPUTAP_FLUSH_MS", "1")]);
    let tap = app.attached();
    let status = wait_for_state(&tap, State::Idle);
    assert_eq!(status.kinds, 0);
    (0..5).for_each(|seed| app.load(seed));
    app.launch(500);
    // Many turns of the timer.
    let heartbeat_ns = tap.status().heartbeat_ns;
    wait_for_status(&tap, "turns", |status| status.heartbeat_ns > heartbeat_ns + 300_000_000);
    assert_eq!(app.did(), NOTHING, "no kind is on, nothing is flushed");
    assert_eq!((tap.counters().get(Counter::ModuleLoads), tap.counters().attempted), (5, 0));
}

#[test]
fn a_lease_switches_recording_on_and_its_end_off() {
    // So that no flush but the one at the lease's end brings the records.
    let mut app = App::start(&[("GPUTAP_FLUSH_MS", "60000")]);
    let tap = app.attached();
    app.load(1);
    let session = app.session(BASIC_KINDS);
    wait_until_recording(&tap);
    assert_eq!(tap.status().kinds, BASIC_KINDS);
    app.launch(200);
    assert_eq!(tap.counters().attempted, 0);
    drop(session);
    assert_eq!(wait_for_state(&tap, State::Idle).kinds, 0);
    let before = app.did();
    assert_eq!(before.records_delivered, 200, "what was recorded was flushed when the lease ended");
    app.launch(200);
    assert_eq!(app.did(), before);
    let mut late = app.session(0);
    step_until(&mut late, &mut NoSink, "all", |session, _| balanced(session).counts.delivered == 200);
    assert_eq!(tap.counters().attempted, 200, "the launches before and after the lease were not recorded");
}

#[test]
fn a_lease_gets_the_kinds_that_it_asks_for() {
    let mut app = App::start(&[]);
    let (found, tap) = (app.found(), app.attached());
    let client = ControlClient::open(&found).expect("a place");
    let wait_for_kinds = |kinds: u64| {
        wait_for_status(&tap, "these kinds", |status| {
            client.renew();
            status.kinds == kinds
        })
    };
    client.want(EventKind::Memset.bit());
    wait_for_kinds(EventKind::Memset.bit());
    app.load(1);
    app.launch(10);
    assert_eq!(app.did().records_written, 0, "kernels were not asked for");
    client.want(EventKind::Kernel.bit() | 1 << 40);
    wait_for_kinds(EventKind::Kernel.bit());
    app.launch(10);
    assert_eq!(app.did().records_written, 10);
}

#[test]
fn an_application_that_starts_black_boxed_records_without_a_reader() {
    let mut app = App::start(&[("GPUTAP_START", "blackbox")]);
    let tap = app.attached();
    assert_eq!(wait_for_state(&tap, State::BlackBox).kinds, BASIC_KINDS);
    app.load(1);
    app.launch(99);
    let mut late = app.session(0);
    step_until(&mut late, &mut NoSink, "all", |session, _| balanced(session).counts.delivered == 100);
}

/// CUPTI does not survive that its copies are switched off and on in a job that copies: MEASUREMENTS.md.
#[test]
fn switching_recording_in_a_job_that_copies_leaves_it_alive() {
    let mut job = Job::start(&spec(), &[("GPUTAP_FLUSH_MS", "5")]);
    let tap = job.attached();
    for _ in 0..5 {
        let session = job.session(BASIC_KINDS);
        wait_for_status(&tap, "recording", |status| status.kinds == BASIC_KINDS);
        job.wait_for_progress(200);
        drop(session);
        assert_eq!(wait_for_state(&tap, State::Idle).kinds, 0);
        job.wait_for_progress(200);
    }
    let ended = job.end();
    assert!(ended.report.host_to_device.count > 0, "the job copies");
}

/// As `gputap record -- CMD` starts a job: nothing is missed before the reader is there, nothing goes on after it left.
#[test]
fn a_job_started_for_a_reader_records_until_that_reader_has_gone() {
    let mut app = App::start(&[("GPUTAP_START", "recording")]);
    let tap = app.attached();
    wait_for_state(&tap, State::Recording);
    // Which launches once.
    app.load(1);
    app.launch(99);
    let mut session = app.session(BASIC_KINDS);
    step_until(&mut session, &mut NoSink, "what came before the reader", |session, _| {
        balanced(session).counts.delivered == 100
    });
    drop(session);
    assert_eq!(wait_for_state(&tap, State::Idle).kinds, 0);
    app.launch(100);
    assert_eq!(tap.counters().attempted, 100);
}
