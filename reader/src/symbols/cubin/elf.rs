//! The ELF file that a cubin is: its header, sections, names and symbols.
//!
//! The bytes are untrusted. Every offset is checked, and nothing here takes longer than the file is long: sections may
//! overlap, so whoever reads many of them keeps a budget ([`Budget`]).

use super::CubinError;
use object::elf::{EM_CUDA, SHT_NOBITS, SHT_SYMTAB};
use object::elf::{FileHeader64, SectionHeader64, Sym64};
use object::endian::LittleEndian;
use object::pod::{Pod, from_bytes, slice_from_bytes};

pub(super) const LE: LittleEndian = LittleEndian;
pub(super) type Section = SectionHeader64<LittleEndian>;
pub(super) type Symbol = Sym64<LittleEndian>;
type Header = FileHeader64<LittleEndian>;

/// `EI_OSABI` of CUDA 13 and later.
const OSABI_CUDA_V2: u8 = 0x41;
/// `sm_90a` and its like, in the flags before CUDA 13; later flags do not tell them apart.
const EF_CUDA_ACCELERATED: u32 = 0x800;

#[derive(Clone, Copy)]
pub(super) struct Elf<'a> {
    bytes: &'a [u8],
    header: &'a Header,
    pub sections: &'a [Section],
    names: &'a [u8],
}

/// The symbol table, and the strings that its names lie in.
#[derive(Clone, Copy, Default)]
pub(super) struct Symbols<'a> {
    pub all: &'a [Symbol],
    pub strings: &'a [u8],
}

impl<'a> Elf<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Elf<'a>, CubinError> {
        let header = header(bytes)?;
        let mut elf = Elf { bytes, header, sections: sections(bytes, header)?, names: &[] };
        // Without names there are no figures of kernels to find, but there may be functions.
        elf.names = elf.section_names().unwrap_or(&[]);
        Ok(elf)
    }

    /// What follows `prefix` in the section's name; the rest of the string table follows it, too.
    pub fn name_after(&self, section: &Section, prefix: &[u8]) -> Option<&'a [u8]> {
        self.names.get(section.sh_name.get(LE) as usize..)?.strip_prefix(prefix)
    }

    /// The first section of this very name, with its number.
    pub fn section_named(&self, name: &[u8]) -> Option<(usize, &'a Section)> {
        let is_it = |section: &Section| self.name_after(section, name).is_some_and(|rest| rest.first() == Some(&0));
        self.sections.iter().enumerate().find(|(_, section)| is_it(section))
    }

    pub fn data(&self, section: &Section, what: &'static str) -> Result<&'a [u8], CubinError> {
        if section.sh_type.get(LE) == SHT_NOBITS {
            return Ok(&[]);
        }
        range(self.bytes, section.sh_offset.get(LE), section.sh_size.get(LE), what)
    }

    /// The symbols of the first table; ELF files have no second one.
    pub fn symbols(&self) -> Result<Symbols<'a>, CubinError> {
        let Some(table) = self.sections.iter().find(|section| section.sh_type.get(LE) == SHT_SYMTAB) else {
            return Ok(Symbols::default());
        };
        let strings = match self.sections.get(table.sh_link.get(LE) as usize) {
            Some(strings) => self.data(strings, "a string table")?,
            None => &[],
        };
        Ok(Symbols { all: structs(self.data(table, "a symbol table")?), strings })
    }

    /// Source: LLVM's BinaryFormat/ELF.h (EF_CUDA_SM, EF_CUDA_ACCELERATORS_V1, ELFOSABI_CUDA_V2), and cubins built with
    /// ptxas 12.4 and nvcc 13.5 for the tests.
    pub fn architecture(&self) -> String {
        let flags = self.header.e_flags.get(LE).0;
        let (sm, suffix) = match self.is_v2() {
            true => (flags >> 8 & 0xff, ""),
            false => (flags & 0xff, if flags & EF_CUDA_ACCELERATED != 0 { "a" } else { "" }),
        };
        if sm == 0 { String::new() } else { format!("sm_{sm}{suffix}") }
    }

    /// Written by CUDA 13 or later, where several fields moved.
    pub fn is_v2(&self) -> bool {
        self.header.e_ident.os_abi.0 == OSABI_CUDA_V2
    }

    fn section_names(&self) -> Option<&'a [u8]> {
        let index = match self.header.e_shstrndx.get(LE).0 {
            0xffff => self.sections.first()?.sh_link.get(LE),
            index => u32::from(index),
        };
        self.data(self.sections.get(index as usize)?, "the section names").ok()
    }
}

impl<'a> Symbols<'a> {
    /// A name up to its zero, looking no further than `room`: many symbols may share one long name.
    pub fn name(&self, symbol: &Symbol, room: usize) -> &'a [u8] {
        let rest = self.strings.get(symbol.st_name.get(LE) as usize..).unwrap_or(&[]);
        let rest = &rest[..rest.len().min(room)];
        let end = rest.iter().position(|&b| b == 0).unwrap_or(rest.len());
        &rest[..end]
    }
}

/// Bytes that may still be read of sections that may overlap.
pub(super) struct Budget {
    left: usize,
}

impl Budget {
    /// As many bytes as the file has: enough for every section once.
    pub fn of(elf: &Elf<'_>) -> Budget {
        Budget { left: elf.bytes.len() }
    }

    pub fn allows(&mut self, size: usize) -> bool {
        let left = self.left.checked_sub(size);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

/// As many whole ones as `data` holds.
pub(super) fn structs<T: Pod>(data: &[u8]) -> &[T] {
    slice_from_bytes(data, data.len() / size_of::<T>()).map_or(&[], |(all, _)| all)
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
    match header.e_machine.get(LE) {
        EM_CUDA => Ok(header),
        machine => Err(CubinError::OtherMachine { machine: machine.0 }),
    }
}

fn sections<'a>(bytes: &'a [u8], header: &Header) -> Result<&'a [Section], CubinError> {
    let (offset, count) = (header.e_shoff.get(LE), header.e_shnum.get(LE));
    if offset == 0 {
        return Ok(&[]);
    }
    let actual = header.e_shentsize.get(LE);
    if usize::from(actual) != size_of::<Section>() {
        return Err(CubinError::SectionSize { expected: size_of::<Section>(), actual });
    }
    // Above 0xff00 sections the count moves into the first one.
    let count = match (count, sections_at(bytes, offset, 1)) {
        (0, Ok([first])) => first.sh_size.get(LE),
        (count, _) => u64::from(count),
    };
    sections_at(bytes, offset, count)
}

fn sections_at(bytes: &[u8], offset: u64, count: u64) -> Result<&[Section], CubinError> {
    let what = "the section table";
    let size = count.saturating_mul(size_of::<Section>() as u64);
    Ok(structs(range(bytes, offset, size, what)?))
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
