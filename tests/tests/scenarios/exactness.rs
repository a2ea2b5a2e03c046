//! Delivered + lost = what the job itself counted, outside the segment, when recording is on from the start.

use gputap_reader::clock::Now;
use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::session::NoSink;
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_sim_job::JobSpec;

use crate::job::{Ended, Job, generated, spec};
use crate::reading::{calls, lost, read_to_the_end, read_until_delivered, session, total_lost, wait_for};

/// The books against the job's own counts.
fn assert_exact(snapshot: &Snapshot, ended: &Ended) {
    let counts = &snapshot.counts;
    assert_eq!(counts.delivered + total_lost(snapshot), generated(&ended.report), "{counts:?}");
    assert_eq!(counts.attempted, generated(&ended.report));
    assert_eq!(snapshot.module_counts.attempted, ended.report.module_loads);
    assert_eq!(snapshot.module_counts.stored, ended.report.modules);
    // What the reader cannot name it calls unfinished: after an orderly end there is none, or nothing would be proved.
    let nameable = ["overwritten", "before_attach", "cupti_dropped"];
    assert!(counts.lost.iter().all(|lost| nameable.contains(&lost.reason.as_str()) && !lost.unknown), "{counts:?}");
}

fn transfers(snapshot: &Snapshot, direction: &str) -> (u64, u64) {
    let of = |row: &&gputap_reader::model::snapshot::CopyRow| row.direction == direction;
    snapshot.copies.iter().find(of).map_or((0, 0), |row| (row.copies, row.bytes))
}

fn nothing_lost(backing: &str) {
    let spec = JobSpec { load_churn: true, threads: 3, ..spec() };
    let mut job = Job::start(&spec, &[("GPUTAP_START", "blackbox"), ("GPUTAP_BACKING", backing)]);
    let mut session = job.session(BASIC_KINDS);
    read_until_delivered(&mut session, 4_000);
    job.wait_for_progress(300);
    let ended = job.end();
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_exact(&snapshot, &ended);
    assert_eq!(total_lost(&snapshot), 0, "{:?}", snapshot.counts);
    assert_eq!(snapshot.target.backing, backing);
    assert_eq!(calls(&snapshot), ended.report.kernels_by_name.clone().into_iter().collect::<Vec<_>>());
    let report = &ended.report;
    for (direction, own) in
        [("HtoD", report.host_to_device), ("DtoH", report.device_to_host), ("DtoD", report.device_to_device)]
    {
        assert_eq!(transfers(&snapshot, direction), (own.count, own.bytes), "{direction}");
    }
}

#[test]
fn with_nothing_lost_in_named_memory() {
    nothing_lost("shm");
}

#[test]
fn with_nothing_lost_in_a_memfd() {
    nothing_lost("memfd");
}

/// Small lanes and a job at full speed: one reader stands still for a while, another comes late.
fn overflow(backing: &str) {
    let spec = JobSpec { kernels_per_second: 0, ..spec() };
    let env = [("GPUTAP_START", "blackbox"), ("GPUTAP_LANE_MB", "1"), ("GPUTAP_BACKING", backing)];
    let job = Job::start(&spec, &env);
    let (found, tap) = (job.found(), job.attached());
    let mut early = session(&found, 0);
    read_until_delivered(&mut early, 1);
    let enough = |records: u64| {
        let goal = tap.counters().attempted + records;
        wait_for("records", || format!("{:?}", tap.counters()), || (tap.counters().attempted >= goal).then_some(()));
    };
    enough(30_000);
    read_until_delivered(&mut early, 2_000);
    let mut late = session(&found, 0);
    let now = Now::read();
    late.step(now, &mut NoSink).expect("no sink");
    enough(30_000);
    let ended = job.end();
    let (early, late) = (read_to_the_end(&mut early, &mut NoSink), read_to_the_end(&mut late, &mut NoSink));
    assert_exact(&early, &ended);
    assert_exact(&late, &ended);
    assert!(lost(&early, "overwritten") > 10_000, "{:?}", early.counts);
    assert!(lost(&late, "before_attach") > 10_000 && lost(&late, "overwritten") > 1_000, "{:?}", late.counts);
    assert_eq!(early.counts.delivered, delivered_by_kind(&early));
    assert_eq!(late.counts.delivered, delivered_by_kind(&late));
}

/// Events in the rows of the model.
fn delivered_by_kind(snapshot: &Snapshot) -> u64 {
    let kernels: u64 = snapshot.kernels.iter().map(|row| row.calls).sum();
    let copies: u64 = snapshot.copies.iter().map(|row| row.copies).sum();
    kernels + copies + snapshot.memsets
}

#[test]
fn under_overflow_in_named_memory() {
    overflow("shm");
}

#[test]
fn under_overflow_in_a_memfd() {
    overflow("memfd");
}

#[test]
fn with_records_dropped_by_cupti() {
    let mut job = Job::start(&spec(), &[("GPUTAP_START", "blackbox"), ("FAKE_CUPTI_DROP_EVERY", "7")]);
    let mut session = job.session(0);
    job.wait_for_progress(1_000);
    let ended = job.end();
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_exact(&snapshot, &ended);
    assert_eq!(lost(&snapshot, "cupti_dropped"), ended.tap.records_dropped);
    assert_eq!(ended.tap.records_dropped, generated(&ended.report) / 7);
}

#[test]
fn with_records_that_have_no_times() {
    let mut job = Job::start(&spec(), &[("GPUTAP_START", "blackbox"), ("FAKE_CUPTI_ZERO_TIMES_EVERY", "5")]);
    let mut session = job.session(0);
    job.wait_for_progress(500);
    let ended = job.end();
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_exact(&snapshot, &ended);
    // Flagged and counted, in no average.
    assert_eq!(snapshot.counts.flagged_times, generated(&ended.report) / 5);
    assert!(snapshot.kernels.iter().all(|row| row.min_ns > 0));
}
