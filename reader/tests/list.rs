//! The list of taps. A file, and so a process, of its own: a process has one living tap, its newest.

#[allow(dead_code, reason = "each file of tests uses its part")]
mod support;

use gputap_reader::clock::Now;
use gputap_reader::crc::Program;
use gputap_ringbuf::event::EventKind;
use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::header::identity::Backing;
use gputap_ringbuf::header::status::{Reason, State};
use support::Tap;

#[test]
fn a_state_with_its_reason_reaches_the_snapshot_and_the_list() {
    let tap = Tap::new(Backing::Shm);
    tap.writer.status().set_state(State::Off, Reason::NoCupti, "tried\x1b[2J libcupti.so.13");
    let session = tap.session();
    let target = session.snapshot(Now::read()).target;
    assert_eq!(target.state, "off");
    assert!(
        target.reason.contains("no libcupti") && target.reason.ends_with("[2J libcupti.so.13"),
        "{}",
        target.reason
    );
    assert!(!target.reason.chars().any(char::is_control), "{:?}", target.reason);
    let listed = gputap_reader::list::list(Now::read());
    let ours = listed.iter().find(|listed| listed.found == tap.found).expect("it is listed");
    assert_eq!((ours.state.as_str(), ours.pid, ours.alive), ("off", std::process::id(), true));
    assert_eq!((ours.reason.as_str(), ours.error.as_str()), (target.reason.as_str(), ""));
    assert!(ours.command.contains("list"), "{}", ours.command);
    assert!(ours.is_trouble);

    let status = tap.writer.status();
    status.set_state(State::Recording, Reason::NoRecords, "9 launches in 10 s");
    status.set_notes(EventKind::Launch.bit(), "launch events cannot be had in this process: x\nthe libcupti is odd");
    status.set_kinds(EventKind::Kernel.bit());
    status.set_driver_version(13_000);
    tap.writer.count(Counter::NegativeTimes, 4);
    let listed = gputap_reader::list::list(Now::read());
    let ours = listed.iter().find(|listed| listed.found == tap.found).expect("it is listed");
    assert!(ours.is_trouble && ours.reason.contains("no records"), "{}", ours.reason);
    assert_eq!((ours.driver_version.as_str(), ours.kinds.as_slice()), ("13.0", &["kernel"][..]));
    assert_eq!((ours.flags.negative, ours.clock.source, ours.notes.len()), (4, "wall", 2));
    assert_eq!(ours.general_notes, ["the libcupti is odd"]);
    // Its own look at libraries does not matter here.
    let program = Program { path: "/nowhere/gputap".into(), arguments: Vec::new() };
    let advice = gputap_reader::doctor::examine(&program, Now::read()).advice;
    let of_ours =
        |what: &str| advice.iter().any(|line| line.contains(&format!("process {}", ours.pid)) && line.contains(what));
    assert!(of_ours("has trouble: kernels are launched") && of_ours("says: the libcupti is odd"), "{advice:?}");
    assert!(!of_ours("cannot be had"), "{advice:?}");
    status.set_state(State::Yielded, Reason::ByCommand, "");
    let listed = gputap_reader::list::list(Now::read());
    assert!(!listed.iter().find(|listed| listed.found == tap.found).expect("it is listed").is_trouble);
}
