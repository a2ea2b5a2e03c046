//! Kernels and what each thread or block of them takes, from symbols, sections and attributes.

use super::attributes::{Attribute, Attributes};
use super::elf::{Budget, Elf, LE, Section, Symbol};
use object::elf::SHT_NOBITS;
use std::collections::HashMap;

/// `STO_CUDA_ENTRY`, in a symbol's other byte: it can be launched.
const ENTRY: u8 = 0x10;
/// A stack whose depth only the run knows.
const STACK_UNKNOWN: u32 = u32::MAX;

/// A function that can be launched. A figure that the cubin does not give is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Mangled.
    pub name: Vec<u8>,
    pub code_bytes: u64,
    /// A thread's.
    pub registers: Option<u32>,
    /// A block's static shared memory, as `cuobjdump -res-usage` tells it: from sm_90 on, that may include what the
    /// system reserves.
    pub static_shared_bytes: u64,
    /// A thread's local memory for the kernel's own arrays and spilled registers: its frame.
    pub local_bytes: Option<u32>,
    /// A thread's stack with all that the kernel calls; absent where it calls itself.
    pub stack_bytes: Option<u32>,
    /// Threads that a block may have, where the kernel sets that bound itself.
    pub max_threads: Option<u64>,
}

/// Kernels while their figures come together.
#[derive(Default)]
pub(super) struct Kernels {
    all: Vec<Kernel>,
    by_symbol: HashMap<u32, usize>,
    /// By the number of the section that holds the code.
    by_section: HashMap<u32, usize>,
}

pub(super) fn is_kernel(symbol: &Symbol) -> bool {
    symbol.st_other.0 & ENTRY != 0
}

impl Kernels {
    /// `index`: of the symbol in its table.
    pub fn add(&mut self, index: u32, symbol: &Symbol, name: &[u8]) {
        let number = self.all.len();
        self.by_symbol.insert(index, number);
        self.by_section.insert(u32::from(symbol.st_shndx.get(LE).0), number);
        self.all.push(Kernel { name: name.to_vec(), code_bytes: symbol.st_size.get(LE), ..Default::default() });
    }

    /// The kernels with all that the sections say of them.
    pub fn finish(mut self, elf: &Elf<'_>) -> Vec<Kernel> {
        let mut budget = Budget::of(elf);
        for (number, section) in elf.sections.iter().enumerate() {
            if elf.name_after(section, b".nv.info").is_some() {
                self.take_attributes(elf, section, &mut budget);
            } else if elf.name_after(section, b".nv.shared.").is_some() && section.sh_type.get(LE) == SHT_NOBITS {
                let size_bytes = section.sh_size.get(LE);
                self.in_section(code_section_of(section), |kernel| kernel.static_shared_bytes = size_bytes);
            } else if !elf.is_v2() && elf.name_after(section, b".text.").is_some() {
                // Before there was an attribute for it, the count stood here (and beside that, below sm_90, to CUDA 12).
                let registers = Some(section.sh_info.get(LE) >> 24).filter(|&count| count > 0);
                self.in_section(number as u32, |kernel| kernel.registers = kernel.registers.or(registers));
            }
        }
        self.all
    }

    fn take_attributes(&mut self, elf: &Elf<'_>, section: &Section, budget: &mut Budget) {
        let Ok(data) = elf.data(section, "attributes") else { return };
        if !budget.allows(data.len()) {
            return;
        }
        for attribute in Attributes(data) {
            match attribute {
                Attribute::Registers { symbol, count } => self.of_symbol(symbol, |k| k.registers = Some(count)),
                Attribute::Frame { symbol, size_bytes } => self.of_symbol(symbol, |k| k.local_bytes = Some(size_bytes)),
                Attribute::Stack { symbol, size_bytes } => {
                    let known = Some(size_bytes).filter(|&size| size != STACK_UNKNOWN);
                    self.of_symbol(symbol, |k| k.stack_bytes = known);
                }
                Attribute::MaxThreads(dimensions) => {
                    let threads = dimensions.iter().fold(1, |product: u64, &n| product.saturating_mul(u64::from(n)));
                    self.in_section(code_section_of(section), |k| k.max_threads = Some(threads));
                }
                Attribute::Other => {}
            }
        }
    }

    fn of_symbol(&mut self, symbol: u32, set: impl FnOnce(&mut Kernel)) {
        if let Some(&number) = self.by_symbol.get(&symbol) {
            set(&mut self.all[number]);
        }
    }

    fn in_section(&mut self, section: u32, set: impl FnOnce(&mut Kernel)) {
        if let Some(&number) = self.by_section.get(&section) {
            set(&mut self.all[number]);
        }
    }
}

/// The section that holds the code which this one is about.
fn code_section_of(section: &Section) -> u32 {
    section.sh_info.get(LE)
}

#[cfg(test)]
mod tests {
    use super::super::Cubin;
    use super::super::damage::{data, field, patch, section, section_table};
    use super::super::tests::V12;
    use super::*;
    use std::time::{Duration, Instant};

    fn k0(bytes: &[u8]) -> Kernel {
        Cubin::parse(bytes).expect("a cubin").kernels.swap_remove(0)
    }

    /// Where the value of an attribute with this code begins, after the symbol that it is about. The last one counts:
    /// ptxas 12.4 writes the stack's size twice, first without what the kernel calls.
    fn value_of(bytes: &[u8], code: u8, symbol: u8) -> usize {
        let info = data(bytes, b".nv.info");
        let head = [4, code, 8, 0, symbol, 0, 0, 0];
        info.start + bytes[info].windows(8).rposition(|bytes| bytes == head).expect("the attribute") + 8
    }

    fn symbol_of_k0(bytes: &[u8]) -> u8 {
        let elf = Elf::parse(bytes).expect("a cubin");
        let symbols = elf.symbols().expect("symbols");
        let index = symbols.all.iter().position(|symbol| is_kernel(symbol) && symbols.name(symbol, 100) == b"k0");
        index.expect("k0") as u8
    }

    #[test]
    fn figures_come_from_attributes_and_sections() {
        let mut bytes = V12.to_vec();
        let symbol = symbol_of_k0(&bytes);
        for (code, value) in [(0x2f, 77), (0x11, 384), (0x12, 400)] {
            let at = value_of(V12, code, symbol);
            bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(value));
        }
        let expected = Kernel {
            name: b"k0".to_vec(),
            code_bytes: 384,
            registers: Some(77),
            static_shared_bytes: 0,
            local_bytes: Some(384),
            stack_bytes: Some(400),
            max_threads: None,
        };
        assert_eq!(k0(&bytes), expected);
        let at = value_of(V12, 0x12, symbol);
        bytes[at..at + 4].fill(0xff);
        assert_eq!(k0(&bytes).stack_bytes, None, "it calls itself");
        let other = Cubin::parse(&bytes).expect("a cubin").kernels.swap_remove(1);
        assert_eq!((other.registers, other.stack_bytes), (Some(8), Some(0)), "another kernel's stay as they are");
    }

    #[test]
    fn static_shared_memory_is_the_size_of_its_section() {
        let mut bytes = V12.to_vec();
        // A section with a like head, made to be about the code of k0.
        let donor = section(V12, b".nv.constant0.k0");
        let names = data(V12, b".shstrtab");
        let name = V12[names.clone()].windows(14).position(|bytes| bytes == b".nv.constant0.").expect("the name");
        bytes[names.start + name..names.start + name + 14].copy_from_slice(b"..\0.nv.shared.");
        bytes[donor..donor + 4].copy_from_slice(&(name as u32 + 3).to_le_bytes());
        bytes[donor + 4..donor + 8].copy_from_slice(&SHT_NOBITS.0.to_le_bytes());
        patch(&mut bytes, donor + field::SIZE, 4288);
        let kernels = Cubin::parse(&bytes).expect("a cubin").kernels;
        assert_eq!(kernels.iter().map(|kernel| kernel.static_shared_bytes).collect::<Vec<_>>(), [4288, 0]);
    }

    #[test]
    fn registers_stand_in_the_section_where_there_is_no_attribute() {
        let mut bytes = V12.to_vec();
        let at = value_of(V12, 0x2f, symbol_of_k0(V12));
        bytes[at - 7] = 0x7e;
        assert_eq!(k0(&bytes).registers, None);
        bytes[section(V12, b".text.k0") + 47] = 40;
        assert_eq!(k0(&bytes).registers, Some(40));
    }

    #[test]
    fn sections_that_overlap_cost_the_file_once() {
        let room = 8 << 20;
        let mut bytes = V12.to_vec();
        let table = section_table(V12);
        let attributes = section(V12, b".nv.info");
        let header = bytes[attributes..attributes + 64].to_vec();
        bytes.resize(room, 0);
        // A table of ever the same attributes, each as long as the file, which is full of the shortest ones.
        bytes[V12.len()..].as_chunks_mut::<4>().0.fill([1, 1, 0, 0]);
        let (number, copies) = ((attributes - table) / 64, 30_000);
        let moved = bytes.len();
        bytes.extend_from_within(table..table + 64 * (number + 1));
        bytes.extend((0..copies).flat_map(|_| header.clone()));
        patch(&mut bytes, 0x28, moved as u64);
        bytes[60..62].copy_from_slice(&(number as u16 + 1 + copies as u16).to_le_bytes());
        for copy in 0..copies {
            let at = moved + 64 * (number + 1 + copy);
            patch(&mut bytes, at + field::OFFSET, V12.len().next_multiple_of(4) as u64);
            patch(&mut bytes, at + field::SIZE, (room - V12.len().next_multiple_of(4)) as u64);
        }
        let began = Instant::now();
        Cubin::parse(&bytes).expect("a cubin");
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}
