//! The head of a segment, as it is written and read at once.

use super::{LoomWords, check, race};
use gputap_ringbuf::{
    header::{
        identity::{Backing, BadHeader, Identity},
        status::{ClockPoint, Reason, State, Status, StatusWriter, UNSETTLED, clock_points},
    },
    layout::{Layout, STATUS, Sizes, ident, status},
};

const WORDS: usize = STATUS + status::NOTES + status::NOTES_WORDS;
const OLD: &str = "old text, old t";
const NEW: &str = "new word, new w";

/// State, reason and detail change under a reader.
pub fn changing_state() {
    for swapped in [false, true] {
        check("status, changing state", 3, move || {
            let words = LoomWords::new(WORDS);
            let writer = StatusWriter::new(words.clone());
            writer.set_state(State::Idle, Reason::None, OLD);
            let write = move || writer.set_state(State::Off, Reason::NoRoom, NEW);
            let read = move || Status::read(&words);
            let ((), seen) = race(swapped, write, read);
            let detail = seen.detail.as_str();
            match seen.state {
                Some(State::Off) => assert_eq!((seen.reason, detail), (Reason::NoRoom, NEW)),
                // The detail may be newer than the state.
                _ => assert!(seen.reason == Reason::None && [OLD, NEW, UNSETTLED].contains(&detail)),
            }
        });
    }
}

/// A text changes under a reader.
pub fn changing_text() {
    for swapped in [false, true] {
        check("status, changing text", 3, move || {
            let words = LoomWords::new(WORDS);
            let writer = StatusWriter::new(words.clone());
            writer.set_cupti(1, OLD);
            let write = move || writer.set_cupti(1, NEW);
            let its_words = words.clone();
            let read = move || Status::read(&its_words);
            let ((), seen) = race(swapped, write, read);
            assert!([OLD, NEW, UNSETTLED].contains(&seen.cupti_path.as_str()));
            assert_eq!(Status::read(&words).cupti_path, NEW);
        });
    }
}

fn point(n: u64) -> ClockPoint {
    ClockPoint { monotonic_ns: n, realtime_ns: 100 + n, error_ns: 200 + n }
}

/// Clock points are added while a reader takes those there are.
pub fn adding_clock_points() {
    for swapped in [false, true] {
        check("status, adding clock points", 3, move || {
            let words = LoomWords::new(WORDS);
            let writer = StatusWriter::new(words.clone());
            let full = status::CLOCK_POINTS as u64;
            (0..full).for_each(|n| writer.add_clock_point(point(n)));
            let write = move || (full..full + 2).for_each(|n| writer.add_clock_point(point(n)));
            let its_words = words.clone();
            let read = move || clock_points(&its_words);
            let ((), seen) = race(swapped, write, read);
            assert_eq!(seen, seen.iter().map(|p| point(p.monotonic_ns)).collect::<Vec<_>>());
            assert!(seen.is_sorted_by(|a, b| a.monotonic_ns + 1 == b.monotonic_ns));
            assert_eq!(clock_points(&words).pop(), Some(point(full + 1)));
        });
    }
}

/// A reader comes while the segment is made.
pub fn publishing() {
    for swapped in [false, true] {
        check("identity, publishing", 2, move || {
            let words = LoomWords::new(ident::WORDS);
            let identity = Identity::current(7, Backing::Memfd, 8, 9);
            let size_bytes = Layout::new(Sizes::STATUS_ONLY).total_words as u64 * 8;
            let its_words = words.clone();
            let make = move || {
                identity.write(&its_words, &Sizes::STATUS_ONLY);
                Identity::publish(&its_words);
            };
            let read = move || Identity::read(&words, size_bytes);
            let ((), seen) = race(swapped, make, read);
            match seen {
                Ok((seen, layout)) => assert_eq!((seen, layout.sizes), (identity, Sizes::STATUS_ONLY)),
                Err(error) => assert_eq!(error, BadHeader::NotOurs { found: 0 }),
            }
        });
    }
}

#[test]
fn a_state_comes_with_its_detail_and_no_text_is_torn() {
    changing_state();
    changing_text();
}

#[test]
fn clock_points_are_never_torn() {
    adding_clock_points();
}

#[test]
fn a_segment_is_accepted_only_whole() {
    publishing();
}
