//! A whole tap against a model: for any schedule of threads, deaths, heirs, housekeeping and readers, what the threads
//! counted themselves is what each reader gets plus what is counted as lost, exactly.
#![cfg(not(loom))]

#[path = "tap_model/books.rs"]
mod books;
#[path = "write_path/interrupted.rs"]
mod interrupted;
#[path = "tap_model/schedule.rs"]
mod schedule;
#[path = "tap_model/world.rs"]
mod world;

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use schedule::{Op, op};
use world::{Summary, World};

fn check_schedule(lanes: usize, room_lanes: u64, ops: &[Op]) -> Summary {
    let world = World::new(lanes, room_lanes);
    ops.iter().for_each(|op| world.perform(op));
    world.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_every_reader_can_account_for_every_record(
        lanes in 1..=3usize, room_lanes in 0..=3u64, ops in prop::collection::vec(op(), 1..80),
    ) {
        check_schedule(lanes, room_lanes, &ops);
    }
}

/// A model that never comes to what it is there for proves nothing.
#[test]
fn the_schedules_come_to_every_way_of_losing_a_record() {
    let mut runner = TestRunner::deterministic();
    let mut sum = Summary::default();
    for n in 0..200u64 {
        let ops = prop::collection::vec(op(), 1..80).new_tree(&mut runner).unwrap().current();
        sum.add(check_schedule(1 + n as usize % 3, n % 4, &ops));
    }
    println!("{sum:?}");
    let Summary { attempted, nested, nested_in_between, no_lane, overwritten, before_attach, abandoned, vanished } =
        sum;
    assert!(attempted > 50_000 && vanished > 0 && nested > 0 && nested_in_between > 0 && no_lane > 0);
    assert!(overwritten > 0 && before_attach > 0 && abandoned > 0);
}
