//! What a cubin says about itself: its functions, its architecture, whether it has line information.
//!
//! A cubin is an ELF64 file with machine number 190 (EM_CUDA). The OS/ABI and version bytes differ between toolkits
//! (51 with `e_version` 0x7c before CUDA 13, 65 later), so only magic, class and byte order are
//! required here, and the section table is read by hand through `object`'s plain structures.

use object::elf::{EM_CUDA, SHT_NOBITS, SHT_SYMTAB, STT_FUNC};
use object::elf::{FileHeader64, SectionHeader64, Sym64};
use object::endian::LittleEndian as Le;
use object::pod::{from_bytes, slice_from_bytes};

type Header = FileHeader64<Le>;
type Section = SectionHeader64<Le>;
type Symbol = Sym64<Le>;

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
        let header = header(bytes)?;
        let sections = sections(bytes, header)?;
        let names = section_names(bytes, header, sections);
        let mut cubin = Cubin {
            architecture: architecture(header),
            line_info: sections.iter().any(|s| matches!(name_at(names, s.sh_name.get(Le)), b".debug_line")),
            ..Default::default()
        };
        for table in sections.iter().filter(|s| s.sh_type.get(Le) == SHT_SYMTAB) {
            cubin.take_functions(bytes, sections, table)?;
        }
        Ok(cubin)
    }

    fn take_functions(&mut self, bytes: &[u8], sections: &[Section], table: &Section) -> Result<(), CubinError> {
        let symbols = symbols(data_of(bytes, table, "a symbol table")?);
        let strings = match sections.get(table.sh_link.get(Le) as usize) {
            Some(strings) => data_of(bytes, strings, "a string table")?,
            None => &[],
        };
        let mut room = bytes.len();
        for symbol in symbols.iter().filter(|s| s.st_type() == STT_FUNC && s.st_shndx.get(Le).0 != 0) {
            self.function_count += 1;
            if self.functions.len() >= MAX_FUNCTIONS || room == 0 {
                continue;
            }
            let name = bounded_name_at(strings, symbol.st_name.get(Le), room);
            room -= name.len().min(room);
            if !name.is_empty() {
                self.functions.push(name.to_vec());
            }
        }
        Ok(())
    }
}

fn header(bytes: &[u8]) -> Result<&Header, CubinError> {
    if bytes.starts_with(&[0x50, 0xed, 0x55, 0xba]) {
        return Err(CubinError::FatBinary);
    }
    // Magic, 64-bit, little-endian; whatever version follows.
    if !bytes.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1]) {
        let first = bytes[..bytes.len().min(8)].to_vec();
        let is_text = !bytes.is_empty() && bytes.iter().take(64).all(|&b| matches!(b, 9 | 10 | 13 | 32..=126));
        return Err(if is_text { CubinError::Ptx } else { CubinError::NotElf { first } });
    }
    let (header, _) = from_bytes::<Header>(bytes)
        .map_err(|()| out_of_range(bytes, "the file header", 0, size_of::<Header>() as u64))?;
    match header.e_machine.get(Le) {
        EM_CUDA => Ok(header),
        machine => Err(CubinError::OtherMachine { machine: machine.0 }),
    }
}

fn sections<'a>(bytes: &'a [u8], header: &Header) -> Result<&'a [Section], CubinError> {
    let (offset, count) = (header.e_shoff.get(Le), header.e_shnum.get(Le));
    if offset == 0 {
        return Ok(&[]);
    }
    let actual = header.e_shentsize.get(Le);
    if usize::from(actual) != size_of::<Section>() {
        return Err(CubinError::SectionSize { expected: size_of::<Section>(), actual });
    }
    // Above 0xff00 sections the count moves into the first one.
    let count = match (count, sections_at(bytes, offset, 1)) {
        (0, Ok([first])) => first.sh_size.get(Le),
        (count, _) => u64::from(count),
    };
    sections_at(bytes, offset, count)
}

fn sections_at(bytes: &[u8], offset: u64, count: u64) -> Result<&[Section], CubinError> {
    let what = "the section table";
    let size = count.saturating_mul(size_of::<Section>() as u64);
    let data = range(bytes, offset, size, what)?;
    let (sections, _) = slice_from_bytes::<Section>(data, data.len() / size_of::<Section>())
        .map_err(|()| out_of_range(bytes, what, offset, size))?;
    Ok(sections)
}

fn section_names<'a>(bytes: &'a [u8], header: &Header, sections: &[Section]) -> &'a [u8] {
    let index = match header.e_shstrndx.get(Le).0 {
        0xffff => sections.first().map_or(0, |first| first.sh_link.get(Le)),
        index => u32::from(index),
    };
    // Without names there is no line information to find, but there may be functions.
    sections.get(index as usize).and_then(|s| data_of(bytes, s, "the section names").ok()).unwrap_or(&[])
}

fn data_of<'a>(bytes: &'a [u8], section: &Section, what: &'static str) -> Result<&'a [u8], CubinError> {
    if section.sh_type.get(Le) == SHT_NOBITS {
        return Ok(&[]);
    }
    range(bytes, section.sh_offset.get(Le), section.sh_size.get(Le), what)
}

fn range<'a>(bytes: &'a [u8], offset: u64, size: u64, what: &'static str) -> Result<&'a [u8], CubinError> {
    let within = || {
        let rest = bytes.get(usize::try_from(offset).ok()?..)?;
        rest.get(..usize::try_from(size).ok()?)
    };
    within().ok_or_else(|| out_of_range(bytes, what, offset, size))
}

fn out_of_range(bytes: &[u8], what: &'static str, offset: u64, size: u64) -> CubinError {
    CubinError::OutOfRange { what, offset, size, actual: bytes.len() as u64 }
}

fn symbols(data: &[u8]) -> &[Symbol] {
    let count = data.len() / size_of::<Symbol>();
    slice_from_bytes::<Symbol>(data, count).map_or(&[], |(symbols, _)| symbols)
}

fn name_at(strings: &[u8], offset: u32) -> &[u8] {
    bounded_name_at(strings, offset, usize::MAX)
}

/// A name up to its zero, looking no further than `room`: many symbols may share one long name.
fn bounded_name_at(strings: &[u8], offset: u32, room: usize) -> &[u8] {
    let rest = strings.get(offset as usize..).unwrap_or(&[]);
    let rest = &rest[..rest.len().min(room)];
    let end = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
    &rest[..end]
}

/// `EI_OSABI` of CUDA 13 and later, where the architecture moved into the second byte of the flags.
const OSABI_CUDA_V2: u8 = 0x41;
/// `sm_90a` and its like, in the flags before CUDA 13; later flags do not tell them apart.
const EF_CUDA_ACCELERATED: u32 = 0x800;

/// Source: LLVM's BinaryFormat/ELF.h (EF_CUDA_SM, EF_CUDA_ACCELERATORS_V1, ELFOSABI_CUDA_V2), and cubins built with
/// ptxas 12.4 and nvcc 13.5 for the tests.
fn architecture(header: &Header) -> String {
    let flags = header.e_flags.get(Le).0;
    let (sm, suffix) = match header.e_ident.os_abi.0 {
        OSABI_CUDA_V2 => (flags >> 8 & 0xff, ""),
        _ => (flags & 0xff, if flags & EF_CUDA_ACCELERATED != 0 { "a" } else { "" }),
    };
    if sm == 0 { String::new() } else { format!("sm_{sm}{suffix}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const V13_LINES: &[u8] = include_bytes!("../../tests/data/two-13.5-sm_90-lineinfo.cubin");
    const V13: &[u8] = include_bytes!("../../tests/data/two-13.5-sm_75.cubin");
    const V12: &[u8] = include_bytes!("../../tests/data/two-12.4-sm_90a.cubin");

    #[test]
    fn real_cubins_are_read() {
        for (bytes, architecture, line_info) in
            [(V13_LINES, "sm_90", true), (V13, "sm_75", false), (V12, "sm_90a", false)]
        {
            let cubin = Cubin::parse(bytes).expect("a real cubin");
            assert_eq!((cubin.architecture.as_str(), cubin.line_info), (architecture, line_info));
            assert_eq!(cubin.functions, [&b"k0"[..], b"_Z5scaleIfEvPT_S0_i"]);
            assert_eq!(cubin.function_count, 2);
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
        let header = header(V12).expect("a real cubin");
        let table = sections(V12, header).expect("sections").iter().position(|s| s.sh_type.get(Le) == SHT_SYMTAB);
        let at = header.e_shoff.get(Le) as usize + table.expect("a symbol table") * size_of::<Section>();
        // The symbol table now covers the whole file, and so does its string table.
        bytes[at + 24..at + 32].copy_from_slice(&0u64.to_le_bytes());
        bytes[at + 32..at + 40].copy_from_slice(&(V12.len() as u64).to_le_bytes());
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
                // The headers at both ends are where the offsets are.
                let at = index.index(bytes.len() + 2048);
                let at = if at < bytes.len() { at } else { (at - bytes.len()) % 64 };
                bytes[at] = *value;
            }
            let _ = Cubin::parse(&bytes);
            let _ = Cubin::parse(&bytes[..cut.index(bytes.len())]);
        }
    }
}
