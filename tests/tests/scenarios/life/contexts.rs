//! Contexts that come and go.

use gputap_reader::session::NoSink;
use gputap_ringbuf::event::BASIC_KINDS;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::status::State;

use crate::app::App;
use crate::reading::{read_to_the_end, total_lost};

#[test]
fn a_hundred_contexts_one_after_the_other_are_recorded_whole() {
    for flush_ms in ["1", "60000"] {
        let mut app = App::start(&[("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", flush_ms)]);
        let tap = app.attached();
        let mut session = app.session(BASIC_KINDS);
        app.ask("contexts 100 49");
        assert_eq!(tap.counters().get(Counter::ModuleLoads), 100);
        assert_eq!(tap.counters().get(Counter::ModuleDuplicates), 92, "eight images");
        app.end("exit");
        let snapshot = read_to_the_end(&mut session, &mut NoSink);
        assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (5_000, 5_000), "{:?}", snapshot.counts);
        assert_eq!((total_lost(&snapshot), snapshot.module_counts.stored), (0, 8));
        assert_eq!(tap.status().state, Some(State::Exited));
    }
}

#[test]
fn a_device_reset_is_no_end() {
    let mut app = App::start(&[("GPUTAP_START", "blackbox"), ("GPUTAP_FLUSH_MS", "5")]);
    let tap = app.attached();
    let mut session = app.session(BASIC_KINDS);
    for seed in 0..5 {
        app.load(seed);
        // Not waited for: the reset is.
        app.queue(199);
        app.ask("reset");
    }
    app.load(9);
    assert_eq!((tap.status().state, tap.counters().get(Counter::ModuleLoads)), (Some(State::BlackBox), 6));
    app.end("exit");
    let snapshot = read_to_the_end(&mut session, &mut NoSink);
    assert_eq!((snapshot.counts.attempted, snapshot.counts.delivered), (1_001, 1_001), "{:?}", snapshot.counts);
}
