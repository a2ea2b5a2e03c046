//! Programs that become daemons: two forks, setsid, another folder and mask, all descriptors closed.

use gputap_reader::session::NoSink;
use gputap_ringbuf::discover::{FindError, find};
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::State;

use super::distant::{Distant, reap};
use crate::app::App;
use crate::reading::{read_to_the_end, wait_for_state, wait_for_status};

/// For a daemon that has the driver's lock as it was: CUPTI's worker holds it for a moment in a flush.
const NO_FLUSH: (&str, &str) = ("GPUTAP_FLUSH_MS", "60000");

fn daemonize(app: &mut App) -> Distant {
    let mut daemon = Distant::new();
    assert_eq!(app.ask(&format!("daemon {}", daemon.folder())), "0");
    daemon.meet();
    daemon
}

/// As a service does it, before it does anything else. The tap is the daemon's alone.
#[test]
fn a_daemon_that_uses_cuda_has_a_tap() {
    for backing in ["shm", "memfd"] {
        let mut app =
            App::start_without_driver("gputap_shim", &[("GPUTAP_START", "blackbox"), ("GPUTAP_BACKING", backing)]);
        let mut daemon = daemonize(&mut app);
        daemon.ask("init");
        let portrait = daemon.ask("portrait");
        assert!(portrait.starts_with("Umask:0000;") && portrait.contains("cwd /;"), "{portrait}");
        assert!(matches!(find(app.pid()), Err(FindError::NoTap { .. })), "the parent has no CUDA");
        let mut session = crate::reading::session(&daemon.found(), BASIC_KINDS);
        let tap = daemon.attached();
        daemon.ask("load 1");
        daemon.ask("launch 99");
        daemon.tell("exit");
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (100, 100), "{:?}", snapshot.counts);
        assert_eq!(tap.status().state, Some(State::Exited));
        assert_eq!(reap(&mut app, daemon), "0");
    }
}

/// Which NVIDIA's driver does not allow, and some programs do: the daemon is a forked child, for which the tap is off.
#[test]
fn a_daemon_made_of_a_tapped_process_is_untapped() {
    for backing in ["shm", "memfd"] {
        let mut app = App::start(&[("GPUTAP_BACKING", backing), ("GPUTAP_START", "blackbox"), NO_FLUSH]);
        let tap = app.attached();
        let mut session = app.session(BASIC_KINDS);
        app.load(1);
        let mut daemon = daemonize(&mut app);
        daemon.ask("load 2");
        daemon.ask("launch 100");
        assert!(matches!(find(daemon.pid()), Err(FindError::NoTap { .. })), "{:?}", find(daemon.pid()));
        app.launch(9);
        assert_eq!(tap.counters().get(Counter::ModuleLoads), 1, "the daemon's module is not the parent's");
        daemon.tell("exit");
        assert_eq!(reap(&mut app, daemon), "0");
        assert_eq!(tap.status().state, Some(State::BlackBox), "the daemon's exit is not the parent's");
        app.end("exit");
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (10, 10), "{:?}", snapshot.counts);
    }
}

/// The numbers that ours had are somebody else's then. The tap is found, read and goes on; nobody's descriptor is closed.
#[test]
fn a_process_that_closes_all_descriptors_keeps_its_tap() {
    for backing in ["shm", "memfd"] {
        let mut app =
            App::start(&[("GPUTAP_BACKING", backing), ("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "5")]);
        app.load(1);
        // While it reserves memory the timer reads files, as any thread might that is not the application's: whoever
        // closes everything in that moment closes those.
        let reserved = app.attached();
        let heartbeat_ns = reserved.status().heartbeat_ns;
        wait_for_status(&reserved, "turns", |status| status.heartbeat_ns > heartbeat_ns + 300_000_000);
        app.ask("close-all");
        let open = app.ask("still-open");
        assert!(open.parse::<u32>().expect("a number") > 900, "{open}");
        let tap = app.attached();
        let mut session = app.session(BASIC_KINDS);
        // Much room is reserved, and a second of turns goes by.
        (2..40).for_each(|seed| app.load(seed));
        app.launch(61);
        let heartbeat_ns = tap.status().heartbeat_ns;
        wait_for_status(&tap, "turns", |status| status.heartbeat_ns > heartbeat_ns + 1_200_000_000);
        assert_eq!(app.ask("still-open"), open, "a descriptor of the application's was closed");
        assert_eq!(tap.counters().get(Counter::ModuleLoads), 39);
        app.end("exit");
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (100, 100), "{:?}", snapshot.counts);
        wait_for_state(&tap, State::Exited);
    }
}
