//! start, stop, flush, yield and resume: each is acknowledged, and then it is so.

use gputap_reader::clock::Now;
use gputap_reader::session::NoSink;
use gputap_ringbuf::control::{Answer, Command};
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::{Reason, State};

use crate::app::{App, image};
use crate::reading::{
    Kept, balanced, command, read_until_delivered, session, step_until, wait_for_state, wait_for_status,
    wait_until_recording,
};

#[test]
fn start_records_without_a_reader_and_stop_outranks_every_lease() {
    let mut app = App::start(&[]);
    let (found, tap) = (app.found(), app.attached());
    app.load(1);
    assert_eq!(command(&found, Command::Start), Answer::Done);
    assert_eq!((tap.status().state, tap.status().kinds), (Some(State::BlackBox), BASIC_KINDS));
    app.launch(10);
    assert_eq!(app.did().records_written, 10);

    let mut reader = session(&found, BASIC_KINDS);
    assert_eq!(command(&found, Command::Stop), Answer::Done);
    assert_eq!((tap.status().state, tap.status().reason), (Some(State::Idle), Reason::ByCommand));
    app.launch(10);
    read_until_delivered(&mut reader, 10);
    assert_eq!((app.did().records_written, tap.status().kinds), (10, 0), "a lease is there, and nothing is recorded");

    assert_eq!(command(&found, Command::Start), Answer::Done);
    app.launch(10);
    read_until_delivered(&mut reader, 20);
    assert_eq!(app.did().records_written, 20);
}

#[test]
fn flush_brings_what_cupti_holds() {
    let mut app = App::start(&[("GPUTAP_FLUSH_MS", "60000")]);
    let (found, tap) = (app.found(), app.attached());
    let mut reader = session(&found, BASIC_KINDS);
    wait_until_recording(&tap);
    app.load(1);
    app.launch(49);
    let before = app.did();
    assert_eq!((before.records_written, tap.counters().attempted), (50, 0), "CUPTI holds them");
    assert_eq!(command(&found, Command::Flush), Answer::Done);
    assert_eq!(app.did().flushes, before.flushes + 1);
    assert_eq!(tap.counters().attempted, 50);
    reader.step(Now::read(), &mut NoSink).expect("no sink");
    assert_eq!(balanced(&reader).counts.delivered, 50);
}

#[test]
fn yield_gives_cupti_to_another_tool_and_resume_takes_it_back() {
    let mut app = App::start(&[]);
    let (found, tap) = (app.found(), app.attached());
    app.load(1);
    assert_eq!(app.ask("subscribe"), "39", "the tap holds CUPTI's one subscription");
    let mut reader = session(&found, BASIC_KINDS);
    wait_for_state(&tap, State::Recording);
    app.launch(100);
    assert_eq!(command(&found, Command::Yield), Answer::Done);
    assert_eq!((tap.status().state, tap.status().reason), (Some(State::Yielded), Reason::ByCommand));
    read_until_delivered(&mut reader, 100);

    assert_eq!(app.ask("subscribe"), "ok");
    app.load(2);
    app.launch(100);
    assert_eq!(command(&found, Command::Flush), Answer::Refused, "there is nothing to flush");
    assert_eq!(command(&found, Command::Resume), Answer::Failed);
    let status = tap.status();
    assert_eq!((status.state, status.reason), (Some(State::Yielded), Reason::StillTaken), "{}", status.detail);
    assert!(status.detail.contains("cuptiSubscribe"), "{}", status.detail);

    assert_eq!(app.ask("release"), "ok");
    assert_eq!(command(&found, Command::Resume), Answer::Done);
    let again = |_: &gputap_reader::session::Session, _: &gputap_reader::session::Progress| {
        let status = tap.status();
        (status.state, status.reason) == (Some(State::Recording), Reason::None)
    };
    step_until(&mut reader, &mut NoSink, "recording again", again);
    app.load(3);
    app.launch(99);
    read_until_delivered(&mut reader, 200);

    // What was loaded meanwhile is unknown, and said to be.
    let snapshot = balanced(&reader);
    assert_eq!(snapshot.counts.attempted, 200);
    assert!(snapshot.module_counts.unknown);
    assert_eq!(tap.counters().get(Counter::YieldGaps), 1, "one gap, however often the tap tried to come back");
    assert!(snapshot.notes.iter().any(|note| note.contains("unknown")), "{:?}", snapshot.notes);
    let (mut late, mut kept) = (session(&found, 0), Kept::default());
    step_until(&mut late, &mut kept, "the cubins", |_, progress| !progress.more);
    assert!(kept.cubins == [image(1).0, image(3).0]);
}

#[test]
fn an_application_that_starts_yielded_leaves_cupti_alone_until_resume() {
    let mut app = App::start(&[("GPUTAP_START", "yielded")]);
    let (found, tap) = (app.found(), app.attached());
    wait_for_state(&tap, State::Yielded);
    assert_eq!(app.ask("subscribe"), "ok");
    app.load(1);
    assert_eq!(app.ask("release"), "ok");
    assert_eq!(command(&found, Command::Resume), Answer::Done);
    wait_for_status(&tap, "idle", |status| status.state == Some(State::Idle));
    app.load(2);
    assert_eq!(tap.counters().get(Counter::ModuleLoads), 1);
    assert_eq!(tap.counters().get(Counter::YieldGaps), 1);
}

/// A command comes from a place without a wish: it is not the reader that the job waits for.
#[test]
fn a_flush_does_not_end_the_wait_for_the_first_reader() {
    let mut app = App::start(&[("GPUTAP_START", "recording")]);
    let (found, tap) = (app.found(), app.attached());
    wait_for_state(&tap, State::Recording);
    app.load(1);
    assert_eq!(command(&found, Command::Flush), Answer::Done);
    let heartbeat_ns = tap.status().heartbeat_ns;
    let status = wait_for_status(&tap, "turns", |status| status.heartbeat_ns > heartbeat_ns + 50_000_000);
    assert_eq!((status.state, status.kinds), (Some(State::Recording), BASIC_KINDS));
    app.launch(99);
    let mut reader = session(&found, BASIC_KINDS);
    read_until_delivered(&mut reader, 100);
}

/// CUPTI forgets the buffers that it has when it is finalized: they, and what is in them, have to be asked for before.
#[test]
fn yielding_while_the_gpu_works_loses_no_record_and_no_buffer() {
    let mut app = App::start(&[("GPUTAP_START", "blackbox"), ("FAKE_CUDA_QUEUE_MS", "2000")]);
    let (found, tap) = (app.found(), app.attached());
    app.load(1);
    app.queue(100_000);
    assert_eq!(command(&found, Command::Yield), Answer::Done);
    let did = app.did();
    assert_eq!((tap.counters().attempted, did.records_delivered), (did.records_written, did.records_written));
    assert_eq!(tap.counters().get(Counter::BuffersCompleted), did.buffers_requested, "a buffer did not come back");
}
