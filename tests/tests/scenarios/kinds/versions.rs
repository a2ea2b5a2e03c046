//! Each version of CUPTI lays its records out in its own way: the events are the same. A CUPTI that says one version
//! and writes another's records, or that is newer than all that are known, ends nothing.

use gputap_ringbuf::header::counters::Counter;
use gputap_ringbuf::process::monotonic_ns;

use super::run::Run;
use super::wishes::RECORDS;
use crate::reading::wait_for_status;

const NEWER: &str = "newer than this gputap";

/// Something of everything under this version, field by field.
fn same_values(version: &str, number: u32) {
    let mut run = Run::start(&[("FAKE_CUPTI_VERSION", version)]);
    let status = run.tap.status();
    assert_eq!(status.cupti_version, number);
    let _wish = run.wish(RECORDS);
    run.actor.act("all");
    run.flush();
    run.catch_up();
    run.compare(RECORDS);
    run.assert_books();
    let counters = [Counter::UnknownRecords, Counter::PoolEmpty, Counter::Panics].map(|counter| run.count(counter));
    assert_eq!(counters, [0; 3]);
    let is_newer = status.notes.iter().any(|note| note.contains(NEWER));
    assert_eq!(is_newer, number > 130_500, "{:?}", status.notes);
    let tally = run.actor.tally();
    assert!(run.got.told.len() as u64 > tally.values().sum::<u64>() - tally["node"], "all of it, and calls");
}

macro_rules! versions {
    ($($test:ident: $version:literal is $number:literal;)*) => {$(
        #[test]
        fn $test() {
            same_values($version, $number);
        }
    )*};
}

versions! {
    version_11_8: "11.8" is 18;
    version_12_0_and_12_1: "18" is 18;
    version_19: "19" is 19;
    version_12_2: "20" is 20;
    version_12_3: "21" is 21;
    version_12_4: "22" is 22;
    version_12_5: "23" is 23;
    version_12_6: "24" is 24;
    version_25: "25" is 25;
    version_12_8: "26" is 26;
    version_12_9: "27" is 27;
    version_12_9_update_1: "28" is 28;
    version_13_0: "130001" is 130_001;
    version_13_1: "130100" is 130_100;
    version_13_3: "130300" is 130_300;
    version_13_5: "130500" is 130_500;
    a_version_that_is_not_out_yet: "140000" is 140_000;
}

/// The version says one layout, the records have another.
fn mismatch(version: &str, layouts: &str) {
    let mut run = Run::start(&[("FAKE_CUPTI_VERSION", version), ("FAKE_CUPTI_LAYOUTS", layouts)]);
    let _wish = run.wish(RECORDS);
    for _ in 0..2 {
        run.actor.act("all");
        run.catch_up();
    }
    // What came with records is freed once a second: of these nothing did, whatever they look like.
    let now_ns = monotonic_ns();
    wait_for_status(&run.tap, "a second", |status| status.heartbeat_ns > now_ns + 1_100_000_000);
    let fake = run.actor.counters();
    // The last record of a buffer may end before its table does: such a one is no event, and said to be unknown.
    let counters = run.tap.counters();
    let told = counters.attempted + counters.get(Counter::UnknownRecords) + counters.get(Counter::PoolEmpty);
    assert_eq!((told, counters.get(Counter::Panics)), (fake.records_delivered, 0), "{counters:?}");
    assert_eq!(counters.attempted, run.got.told.len() as u64);
    let (snapshot, _) = run.end();
    assert_eq!(crate::reading::total_lost(&snapshot), 0);
}

#[test]
fn records_that_are_shorter_than_their_version_says() {
    mismatch("130500", "130001");
    mismatch("130500", "11.8");
}

#[test]
fn records_that_are_longer_than_their_version_says() {
    mismatch("11.8", "130500");
    mismatch("130001", "130500");
}

#[test]
fn records_of_one_toolkit_earlier_or_later() {
    mismatch("24", "26");
    mismatch("26", "24");
    mismatch("22", "20");
    mismatch("20", "22");
}
