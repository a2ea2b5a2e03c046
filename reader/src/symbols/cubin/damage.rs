//! Cubins of the tests, changed in chosen places.

use super::elf::{Elf, Section};

/// Offsets in a section's header.
pub mod field {
    pub const OFFSET: usize = 24;
    pub const SIZE: usize = 32;
}

/// Where the header of the section `name` lies.
pub fn section(bytes: &[u8], name: &[u8]) -> usize {
    let (number, _) = Elf::parse(bytes).expect("a cubin").section_named(name).expect("the section");
    section_table(bytes) + number * size_of::<Section>()
}

pub fn section_table(bytes: &[u8]) -> usize {
    u64::from_le_bytes(bytes[0x28..0x30].try_into().expect("eight bytes")) as usize
}

/// Where the section's data lies.
pub fn data(bytes: &[u8], name: &[u8]) -> std::ops::Range<usize> {
    let at = section(bytes, name);
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize;
    word(at + field::OFFSET)..word(at + field::OFFSET) + word(at + field::SIZE)
}

pub fn patch(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
