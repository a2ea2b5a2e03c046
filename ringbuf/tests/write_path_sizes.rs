//! Sizes: lane records up to a chunk, store entries up to 512 MiB in one piece, areas and slots exactly full, one byte
//! left, thousands of loads of one cubin; and neither store starves the other.
#![cfg(not(loom))]

#[path = "write_path/sized_tap.rs"]
mod sized_tap;

use gputap_ringbuf::{
    header::counters::Counter,
    lane::{MAX_PAYLOAD_WORDS, writer::TooLong},
    layout::{PAGE_BYTES, Sizes},
    store::{EntryKind, MAX_ENTRY_BYTES},
};
use sized_tap::{AREA_BYTES, SIZES, SizedTap, image};

const MIB: usize = 1 << 20;

#[test]
fn records_up_to_a_chunk_exactly_come_whole() {
    let tap = SizedTap::new(SIZES);
    let lane = tap.writer.enter_lane(100, 1).unwrap();
    let payload: Vec<u64> = (0..=MAX_PAYLOAD_WORDS as u64).collect();
    let lens = [MAX_PAYLOAD_WORDS, 0, MAX_PAYLOAD_WORDS - 1, MAX_PAYLOAD_WORDS];
    lens.iter().for_each(|len| lane.write(1, &payload[..*len]).unwrap());
    assert_eq!(lane.write(1, &payload), Err(TooLong));
    let mut seen = Vec::new();
    let done = tap.attached().lane(lane.index()).drain(u64::MAX, |record| {
        assert!(record.words == &payload[..record.words.len()]);
        seen.push(record.words.len());
    });
    assert_eq!((done.delivered, &seen[..]), (lens.len() as u64, &lens[..]));
}

#[test]
fn entries_around_a_line_come_whole_and_the_area_fills_exactly() {
    let tap = SizedTap::new(SIZES);
    let sizes = [0, 1, 63, 64, 65];
    let images: Vec<_> = sizes.iter().enumerate().map(|(seed, len)| image(seed, *len)).collect();
    images.iter().for_each(|image| assert_eq!(tap.load(image), Counter::CubinBytes));
    // Lines of 64 bytes: none, one, one, one, two. All but the last line of the rest follows.
    let rest = image(9, AREA_BYTES - 5 * 64 - 64);
    assert_eq!(tap.load(&rest), Counter::CubinBytes);
    assert_eq!(tap.load(&image(10, 65)), Counter::ModulesFull);
    let one_byte_left = image(11, 63);
    assert_eq!(tap.load(&one_byte_left), Counter::CubinBytes);
    assert_eq!(tap.load(&image(12, 1)), Counter::ModulesFull);
    // Nothing needs no room, and what is there is known again, to the last byte.
    assert_eq!(tap.load(&[]), Counter::ModuleDuplicates);
    assert_eq!(tap.load(&rest), Counter::ModuleDuplicates);
    let mut other = rest.clone();
    *other.last_mut().unwrap() ^= 1;
    assert_eq!(tap.load(&other), Counter::ModulesFull);
    let stored: Vec<_> = tap.cubins().into_iter().map(|(bytes, _)| bytes).collect();
    let expected: Vec<_> = images.into_iter().chain([rest, one_byte_left]).collect();
    assert!(stored == expected);
}

#[test]
fn the_area_filled_by_one_entry_is_full_to_the_byte() {
    let tap = SizedTap::new(SIZES);
    assert_eq!(tap.load(&image(1, AREA_BYTES + 1)), Counter::ModulesFull);
    let whole = image(2, AREA_BYTES);
    assert_eq!(tap.load(&whole), Counter::CubinBytes);
    assert_eq!(tap.load(&image(3, 1)), Counter::ModulesFull);
    assert!(tap.cubins() == [(whole, 1)]);
}

#[test]
fn an_entry_longer_than_any_may_be_is_refused_unread() {
    const MOST: usize = MAX_ENTRY_BYTES as usize;
    let tap = SizedTap::unreserved(Sizes { cubin_bytes: 2 * MOST, ..SIZES });
    // Nobody may read from it: a look at the image would end the test.
    let forbidden = sized_tap::forbidden_bytes(MOST + 1);
    assert_eq!(tap.load_raw(forbidden, MOST), Counter::ModulesNotReserved);
    assert_eq!(tap.load_raw(forbidden, MOST + 1), Counter::ModulesFull);
    assert_eq!(tap.load_raw(forbidden, usize::MAX), Counter::ModulesFull);
    assert_eq!(tap.refused(), [(MAX_ENTRY_BYTES, 1), (MAX_ENTRY_BYTES + 1, 1), (u64::MAX, 1)]);
}

#[test]
fn slots_fill_exactly_and_the_last_eighth_notes_what_was_refused() {
    let sizes = Sizes { cubin_slots: 16, ..SIZES };
    let tap = SizedTap::new(sizes);
    (0..14).for_each(|seed| assert_eq!(tap.load(&image(seed, 100 + seed)), Counter::CubinBytes));
    (0..5).for_each(|seed| assert_eq!(tap.load(&image(seed, 50 + seed)), Counter::ModulesFull));
    assert_eq!((tap.cubins().len(), tap.refused()), (14, vec![(50, 1), (51, 1)]));
    // Known ones need no slot.
    assert_eq!(tap.load(&image(3, 103)), Counter::ModuleDuplicates);
    assert_eq!(tap.counter(Counter::ModuleLoads), 14 + 5 + 1);
}

#[test]
fn one_cubin_loaded_ten_thousand_times_takes_one_entry() {
    let tap = SizedTap::new(SIZES);
    let cubin = image(7, 10_000);
    assert_eq!(tap.load(&cubin), Counter::CubinBytes);
    (1..10_000).for_each(|_| assert_eq!(tap.load(&cubin), Counter::ModuleDuplicates));
    assert!(tap.cubins() == [(cubin, 10_000)]);
    assert_eq!((tap.counter(Counter::CubinBytes), tap.counter(Counter::ModuleLoads)), (10_000, 10_000));
}

#[test]
fn cubins_that_fill_their_store_leave_the_names_their_room() {
    let tap = SizedTap::new(SIZES);
    assert_eq!(tap.load(&image(1, AREA_BYTES)), Counter::CubinBytes);
    (0..2 * SIZES.cubin_slots).for_each(|seed| assert_eq!(tap.load(&image(seed, seed + 1)), Counter::ModulesFull));
    assert!(tap.fill_with_names() > SIZES.definition_slots / 2);
}

#[test]
fn names_that_fill_their_store_leave_the_cubins_their_room() {
    let tap = SizedTap::new(SIZES);
    assert!(tap.fill_with_names() > SIZES.definition_slots / 2);
    let whole = image(1, AREA_BYTES);
    assert_eq!(tap.load(&whole), Counter::CubinBytes);
    assert!(tap.cubins() == [(whole, 1)]);
}

/// Half a gigabyte in one piece; with its last byte changed it is another cubin, for which there is no room.
#[test]
fn a_cubin_of_512_mib_comes_whole() {
    const LARGE_BYTES: usize = 512 * MIB;
    let available_bytes = sized_tap::available_memory_bytes();
    if available_bytes < 3 << 30 {
        return println!("skipped: {} MiB of memory are available, 3 GiB are needed", available_bytes >> 20);
    }
    let tap = SizedTap::new(Sizes { cubin_bytes: LARGE_BYTES + PAGE_BYTES, ..SIZES });
    let mut large = image(5, LARGE_BYTES);
    assert_eq!(tap.load(&large), Counter::CubinBytes);
    assert_eq!(tap.load(&large), Counter::ModuleDuplicates);
    let attached = tap.attached();
    let mut store = attached.cubins();
    let entry = store.next_entry().unwrap();
    assert_eq!((entry.kind, entry.len_bytes, entry.uses), (EntryKind::Cubin as u16, LARGE_BYTES as u64, 2));
    assert!(store.read(&entry).unwrap() == large, "the bytes that were read are not those that were stored");
    large[LARGE_BYTES - 1] ^= 0x80;
    assert_eq!(tap.load(&large), Counter::ModulesFull);
    assert_eq!(tap.refused(), [(LARGE_BYTES as u64, 1)]);
}
