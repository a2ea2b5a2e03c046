//! A segment that lies, and changes its lies between the reader's turns. Whatever it says, the reader ends, does not
//! panic, reads nothing outside, and keeps its books.
#![no_main]

use gputap_fuzz::{
    lies::{Lie, lies, take_back, tell},
    reading::Readers,
    segment::Segment,
};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static SEGMENT: LazyLock<Segment> = LazyLock::new(Segment::new);

fuzz_target!(|input: &[u8]| {
    let segment = &*SEGMENT;
    let lies = lies(input, segment);
    let (before, during) = lies.split_at(lies.iter().position(|l| matches!(l, Lie::Read { .. })).unwrap_or(lies.len()));
    before.iter().for_each(|lie| tell(*lie, segment));
    let cut = before.iter().rev().find_map(|lie| if let Lie::Cut { words } = lie { Some(*words) } else { None });
    let attached = match cut {
        Some(words) => segment.attach_cut(words),
        None => segment.attach(),
    };
    if let Some(attached) = attached {
        let mut readers = Readers::new(attached);
        for lie in during {
            match *lie {
                Lie::Read { records } => _ = readers.turn(records),
                lie => tell(lie, segment),
            }
        }
        readers.read_to_the_end();
    }
    lies.iter().for_each(|lie| take_back(*lie, segment));
});
