//! A store against a model: for any interleaving of writers, of whom some end between taking room and showing it, of
//! housekeeping and of readers, entries never overlap, and each reader gets each finished one once, whole, and no other.
#![cfg(not(loom))]

#[path = "write_path/interrupted.rs"]
mod interrupted;
#[path = "store_model/world.rs"]
mod world;

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use world::{Op, Step, Summary, World};

/// Slots of the store in the model: few enough to run out.
const SLOTS: usize = 24;
const AREA_BYTES: u64 = 4096;

fn len_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..200u64, 1 => 0..=AREA_BYTES + 64, 1 => (0..5u64).prop_map(|n| n * 64), 1 => Just(1 << 31)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => len_bytes().prop_map(Step::Allocate),
        1 => (0..66u64).prop_map(Step::AllocateRest),
        4 => any::<usize>().prop_map(Step::Publish),
        1 => any::<usize>().prop_map(Step::End),
        1 => any::<usize>().prop_map(Step::UseAgain),
        1 => (1..4u64).prop_map(Step::Refuse),
        3 => prop_oneof![4 => 0..8u64, 1 => Just(AREA_BYTES / 64)].prop_map(|lines| Step::Reserve(lines * 64)),
        1 => Just(Step::Attach),
        3 => (any::<usize>(), 1..6usize).prop_map(|(reader, most)| Step::Read { reader, most }),
    ]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let interrupt = prop::option::weighted(0.5, (1..14u64, step()));
    let op = (step(), interrupt, prop::option::weighted(0.2, 1..14u64));
    prop::collection::vec(op.prop_map(|(step, interrupt, end_before)| Op { step, interrupt, end_before }), 1..100)
}

fn check_schedule(ops: &[Op]) -> Summary {
    let world = World::new(SLOTS, AREA_BYTES);
    ops.iter().for_each(|op| world.perform(op));
    world.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_every_reader_gets_every_finished_entry_once(ops in ops()) {
        check_schedule(&ops);
    }
}

/// A model that never comes to what it is there for proves nothing.
#[test]
fn the_schedules_come_to_every_outcome() {
    let mut runner = TestRunner::deterministic();
    let mut sum = Summary::default();
    (0..300).for_each(|_| sum.add(check_schedule(&ops().new_tree(&mut runner).unwrap().current())));
    println!("{sum:?}");
    let Summary { ready, unfinished, ended_inside, full, not_reserved, exactly_full, noted } = sum;
    assert!(ready > 1000 && unfinished > 100 && ended_inside > 100 && noted > 100);
    assert!(full > 100 && not_reserved > 100 && exactly_full > 0);
}
