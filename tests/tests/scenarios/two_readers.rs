//! Two readers of one tap.

use gputap_reader::clock::Now;
use gputap_reader::session::NoSink;
use gputap_ringbuf::event::EventKind;
use gputap_ringbuf::header::status::State;

use crate::job::{Job, spec};
use crate::reading::{Kept, calls, read_to_the_end, session, step_until, total_lost, wait_for_state, wait_for_status};

const KERNELS: u64 = EventKind::Kernel.bit();
const TRANSFERS: u64 = EventKind::Memcpy.bit() | EventKind::Memset.bit();

#[test]
fn see_the_same_and_the_union_of_what_they_ask_for() {
    let mut job = Job::start(&spec(), &[]);
    let (found, tap) = (job.found(), job.attached());
    let (mut first, mut second) = (session(&found, KERNELS), session(&found, TRANSFERS));
    let (mut first_kept, mut second_kept) = (Kept::default(), Kept::default());
    let status = wait_for_status(&tap, "both wishes", |status| status.kinds == KERNELS | TRANSFERS);
    assert_eq!(status.state, Some(State::Recording));
    // One reads all the time, the other now and then.
    for _ in 0..3 {
        job.wait_for_progress(200);
        second.step(Now::read(), &mut second_kept).expect("kept");
        let mut seen = 0;
        step_until(&mut first, &mut first_kept, "events", |_, progress| {
            seen += progress.delivered;
            seen > 500
        });
    }
    let ended = job.end();
    let one = read_to_the_end(&mut first, &mut first_kept);
    let two = read_to_the_end(&mut second, &mut second_kept);

    assert_eq!((total_lost(&one), total_lost(&two)), (0, 0), "{:?} {:?}", one.counts, two.counts);
    assert_eq!(one.counts.delivered, one.counts.attempted);
    assert_eq!(two.counts.delivered, one.counts.delivered);
    assert_eq!(calls(&one), calls(&two));
    assert!(one.counts.delivered > 1000 && one.copies.len() == 3 && one.memsets > 0 && one.memsets == two.memsets);
    assert_eq!(serde_json::to_value(&one.copies).expect("plain"), serde_json::to_value(&two.copies).expect("plain"));
    assert_eq!(first_kept.cubins, second_kept.cubins);
    assert_eq!(first_kept.cubins.len() as u64, ended.report.modules);
    assert_eq!((first_kept.events, second_kept.events), (one.counts.delivered, two.counts.delivered));
}

#[test]
fn one_that_leaves_takes_its_own_wish_along_and_no_other() {
    let mut job = Job::start(&spec(), &[]);
    let (found, tap) = (job.found(), job.attached());
    let (mut first, second) = (session(&found, KERNELS), session(&found, TRANSFERS));
    wait_for_status(&tap, "both wishes", |status| status.kinds == KERNELS | TRANSFERS);
    drop(second);
    step_until(&mut first, &mut NoSink, "kernels only", |_, _| tap.status().kinds == KERNELS);
    job.wait_for_progress(100);
    drop(first);
    let status = wait_for_state(&tap, State::Idle);
    assert_eq!(status.kinds, 0);
    job.end();
}
