//! A tapped process that forks without exec, or is replaced by exec.

use gputap_reader::session::NoSink;
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::State;

use crate::app::App;
use crate::reading::{read_to_the_end, read_until_delivered, wait_for_state, wait_for_status};

/// The child loads a module, launches and exits in the ordinary way. For it the tap is off: it writes nothing, and its
/// exit waits for nobody.
fn a_child_is_untapped(by: &str) {
    let mut app = App::start(&[]);
    let tap = app.attached();
    wait_for_state(&tap, State::Idle);
    (1..=4).for_each(|seed| app.load(seed));
    // The timer has long begun: a child finds no lock of the C library in its hands.
    let heartbeat_ns = tap.status().heartbeat_ns;
    wait_for_status(&tap, "turns", |status| status.heartbeat_ns > heartbeat_ns + 50_000_000);
    let before = (tap.counters(), tap.status().state);
    for _ in 0..3 {
        let answer = app.ask(by);
        let (code, took_ms) = answer.split_once(' ').expect("two numbers");
        assert_eq!(code, "7", "the child's own exit code");
        assert!(took_ms.parse::<u64>().expect("milliseconds") < 5_000, "{took_ms} ms: it waited for somebody");
    }
    let counters = tap.counters();
    assert_eq!(counters.get(Counter::ModuleLoads), 4, "the children's modules are not the parent's");
    assert_eq!((counters.attempted, tap.status().state), (before.0.attempted, before.1));

    // The parent's tap goes on.
    let mut session = app.session(BASIC_KINDS);
    wait_for_state(&tap, State::Recording);
    app.load(5);
    app.launch(99);
    read_until_delivered(&mut session, 100);
    assert_eq!(tap.counters().get(Counter::ModuleLoads), 5);
    app.end("exit");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!((snapshot.counts.attempted, tap.status().state), (100, Some(State::Exited)));
}

#[test]
fn a_forked_child_is_untapped() {
    a_child_is_untapped("child fork exit launch");
}

/// Which no handler of pthread_atfork sees.
#[test]
fn a_child_of_a_raw_clone_is_untapped() {
    a_child_is_untapped("child clone exit launch");
}

/// The tap of the program before it has the same pid and start time, and its segment is still there.
#[test]
fn a_process_that_was_replaced_by_exec_is_found_by_its_new_tap() {
    let mut app = App::start(&[]);
    let old = app.found();
    for _ in 0..3 {
        app.ask("exec");
        app.ask("init");
        app.load(1);
        let tap = app.attached();
        assert_eq!(tap.counters().get(Counter::ModuleLoads), 1);
        let living = |found: &gputap_ringbuf::discover::Found| found.pid == app.pid() && found.alive;
        assert_eq!(gputap_ringbuf::discover::discover().into_iter().filter(living).count(), 1);
    }
    assert_ne!(app.found(), old);
}
