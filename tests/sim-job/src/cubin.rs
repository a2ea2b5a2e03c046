//! Makes cubins: little-endian ELF64 images for CUDA (machine 190) with functions, symbols and made-up code.
//!
//! Guarantees: the same arguments give the same bytes; the image is `size_bytes` long where its names and tables leave
//! room for that, and else a little longer. A function's cost stands at the head of its `.nv.info.NAME` section, in the
//! fake driver's own form (magic `FKRN`, u32 registers, u64 duration in ns, u32 static shared bytes, u32 local bytes).

/// A function of a cubin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CubinKernel {
    pub name: String,
    pub duration_ns: u64,
    pub registers: u32,
    pub static_shared_bytes: u32,
}

const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const CODE_ALIGN: usize = 128;
const STRTAB_INDEX: u32 = 2;
const FIRST_FUNCTION_SECTION: usize = 4;

/// A cubin with these functions.
pub fn generate(seed: u64, kernels: &[CubinKernel], size_bytes: usize) -> Vec<u8> {
    let mut image = Image::new();
    let names: usize = kernels.iter().map(|k| 3 * k.name.len() + 64).sum();
    let tables = HEADER_BYTES + (2 * kernels.len() + FIRST_FUNCTION_SECTION) * SECTION_BYTES;
    let fixed = tables + names + kernels.len() * (SYMBOL_BYTES + 24 + CODE_ALIGN) + 64;
    let code = size_bytes.saturating_sub(fixed) / kernels.len().max(1);
    let code = code.max(CODE_ALIGN) / CODE_ALIGN * CODE_ALIGN;

    let (mut strtab, mut symtab) = (vec![0], vec![0; SYMBOL_BYTES]);
    for (index, kernel) in kernels.iter().enumerate() {
        let text_section = FIRST_FUNCTION_SECTION + 2 * index + 1;
        symtab.extend(symbol(strtab.len(), text_section, code));
        strtab.extend(kernel.name.bytes().chain([0]));
    }
    image.section("", Kind::Null, &[], 0);
    image.section(".strtab", Kind::Strings, &strtab, 0);
    // Sections are numbered in order of their calls; names come last but one, so that all names are known by then.
    image.section(".symtab", Kind::Symbols, &symtab, STRTAB_INDEX - 1);
    image.section(".nv.info", Kind::Info, &[], 0);
    for (index, kernel) in kernels.iter().enumerate() {
        image.section(&format!(".nv.info.{}", kernel.name), Kind::Info, &info(kernel), 0);
        image.section(&format!(".text.{}", kernel.name), Kind::Code, &made_up_code(seed ^ index as u64, code), 0);
    }
    image.finish(size_bytes)
}

fn info(kernel: &CubinKernel) -> Vec<u8> {
    let mut info = b"FKRN".to_vec();
    info.extend(kernel.registers.to_le_bytes());
    info.extend(kernel.duration_ns.to_le_bytes());
    info.extend(kernel.static_shared_bytes.to_le_bytes());
    info.extend(0_u32.to_le_bytes());
    info
}

/// A global function symbol.
fn symbol(name_offset: usize, section: usize, size: usize) -> Vec<u8> {
    const GLOBAL_FUNCTION: u8 = 1 << 4 | 2;
    let mut symbol = (name_offset as u32).to_le_bytes().to_vec();
    symbol.extend([GLOBAL_FUNCTION, 0x10]);
    symbol.extend((section as u16).to_le_bytes());
    symbol.extend(0_u64.to_le_bytes());
    symbol.extend((size as u64).to_le_bytes());
    symbol
}

/// Bytes that look like instructions of 16 bytes: varied, and yet compressible.
fn made_up_code(seed: u64, size: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut code = Vec::with_capacity(size);
    while code.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        code.extend((state & 0x00ff_00ff_0fff_ff0f).to_le_bytes());
        code.extend((0x000f_e200_0000_0000 | state >> 48).to_le_bytes());
    }
    code.truncate(size);
    code
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Strings,
    Symbols,
    Info,
    Code,
}

struct Image {
    bytes: Vec<u8>,
    headers: Vec<u8>,
    names: Vec<u8>,
}

impl Image {
    fn new() -> Self {
        Self { bytes: vec![0; HEADER_BYTES], headers: Vec::new(), names: vec![0] }
    }

    /// Appends a section; its number is that of the call, from 0.
    fn section(&mut self, name: &str, kind: Kind, bytes: &[u8], link: u32) {
        const NV_INFO: u32 = 0x7000_0000;
        let align = if kind == Kind::Code { CODE_ALIGN } else { 8 };
        if kind != Kind::Null {
            self.bytes.resize(self.bytes.len().next_multiple_of(align), 0);
        }
        let (sh_type, flags, entry): (u32, u64, u64) = match kind {
            Kind::Null => (0, 0, 0),
            Kind::Strings => (3, 0, 0),
            Kind::Symbols => (2, 0, SYMBOL_BYTES as u64),
            Kind::Info => (NV_INFO, 0, 0),
            Kind::Code => (1, 6, 0),
        };
        let name_offset = if name.is_empty() { 0 } else { self.names.len() as u32 };
        if !name.is_empty() {
            self.names.extend(name.bytes().chain([0]));
        }
        let first_global = u32::from(kind == Kind::Symbols);
        let offset = if kind == Kind::Null { 0 } else { self.bytes.len() as u64 };
        let mut header = Vec::with_capacity(SECTION_BYTES);
        header.extend(name_offset.to_le_bytes());
        header.extend(sh_type.to_le_bytes());
        header.extend(flags.to_le_bytes());
        header.extend(0_u64.to_le_bytes());
        header.extend(offset.to_le_bytes());
        header.extend((bytes.len() as u64).to_le_bytes());
        header.extend(link.to_le_bytes());
        header.extend(first_global.to_le_bytes());
        header.extend(if kind == Kind::Null { 0 } else { align as u64 }.to_le_bytes());
        header.extend(entry.to_le_bytes());
        self.headers.extend(header);
        self.bytes.extend(bytes);
    }

    /// Adds the section names, room up to `size_bytes`, the section table at the end, and the ELF header.
    fn finish(mut self, size_bytes: usize) -> Vec<u8> {
        let names_index = self.headers.len() / SECTION_BYTES;
        let mut names = self.names.clone();
        names.extend(b".shstrtab\0");
        self.section(".shstrtab", Kind::Strings, &names, 0);
        let table = self.bytes.len().max(size_bytes.saturating_sub(self.headers.len())).next_multiple_of(8);
        self.bytes.resize(table, 0);
        self.bytes.extend(&self.headers);
        let count = names_index + 1;
        let mut header = b"\x7fELF\x02\x01\x01\x33\x07\0\0\0\0\0\0\0".to_vec();
        header.extend(2_u16.to_le_bytes());
        header.extend(190_u16.to_le_bytes());
        header.extend(1_u32.to_le_bytes());
        header.extend(0_u64.to_le_bytes());
        header.extend(0_u64.to_le_bytes());
        header.extend((table as u64).to_le_bytes());
        header.extend(0x005a_055a_u32.to_le_bytes());
        for half in [HEADER_BYTES as u16, 56, 0, SECTION_BYTES as u16, count as u16, names_index as u16] {
            header.extend(half.to_le_bytes());
        }
        self.bytes[..HEADER_BYTES].copy_from_slice(&header);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

    fn kernels() -> Vec<CubinKernel> {
        let named =
            |name: &str| CubinKernel { name: name.into(), duration_ns: 9_000, registers: 40, static_shared_bytes: 16 };
        vec![named("ampere_sgemm_128x64_tn"), named("_Z4axpyfPfS_")]
    }

    #[test]
    fn an_elf_reader_finds_the_functions() {
        let image = generate(7, &kernels(), 8 << 10);
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(image.as_slice()).expect("an ELF image");
        let functions: Vec<_> =
            file.symbols().filter(|s| s.kind() == SymbolKind::Text).map(|s| s.name().unwrap().to_owned()).collect();
        assert_eq!(functions, ["ampere_sgemm_128x64_tn", "_Z4axpyfPfS_"]);
        for symbol in file.symbols().filter(|s| s.kind() == SymbolKind::Text) {
            let section = file.section_by_index(symbol.section_index().expect("defined")).expect("there");
            assert_eq!(section.name().unwrap(), format!(".text.{}", symbol.name().unwrap()));
            assert_eq!(section.size(), symbol.size());
        }
    }

    #[test]
    fn the_size_is_what_was_asked_for_and_the_bytes_repeat() {
        for size in [8 << 10, 100_000, 3 << 20] {
            let image = generate(1, &kernels(), size);
            assert!(image.len().abs_diff(size) <= 8, "{} for {size}", image.len());
            assert_eq!(image, generate(1, &kernels(), size));
            assert_ne!(image, generate(2, &kernels(), size));
        }
    }
}
