//! Room is reserved ahead of the writers, within a limit; what outruns it is refused and counted, never a fault.
#![cfg(not(loom))]

use gputap_ringbuf::{
    backing::{
        create::{BackingChoice, Created, create},
        reserve::{ReserveError, Reserver},
    },
    header::{counters::Counter, identity::Backing},
    housekeeping::{Ahead, Housekeeper, Step},
    lane::directory::Refused,
    layout::{CHUNK_WORDS, Sizes},
    store::EntryKind,
    tap::{ModuleLoad, TapWriter},
};

const LANE_BYTES: u64 = 4 * 65536;
const MIB: u64 = 1 << 20;
const SIZES: Sizes = Sizes {
    lanes: 8,
    lane_words: 4 * CHUNK_WORDS,
    cubin_slots: 32,
    cubin_bytes: 16 << 20,
    definition_slots: 16,
    definition_bytes: 1 << 20,
};

/// A tap whose segment gets at most `limit_bytes` besides its head, and whoever reserves for it.
fn tap(limit_bytes: u64, ahead: Ahead) -> (TapWriter, Housekeeper) {
    let created = create(SIZES, BackingChoice::Only(Backing::Memfd)).unwrap();
    let Created { words, layout, identity, reserver: _, control } = created;
    let reserver = || Reserver::new(words.clone(), None, false, limit_bytes);
    let tap = TapWriter::new(&Created { words: words.clone(), layout, identity, reserver: reserver(), control });
    tap.publish();
    (tap, Housekeeper::new(reserver(), ahead))
}

fn store(tap: &TapWriter, image: &[u8]) {
    // SAFETY: `image` can be read and does not change.
    unsafe { tap.store_cubin(image.as_ptr(), image.len(), ModuleLoad::default()) };
}

fn count(tap: &TapWriter, counter: Counter) -> u64 {
    tap.as_reader().unwrap().counters().get(counter)
}

fn cubins(tap: &TapWriter) -> usize {
    let mut store = tap.as_reader().unwrap().cubins();
    std::iter::from_fn(|| store.next_entry()).filter(|entry| entry.kind == EntryKind::Cubin as u16).count()
}

#[test]
fn before_housekeeping_everything_is_refused_and_counted() {
    let (tap, _) = tap(u64::MAX, Ahead::DEFAULT);
    assert_eq!(tap.enter_lane(100, 1).err(), Some(Refused::NoLane));
    store(&tap, &[1; 100]);
    assert_eq!(tap.store_kernel_name(b"kernel", 0), None);
    assert_eq!((count(&tap, Counter::ModuleLoads), count(&tap, Counter::ModulesNotReserved)), (1, 1));
    assert_eq!((count(&tap, Counter::NamesLost), cubins(&tap)), (1, 0));
}

#[test]
fn a_burst_that_outruns_housekeeping_is_counted_and_the_next_step_makes_room() {
    let ahead = Ahead { lanes: 1, cubin_bytes: MIB, definition_bytes: 65536, step_bytes: MIB };
    let (tap, mut housekeeper) = tap(u64::MAX, ahead);
    while let Step::Reserved = housekeeper.step(&tap) {}
    let half = (MIB / 2) as usize;
    (0..3).for_each(|n| store(&tap, &vec![n; half]));
    assert_eq!((cubins(&tap), count(&tap, Counter::ModulesNotReserved)), (2, 1));
    while let Step::Reserved = housekeeper.step(&tap) {}
    store(&tap, &vec![3; half]);
    store(&tap, &vec![3; half]);
    assert_eq!((cubins(&tap), count(&tap, Counter::ModuleDuplicates)), (3, 1));
    assert_eq!(count(&tap, Counter::CubinBytes), 3 * MIB / 2);
}

#[test]
fn at_the_cap_loads_are_refused_as_full() {
    let ahead = Ahead { lanes: 1, cubin_bytes: 1 << 40, definition_bytes: 65536, step_bytes: MIB };
    let (tap, mut housekeeper) = tap(u64::MAX, ahead);
    while let Step::Reserved = housekeeper.step(&tap) {}
    (0..20).for_each(|n| store(&tap, &vec![n; MIB as usize]));
    assert_eq!((cubins(&tap), count(&tap, Counter::ModulesFull)), (16, 4));
    let mut store = tap.as_reader().unwrap().cubins();
    let refused = std::iter::from_fn(|| store.next_entry()).find(|e| e.kind == EntryKind::RefusedCubin as u16).unwrap();
    assert_eq!((refused.b, refused.uses), (MIB, 4));
    assert!(matches!(housekeeper.step(&tap), Step::Enough));
}

/// A step smaller than a sixteenth of the room wanted ahead was never thought worth its system call.
#[test]
fn small_steps_reach_what_is_wanted_ahead() {
    let ahead = Ahead { lanes: 1, cubin_bytes: 8 * MIB, definition_bytes: 65536, step_bytes: 65536 };
    let (tap, mut housekeeper) = tap(u64::MAX, ahead);
    let mut steps = 0;
    while let Step::Reserved = housekeeper.step(&tap) {
        steps += 1;
    }
    // What is left to do waits until it is a sixteenth, and worth a system call.
    assert!(housekeeper.reserved_bytes() > LANE_BYTES + 65536 + 8 * MIB * 15 / 16);
    assert!(steps > 100);
}

/// A lane that could not be had kept cubins and names from being reserved at all.
#[test]
fn lanes_that_find_no_room_do_not_starve_the_stores() {
    let ahead = Ahead { lanes: 8, cubin_bytes: 65536, definition_bytes: 16384, step_bytes: 16384 };
    let (tap, mut housekeeper) = tap(LANE_BYTES + 200_000, ahead);
    let mut last = housekeeper.step(&tap);
    while let Step::Reserved = last {
        last = housekeeper.step(&tap);
    }
    assert!(matches!(last, Step::Short(ReserveError::OverBudget { .. })), "{last:?}");
    assert!(tap.enter_lane(100, 1).is_ok());
    store(&tap, &[1; 60_000]);
    assert!(tap.store_kernel_name(b"kernel", 0).is_some());
    assert_eq!(cubins(&tap), 1);
}

#[test]
fn lanes_of_ended_threads_are_used_again_and_keep_their_records() {
    let ahead = Ahead { lanes: 1, ..Ahead::DEFAULT };
    let (tap, mut housekeeper) = tap(LANE_BYTES * 3 / 2, ahead);
    while let Step::Reserved = housekeeper.step(&tap) {}
    for n in 0..100u64 {
        // Thread n has ended when thread n + 1 comes.
        let (thread, tid) = (1000 + n, 2000 + n);
        tap.enter_lane(thread, tid).unwrap().write(1, &[n]).unwrap();
        assert_eq!(tap.enter_lane(thread + 1, tid + 1).err(), Some(Refused::NoLane));
        tap.count(Counter::NoLane, 1);
        assert_eq!(housekeeper.free_lanes(&tap, |t| t == tid), 1);
    }
    let attached = tap.as_reader().unwrap();
    let mut seen = Vec::new();
    let done = attached.lane(0).drain(u64::MAX, |record| seen.push(record.words[0]));
    assert_eq!((done.delivered, seen), (100, (0..100).collect()));
    assert_eq!(attached.counters().attempted, 200);
}

#[test]
fn a_thread_whose_id_is_unknown_keeps_its_lane() {
    let (tap, mut housekeeper) = tap(u64::MAX, Ahead { lanes: 1, ..Ahead::DEFAULT });
    while let Step::Reserved = housekeeper.step(&tap) {}
    drop(tap.enter_lane(100, 0).unwrap());
    assert_eq!(housekeeper.free_lanes(&tap, |_| true), 0);
}
