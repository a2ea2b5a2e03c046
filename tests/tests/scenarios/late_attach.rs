//! A reader that comes late.

use gputap_reader::clock::Now;
use gputap_reader::session::NoSink;
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::status::State;

use crate::app::{App, image};
use crate::job::{Job, spec};
use crate::reading::{Kept, balanced, lost, read_to_the_end, step_until, wait_for_state};

const MODULES: u64 = 60;

/// An application has loaded its modules and launched their kernels, most of which the lane has long overwritten.
fn late_attach(backing: &str) {
    let env = [("GPUTAP_START", "blackbox"), ("GPUTAP_LANE_MB", "1"), ("GPUTAP_BACKING", backing)];
    let mut app = App::start(&env);
    (0..MODULES).for_each(|seed| app.load(seed));
    app.launch(40_000);
    // Loaded again: the same bytes are kept once.
    (0..10).for_each(|seed| app.load(seed));

    let mut session = app.session(BASIC_KINDS);
    let mut kept = Kept::default();
    step_until(&mut session, &mut kept, "all cubins", |session, progress| {
        !progress.more && session.snapshot(Now::read()).module_counts.attempted == MODULES + 10
    });
    let snapshot = balanced(&session);
    assert!(lost(&snapshot, "before_attach") > 10_000, "{:?}", snapshot.counts);
    let (mut images, mut names): (Vec<_>, Vec<_>) = (0..MODULES).map(image).unzip();
    let mut cubins = std::mem::take(&mut kept.cubins);
    images.sort();
    cubins.sort();
    assert!(cubins == images, "every cubin, each once, byte for byte: {} of {MODULES}", cubins.len());
    names.sort();
    // A name is stored once a thread that writes; here that is CUPTI's worker alone.
    kept.names.sort();
    assert_eq!(kept.names, names);
    assert_eq!((snapshot.module_counts.stored, snapshot.module_counts.duplicates), (MODULES, 10));
    assert_eq!(snapshot.module_counts.refused.len(), 0, "{:?}", snapshot.module_counts);
    app.end("exit");
    read_to_the_end(&mut session, &mut NoSink);
}

#[test]
fn gets_every_cubin_and_every_name_from_named_memory() {
    late_attach("shm");
}

#[test]
fn gets_every_cubin_and_every_name_from_a_memfd() {
    late_attach("memfd");
}

/// Nobody reads while a training job loads its modules; later its launches are recorded under their names.
#[test]
fn gets_the_modules_of_an_idle_tap_and_the_names_of_later_launches() {
    let mut job = Job::start(&spec(), &[]);
    wait_for_state(&job.attached(), State::Idle);
    job.wait_for_progress(500);
    let mut session = job.session(BASIC_KINDS);
    let mut kept = Kept::default();
    step_until(&mut session, &mut kept, "events", |_, progress| progress.delivered > 0);
    job.wait_for_progress(500);
    let ended = job.end();
    let snapshot = read_to_the_end(&mut session, &mut kept);
    assert_eq!((snapshot.module_counts.stored, kept.cubins.len() as u64), (ended.report.modules, ended.report.modules));
    assert_eq!(kept.cubins.iter().map(|cubin| cubin.len() as u64).sum::<u64>(), ended.report.cubin_bytes);
    let launched = |name: &str| ended.report.kernels_by_name.get(name).copied().unwrap_or(0);
    assert!(!snapshot.kernels.is_empty());
    for row in &snapshot.kernels {
        assert!((1..=launched(&row.mangled)).contains(&row.calls), "{}: {} calls", row.mangled, row.calls);
    }
}
