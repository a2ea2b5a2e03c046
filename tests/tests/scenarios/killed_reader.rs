//! A reader that is killed, or stopped, and a job that does not notice.

use std::time::{Duration, Instant};

use gputap_reader::clock::Now;
use gputap_reader::session::NoSink;
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::control::client::{ControlClient, ControlError};
use gputap_ringbuf::control::{LEASE_NS, SLOTS};
use gputap_ringbuf::discover::find;
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::status::State;
use gputap_tests::{Watched, child_command, is_child};

use crate::job::{Job, spec};
use crate::reading::{LIMIT, session, wait_for_state};

const NAME: &str = "killed_reader::reader";
const READING: &str = "events are coming";

/// In the child: a reader. Nothing where the tests are run.
#[test]
fn reader() {
    if !is_child(NAME) {
        return;
    }
    println!();
    let pid = std::env::var("GPUTAP_TEST_PID").expect("set").parse().expect("a pid");
    let mut session = session(&find(pid).expect("a tap"), BASIC_KINDS);
    loop {
        if session.step(Now::read(), &mut NoSink).expect("no sink").delivered > 0 {
            println!("{READING}");
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn start_reader(job: &Job) -> Watched {
    let mut command = child_command(NAME);
    let reader = Watched::spawn(command.env("GPUTAP_TEST_PID", job.pid().to_string()));
    let mut reader = reader.expect("the reader starts");
    wait_until_it_reads(&mut reader);
    reader
}

fn wait_until_it_reads(reader: &mut Watched) {
    let deadline = Instant::now() + LIMIT;
    let reads = std::iter::from_fn(|| reader.next_line(deadline)).any(|line| line == READING);
    assert!(reads, "the reader reads nothing");
}

fn signal(reader: &Watched, signal: libc::c_int) {
    // SAFETY: our own child, not reaped yet.
    assert_eq!(unsafe { libc::kill(reader.pid() as libc::pid_t, signal) }, 0);
}

/// The lease lapses, not at once, and not much later than it should; the job goes on all the while.
fn lapses(job: &mut Job, tap: &Attached) {
    let since = Instant::now();
    while tap.status().state != Some(State::Idle) {
        job.wait_for_progress(20);
        assert!(since.elapsed() < LIMIT, "{:?}", tap.status());
    }
    // The last beat may have been some turns of the reader ago.
    assert!(since.elapsed() > Duration::from_nanos(LEASE_NS) / 4, "{:?}", since.elapsed());
    assert_eq!(tap.status().kinds, 0);
    job.wait_for_progress(100);
}

#[test]
fn killed_its_wish_lapses_and_the_job_goes_on() {
    let mut job = Job::start(&spec(), &[]);
    let (found, tap) = (job.found(), job.attached());
    let reader = start_reader(&job);
    assert_eq!(tap.status().state, Some(State::Recording));
    signal(&reader, libc::SIGKILL);
    lapses(&mut job, &tap);
    drop(reader);
    // Its place is free again.
    let places: Result<Vec<_>, _> = (0..SLOTS).map(|_| ControlClient::open(&found)).collect();
    assert!(matches!(ControlClient::open(&found), Err(ControlError::NoSlot)));
    drop(places.expect("all places"));
    let ended = job.end();
    assert!(ended.report.kernels > 0);
}

#[test]
fn stopped_its_wish_lapses_and_it_asks_again_when_it_goes_on() {
    let mut job = Job::start(&spec(), &[]);
    let tap = job.attached();
    let mut reader = start_reader(&job);
    signal(&reader, libc::SIGSTOP);
    lapses(&mut job, &tap);
    signal(&reader, libc::SIGCONT);
    wait_for_state(&tap, State::Recording);
    // What it wrote before it was stopped may still be under way.
    while reader.next_line(Instant::now()).is_some() {}
    wait_until_it_reads(&mut reader);
    job.end();
}
