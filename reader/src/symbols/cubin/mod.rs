//! What a cubin says about itself: its functions, its architecture, whether it has line information.
//!
//! A cubin is an ELF64 file with machine number 190 (EM_CUDA). The OS/ABI and version bytes differ between toolkits
//! (51 with `e_version` 0x7c before CUDA 13, 65 later), so only magic, class and byte order are
//! required here, and the section table is read by hand through `object`'s plain structures.

mod attributes;
mod elf;
mod kernels;
mod lines;

pub use kernels::Kernel;
pub use lines::{Lines, LinesError};

use elf::{Elf, LE};
use kernels::{Kernels, is_kernel};
use object::elf::STT_FUNC;

/// Functions kept of one cubin; the count goes on.
pub const MAX_FUNCTIONS: usize = 64 * 1024;

/// What the ELF of a cubin says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cubin {
    /// `sm_90`, `sm_90a`, ...; empty where the flags hold none that is known.
    pub architecture: String,
    /// Mangled names, in the order of the symbol table, at most [`MAX_FUNCTIONS`] and no more bytes in all than the
    /// cubin has.
    pub functions: Vec<Vec<u8>>,
    /// Functions in all.
    pub function_count: u64,
    /// Those of `functions` that can be launched, with what they take.
    pub kernels: Vec<Kernel>,
    /// Built with `-lineinfo` or `-G`.
    pub line_info: bool,
}

/// Why bytes are not a cubin. Offsets and sizes are in bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CubinError {
    #[error("a fat binary (magic ba55ed50), not a single cubin")]
    FatBinary,
    #[error("PTX text, not machine code")]
    Ptx,
    #[error("not a 64-bit little-endian ELF file (first bytes {first:02x?})")]
    NotElf { first: Vec<u8> },
    #[error("an ELF file for machine {machine}, not for CUDA (190)")]
    OtherMachine { machine: u16 },
    #[error("cut off: {what} at {offset} needs {size} bytes, the file has {actual}")]
    OutOfRange { what: &'static str, offset: u64, size: u64, actual: u64 },
    #[error("section headers of {actual} bytes, {expected} are known")]
    SectionSize { expected: usize, actual: u16 },
}

impl Cubin {
    /// Parses the bytes of a cubin. They are untrusted: any input gives a value or an error, in linear time.
    pub fn parse(bytes: &[u8]) -> Result<Cubin, CubinError> {
        let elf = Elf::parse(bytes)?;
        let mut cubin = Cubin {
            architecture: elf.architecture(),
            line_info: elf.section_named(lines::SOURCE).is_some(),
            ..Default::default()
        };
        cubin.take_functions(&elf, bytes.len())?;
        Ok(cubin)
    }

    /// `room`: for all names together.
    fn take_functions(&mut self, elf: &Elf<'_>, mut room: usize) -> Result<(), CubinError> {
        let symbols = elf.symbols()?;
        let mut kernels = Kernels::default();
        let functions = (0..).zip(symbols.all).filter(|(_, s)| s.st_type() == STT_FUNC && s.st_shndx.get(LE).0 != 0);
        for (index, symbol) in functions {
            self.function_count += 1;
            if self.functions.len() >= MAX_FUNCTIONS || room == 0 {
                continue;
            }
            let name = symbols.name(symbol, room);
            room -= name.len().min(room);
            if name.is_empty() {
                continue;
            }
            if is_kernel(symbol) {
                kernels.add(index, symbol, name);
            }
            self.functions.push(name.to_vec());
        }
        self.kernels = kernels.finish(elf);
        Ok(())
    }
}

#[cfg(test)]
mod damage;

#[cfg(test)]
mod tests {
    use super::damage::{field, patch, section};
    use super::*;
    use proptest::prelude::*;

    pub(super) const V13_LINES: &[u8] = include_bytes!("../../../tests/data/two-13.5-sm_90-lineinfo.cubin");
    const V13: &[u8] = include_bytes!("../../../tests/data/two-13.5-sm_75.cubin");
    pub(super) const V12: &[u8] = include_bytes!("../../../tests/data/two-12.4-sm_90a.cubin");

    #[test]
    fn real_cubins_are_read() {
        for (bytes, architecture, line_info) in
            [(V13_LINES, "sm_90", true), (V13, "sm_75", false), (V12, "sm_90a", false)]
        {
            let cubin = Cubin::parse(bytes).expect("a real cubin");
            assert_eq!((cubin.architecture.as_str(), cubin.line_info), (architecture, line_info));
            assert_eq!(cubin.functions, [&b"k0"[..], b"_Z5scaleIfEvPT_S0_i"]);
            assert_eq!(cubin.function_count, 2);
            let kernel = |index: usize| (&cubin.kernels[index].name[..], cubin.kernels[index].registers);
            assert_eq!([kernel(0), kernel(1)], [(&b"k0"[..], Some(8)), (b"_Z5scaleIfEvPT_S0_i", Some(8))]);
        }
    }

    #[test]
    fn what_is_no_cubin_says_what_it_is() {
        assert_eq!(Cubin::parse(b""), Err(CubinError::NotElf { first: vec![] }));
        assert_eq!(Cubin::parse(&[0x50, 0xed, 0x55, 0xba, 1]), Err(CubinError::FatBinary));
        assert_eq!(Cubin::parse(b"//\n.version 8.0\n"), Err(CubinError::Ptx));
        let program = std::fs::read("/proc/self/exe").expect("the test binary");
        assert!(matches!(Cubin::parse(&program), Err(CubinError::OtherMachine { .. })));
        assert!(matches!(Cubin::parse(&V13[..60]), Err(CubinError::OutOfRange { what: "the file header", .. })));
        assert!(matches!(Cubin::parse(&V13[..100]), Err(CubinError::OutOfRange { .. })));
    }

    #[test]
    fn many_symbols_with_one_long_name_stay_bounded() {
        let mut bytes = V12.to_vec();
        let table = section(V12, b".symtab");
        // The symbol table now covers the whole file, and so does its string table.
        patch(&mut bytes, table + field::OFFSET, 0);
        patch(&mut bytes, table + field::SIZE, V12.len() as u64);
        if let Ok(cubin) = Cubin::parse(&bytes) {
            assert!(cubin.functions.iter().map(Vec::len).sum::<usize>() <= bytes.len());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn damaged_cubins_never_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12), cut in any::<prop::sample::Index>()) {
            let mut bytes = V13_LINES.to_vec();
            for (index, value) in &changes {
                // The header, where the offsets are, is hit as often as all else; so are the line tables.
                let (header, tables) = (index.index(64), 1200 + index.index(700));
                let at = [header, tables, index.index(bytes.len())][usize::from(*value) % 3];
                bytes[at] = *value;
            }
            for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                let _ = Cubin::parse(bytes);
                for lines in [Lines::of(bytes), Lines::of_ptx(bytes)].into_iter().flatten() {
                    let _ = (lines.at(b"k0", 0x60), lines.at(b"_Z5scaleIfEvPT_S0_i", u64::MAX));
                }
            }
        }
    }
}
