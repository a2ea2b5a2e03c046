//! A job that is killed, and what it leaves.

use std::path::Path;

use gputap_reader::clock::Now;
use gputap_reader::list::list;
use gputap_reader::session::NoSink;
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::{discover, sweep};
use gputap_ringbuf::event::BASIC_KINDS;

use crate::app::{App, image};
use crate::job::{Job, spec};
use crate::reading::{Kept, is_unknown, lost, read_to_the_end, read_until_delivered, session, step_until, wait_for};

const BLACK_BOX: [(&str, &str); 2] = [("GPUTAP_START", "blackbox"), ("GPUTAP_BACKING", "shm")];

#[test]
fn leaves_all_that_reached_the_shim_readable_until_it_is_swept_away() {
    let mut app = App::start(&BLACK_BOX);
    (0..20).for_each(|seed| app.load(seed));
    app.launch(3_000);
    let found = app.found();
    // Another test's tap sweeps when it starts; what somebody has mapped it leaves alone.
    let hold = Attached::open(&found).expect("whole");
    wait_for(
        "the last flush",
        || format!("{:?}", hold.counters()),
        || (hold.counters().attempted == 3_020).then_some(()),
    );
    assert!(!sweep().contains(&found.segment), "a living tap was swept away");
    assert!(found.segment.exists());
    app.kill();

    let dead = discover().into_iter().find(|dead| dead.segment == found.segment).expect("it stays");
    assert!(!dead.alive);
    let listed = list(Now::read()).into_iter().find(|tap| tap.found.segment == found.segment).expect("listed");
    assert_eq!((listed.alive, listed.state.as_str(), listed.attempted), (false, "exited", 3_020));
    let mut kept = Kept::default();
    let mut after = session(&dead, BASIC_KINDS);
    let snapshot = read_to_the_end(&mut after, &mut kept);
    assert_eq!((snapshot.counts.delivered, kept.events), (3_020, 3_020));
    assert!(is_unknown(&snapshot, "held_by_cupti"), "{:?}", snapshot.counts);
    assert!(kept.cubins == (0..20).map(|seed| image(seed).0).collect::<Vec<_>>());

    assert!(!sweep().contains(&found.segment) && found.segment.exists(), "somebody still reads it");
    drop((hold, after));
    // It may be another test's tap that sweeps it.
    sweep();
    assert!(!found.segment.exists() && !found.control.exists());
}

/// Killed at any moment, inside callbacks and flushes too, the books of what is left add up.
#[test]
fn at_any_moment_leaves_books_that_add_up() {
    for (round, backing) in ["shm", "memfd", "shm", "memfd", "shm", "memfd"].into_iter().enumerate() {
        let spec = gputap_sim_job::JobSpec { kernels_per_second: 0, load_churn: true, threads: 3, ..spec() };
        let env = [("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "1"), ("GPUTAP_BACKING", backing)];
        let mut job = Job::start(&spec, &env);
        let mut live = job.session(0);
        read_until_delivered(&mut live, 1_000 * round as u64 + 1);
        job.wait_for_progress(1);
        let found = job.found();
        job.kill();
        let seen = read_to_the_end(&mut live, &mut NoSink);
        assert!(seen.counts.delivered > 0 && is_unknown(&seen, "held_by_cupti"), "{:?}", seen.counts);
        // One thread of CUPTI's writes: at most one record was under its pen.
        let named = ["overwritten", "before_attach", "unfinished", "held_by_cupti"];
        assert!(seen.counts.lost.iter().all(|lost| named.contains(&lost.reason.as_str())), "{:?}", seen.counts);
        assert!(lost(&seen, "unfinished") <= 1, "{:?}", seen.counts);
        if backing == "memfd" {
            assert!(!Path::new(&found.segment).exists(), "a memfd is gone with its process");
            continue;
        }
        let again = read_to_the_end(&mut session(&found, 0), &mut NoSink);
        assert_eq!(again.counts.attempted, seen.counts.attempted);
        assert!(again.kernels.iter().all(|row| !row.mangled.is_empty()), "kernels without a name");
        drop(live);
        sweep();
        assert!(!found.segment.exists());
    }
}

#[test]
fn in_a_recording_that_is_read_ends_the_reader() {
    let mut job = Job::start(&spec(), &[]);
    let mut session = job.session(BASIC_KINDS);
    read_until_delivered(&mut session, 100);
    job.wait_for_progress(10);
    job.kill();
    step_until(&mut session, &mut NoSink, "the end", |_, progress| progress.ended);
    assert!(session.has_ended());
}
