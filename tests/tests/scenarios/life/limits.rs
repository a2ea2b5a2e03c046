//! Limits that the application meets or sets itself: descriptors, threads, a full /dev/shm.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use gputap_reader::session::NoSink;
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::discover::find;
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::identity::Backing;
use gputap_ringbuf::header::status::{Reason, State};

use super::identity::NOBODY;
use crate::app::App;
use crate::reading::{read_to_the_end, total_lost, wait_for, wait_for_state, wait_for_status};

/// From none to more than enough, before the driver is there. Whatever is missing then, the application runs, and its
/// tap is whole, or off with a reason, or cannot say even that.
#[test]
fn few_descriptors_are_no_harm() {
    let mut whole = 0;
    for spare in 0..16 {
        let mut app =
            App::start_without_driver("gputap_shim", &[("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "5")]);
        app.ask(&format!("spare-descriptors {spare}"));
        app.ask("init");
        app.ask("load 1");
        app.ask("launch 49");
        let Ok(found) = find(app.pid()) else {
            assert!(spare < 8, "{spare} descriptors to spare, and not a word");
            app.end("exit");
            continue;
        };
        let tap = Attached::open(&found).expect("a whole segment");
        if tap.status().state == Some(State::Off) {
            assert_ne!(tap.status().reason, Reason::None, "{spare}");
            assert!(app.end("exit").1.success());
            continue;
        }
        let mut session = crate::reading::session(&found, BASIC_KINDS);
        app.ask("load 2");
        app.ask("launch 99");
        assert!(app.end("exit").1.success());
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert_eq!(
            (snapshot.counts.attempted, snapshot.counts.delivered),
            (150, 150),
            "{spare}: {:?}",
            snapshot.counts
        );
        whole += 1;
    }
    assert!(whole > 3, "{whole}");
}

/// The limit on processes counts threads, and does not hold for root.
#[test]
fn no_thread_to_be_had_is_a_reason_to_be_off() {
    if !super::identity::is_root("a limit on threads") {
        return;
    }
    for backing in ["shm", "memfd"] {
        let mut app = App::start_without_driver("gputap_shim", &[("GPUTAP_BACKING", backing)]);
        app.ask(&format!("user {NOBODY}"));
        app.ask("processes 1");
        app.ask("init");
        let status = wait_for_state(&app.attached(), State::Off);
        assert_eq!(status.reason, Reason::NoThread, "{}", status.detail);
        app.load(1);
        app.launch(99);
        let (_, exit) = app.end("exit");
        assert!(exit.success(), "{exit}");
    }
}

/// An application that has a /dev/shm of its own, of this size; None where that is not allowed.
fn with_dev_shm(options: &'static str, env: &[(&str, &str)]) -> Option<App> {
    if !super::identity::is_root("a /dev/shm of its own") {
        return None;
    }
    let with_mount = |command: &mut Command| {
        let mount = move || {
            let mount = |what: &std::ffi::CStr, at: &std::ffi::CStr, flags, data: &[u8]| {
                // SAFETY: strings that end with NUL; mount(2) may be called between fork and exec.
                match unsafe { libc::mount(what.as_ptr(), at.as_ptr(), what.as_ptr(), flags, data.as_ptr().cast()) } {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            };
            // SAFETY: no memory is passed.
            if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
            mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE, b"\0")?;
            mount(c"tmpfs", c"/dev/shm", 0, options.as_bytes())
        };
        // SAFETY: as the closure says; it allocates nothing.
        unsafe { command.pre_exec(mount) };
    };
    Some(App::start_prepared("gputap_shim", env, with_mount))
}

/// The file that fills the application's /dev/shm, as the test sees it.
fn filler(app: &App) -> PathBuf {
    PathBuf::from(format!("/proc/{}/root/dev/shm/filler", app.pid()))
}

#[test]
fn a_full_dev_shm_is_passed_by() {
    let Some(mut app) = with_dev_shm("size=64m\0", &[("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "5")]) else {
        return;
    };
    app.ask("fill /dev/shm/filler");
    app.ask("init");
    let tap = app.attached();
    assert_eq!(tap.identity().backing, Backing::Memfd);
    let mut session = app.session(BASIC_KINDS);
    app.load(1);
    app.launch(99);
    assert!(app.end("exit").1.success());
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (100, 100), "{:?}", snapshot.counts);
}

#[test]
fn a_full_dev_shm_that_was_asked_for_is_a_reason_to_be_off() {
    let Some(mut app) = with_dev_shm("size=64m\0", &[("GPUTAP_BACKING", "shm")]) else { return };
    app.ask("fill /dev/shm/filler");
    app.ask("init");
    let status = wait_for_state(&app.attached(), State::Off);
    assert_eq!(status.reason, Reason::NoRoom);
    assert!(status.detail.contains("/dev/shm"), "{}", status.detail);
    app.load(1);
    app.launch(99);
    assert!(app.end("exit").1.success());
}

/// Others fill it while the tap is there: what was reserved is used, what finds no room is counted, the application
/// is not touched, and once there is room again all goes on.
#[test]
fn a_dev_shm_that_fills_up_costs_records_and_nothing_else() {
    let env = [("GPUTAP_BACKING", "shm"), ("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "5")];
    let Some(mut app) = with_dev_shm("size=768m\0", &env) else { return };
    app.ask("init");
    let tap = app.attached();
    let mut session = app.session(BASIC_KINDS);
    app.load(0);
    app.ask("fill /dev/shm/filler");
    let mut seed = 0;
    wait_for(
        "a module without room",
        || format!("{:?}", tap.counters()),
        || {
            seed += 1;
            app.load(seed);
            (tap.counters().get(Counter::ModulesNotReserved) > 0).then_some(())
        },
    );
    let status = wait_for_status(&tap, "no room", |status| status.reason == Reason::NoRoom);
    assert_eq!(status.state, Some(State::BlackBox), "{}", status.detail);
    app.launch(1_000);
    std::fs::remove_file(filler(&app)).expect("removed");
    wait_for_status(&tap, "room again", |status| status.reason == Reason::None);
    let refused = tap.counters().get(Counter::ModulesNotReserved);
    app.load(seed + 1);
    assert_eq!(tap.counters().get(Counter::ModulesNotReserved), refused);
    assert!(app.end("exit").1.success());
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!(snapshot.counts.attempted, 1 + seed + 1_000 + 1, "{:?}", snapshot.counts);
    assert_eq!(snapshot.counts.delivered + total_lost(&snapshot), snapshot.counts.attempted);
    let modules = &snapshot.module_counts;
    let not_stored: u64 = modules.refused.iter().map(|lost| lost.count).sum();
    assert_eq!(
        (modules.attempted, modules.stored + not_stored + modules.duplicates),
        (seed + 2, seed + 2),
        "{modules:?}"
    );
}
