//! From a place in a kernel's code to the line that it was compiled from.
//!
//! A cubin built with `-lineinfo` or `-G` has two tables, both DWARF line programs of version 2 to 4. `.debug_line` leads
//! from code (SASS) to source, and `.nv_debug_line_sass` from code to the PTX between, whose text is in
//! `.nv_debug_ptx_txt` (`nvdisasm -g` and `-gp`). In both, each function is a sequence of its own that begins at address
//! 0; only a relocation tells which function. NVIDIA's own opcodes (where something was inlined) are stepped over.
//!
//! Untrusted, as all of a cubin: time grows with the table, and a table that would take much memory is refused.

use super::elf::{Elf, LE, Section, structs};
use super::{CubinError, MAX_FUNCTIONS};
use gimli::{
    DebugLine, DebugLineOffset, EndianSlice, LineProgramHeader, LittleEndian, Reader, Relocate, RelocateReader,
};
use object::elf::{Rel64, Rela64, SHT_REL, SHT_RELA, STT_FUNC, STT_SECTION};
use std::collections::HashMap;

pub(super) const SOURCE: &[u8] = b".debug_line";
const PTX: &[u8] = b".nv_debug_line_sass";

/// Largest table that is read.
const MAX_TABLE_BYTES: usize = 32 << 20;
/// Largest head of a unit: its lists of folders and files, which grow some fifty times in memory.
const MAX_HEAD_BYTES: usize = 1 << 20;
const MAX_ROWS: usize = 8 << 20;
/// Of all files together: each has its folder's name in front, which may be long.
const MAX_FILE_NAME_BYTES: usize = 64 << 20;
const ADDRESS_BYTES: u8 = 8;

/// Lines of one cubin.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    functions: HashMap<Vec<u8>, Function>,
    /// By place.
    rows: Vec<Row>,
    files: Vec<String>,
}

/// Why lines could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinesError {
    #[error(transparent)]
    Cubin(#[from] CubinError),
    #[error("line table: {0}")]
    Table(gimli::Error),
    #[error("line table at {offset}: version {actual}, known are 2 to 4")]
    Version { offset: usize, actual: u16 },
    #[error("line table: {actual} {what}, more than {max}")]
    TooLarge { what: &'static str, actual: usize, max: usize },
}

/// Where a function is: its section's number in the upper part, the offset there in the lower.
type Place = u64;
const OFFSET_BITS: u32 = 40;

#[derive(Clone, Copy, Debug)]
struct Function {
    begin: Place,
    size_bytes: u64,
}

/// Holds up to the next row.
#[derive(Clone, Copy, Debug)]
struct Row {
    place: Place,
    /// Index in `files`; [`NO_FILE`] where a sequence ends.
    file: u32,
    line: u32,
}

const NO_FILE: u32 = u32::MAX;

impl Lines {
    /// Lines of the source. A cubin without them gives a value that knows none.
    ///
    /// # Errors
    /// The bytes are no cubin, or its table is broken or too large.
    pub fn of(bytes: &[u8]) -> Result<Lines, LinesError> {
        Lines::read(bytes, SOURCE)
    }

    /// Lines of the PTX between source and code. Its file has an empty name.
    ///
    /// # Errors
    /// As [`Lines::of`].
    pub fn of_ptx(bytes: &[u8]) -> Result<Lines, LinesError> {
        Lines::read(bytes, PTX)
    }

    /// File and line of the instruction `offset` bytes into a kernel, or into a function that it calls (mangled names,
    /// as the cubin has them). Of an inlined function's code, its own line.
    pub fn at(&self, kernel: &[u8], offset: u64) -> Option<(&str, u32)> {
        let function = self.functions.get(kernel).filter(|function| offset < function.size_bytes)?;
        let place = function.begin.checked_add(offset)?;
        let row = self.rows[..self.rows.partition_point(|row| row.place <= place)].last()?;
        let is_of_function = row.place >> OFFSET_BITS == function.begin >> OFFSET_BITS;
        let file = self.files.get(row.file as usize).filter(|_| is_of_function)?;
        Some((file, row.line))
    }

    /// True where the cubin has no lines.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn read(bytes: &[u8], name: &[u8]) -> Result<Lines, LinesError> {
        let elf = Elf::parse(bytes)?;
        let Some((number, section)) = elf.section_named(name) else { return Ok(Lines::default()) };
        let data = elf.data(section, "a line table")?;
        at_most("bytes", data.len(), MAX_TABLE_BYTES)?;
        let relocations = Relocations::of(&elf, number)?;
        let mut table = Table::default();
        let mut unit = 0;
        while unit < data.len() {
            let end = end_of_unit(data, unit)?;
            table.take_unit(&data[..end], unit, &relocations)?;
            unit = end;
        }
        // Where one sequence ends another may begin: its row counts. Else, of several at one place, the last.
        table.rows.sort_by_key(|row| (row.place, row.file != NO_FILE));
        Ok(Lines { functions: functions(&elf, bytes.len())?, rows: table.rows, files: table.files })
    }
}

/// Rows and files while a table is read.
#[derive(Default)]
struct Table {
    rows: Vec<Row>,
    files: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Of all names that were put together, known ones too.
    file_name_bytes: usize,
}

impl Table {
    fn take_unit(&mut self, table: &[u8], offset: usize, relocations: &Relocations) -> Result<(), LinesError> {
        let reader = RelocateReader::new(EndianSlice::new(table, LittleEndian), relocations);
        let program = DebugLine::from(reader).program(DebugLineOffset(offset), ADDRESS_BYTES, None, None)?;
        let mut rows = program.rows();
        let mut known = HashMap::new();
        while let Some((header, row)) = rows.next_row()? {
            at_most("rows", self.rows.len() + 1, MAX_ROWS)?;
            let file = match (row.end_sequence(), known.get(&row.file_index())) {
                (true, _) => NO_FILE,
                (false, Some(&file)) => file,
                (false, None) => {
                    let file = self.add_file(file_name(header, row.file_index()))?;
                    known.insert(row.file_index(), file);
                    file
                }
            };
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(u32::MAX));
            self.rows.push(Row { place: row.address(), file, line });
        }
        Ok(())
    }

    /// Its number; every unit may name the same file again.
    fn add_file(&mut self, name: String) -> Result<u32, LinesError> {
        self.file_name_bytes += name.len();
        at_most("bytes of file names", self.file_name_bytes, MAX_FILE_NAME_BYTES)?;
        let number = *self.numbers.entry(name).or_insert_with_key(|name| {
            self.files.push(name.clone());
            self.files.len() as u32 - 1
        });
        Ok(number)
    }
}

impl From<gimli::Error> for LinesError {
    fn from(error: gimli::Error) -> LinesError {
        LinesError::Table(error)
    }
}

fn at_most(what: &'static str, actual: usize, max: usize) -> Result<(), LinesError> {
    if actual > max { Err(LinesError::TooLarge { what, actual, max }) } else { Ok(()) }
}

/// Where the unit at `offset` ends, after a look at its version and the size of its head.
fn end_of_unit(table: &[u8], offset: usize) -> Result<usize, LinesError> {
    let mut reader = EndianSlice::new(&table[offset..], LittleEndian);
    let size = reader.read_u32()? as usize;
    let mut unit = reader.split(size)?;
    match unit.read_u16()? {
        2..=4 => at_most("bytes in the head of a unit", unit.read_u32()? as usize, MAX_HEAD_BYTES)?,
        actual => return Err(LinesError::Version { offset, actual }),
    }
    Ok(offset + size_of::<u32>() + size)
}

fn file_name<R: Reader>(header: &LineProgramHeader<R>, index: u64) -> String {
    let Some(file) = header.file(index) else { return String::new() };
    let text = |value: gimli::AttributeValue<R>| match value {
        gimli::AttributeValue::String(text) => text.to_string_lossy().map(|text| text.into_owned()).unwrap_or_default(),
        // Only version 5 has others.
        _ => String::new(),
    };
    let name = text(file.path_name());
    match file.directory(header).map(text) {
        Some(folder) if !folder.is_empty() && !name.starts_with('/') => folder + "/" + &name,
        _ => name,
    }
}

/// Functions by name; of two with one name, the first.
fn functions(elf: &Elf<'_>, mut room: usize) -> Result<HashMap<Vec<u8>, Function>, CubinError> {
    let mut functions = HashMap::new();
    let symbols = elf.symbols()?;
    for symbol in symbols.all.iter().filter(|symbol| symbol.st_type() == STT_FUNC) {
        if functions.len() >= MAX_FUNCTIONS || room == 0 {
            break;
        }
        let name = symbols.name(symbol, room);
        room -= name.len().min(room);
        let size_bytes = symbol.st_size.get(LE);
        if let Some(begin) = place(symbol.st_shndx.get(LE).0, symbol.st_value.get(LE)) {
            functions.entry(name.to_vec()).or_insert(Function { begin, size_bytes });
        }
    }
    Ok(functions)
}

fn place(section: u16, offset: u64) -> Option<Place> {
    let is_code_possible = section != 0 && offset >> OFFSET_BITS == 0;
    is_code_possible.then(|| Place::from(section) << OFFSET_BITS | offset)
}

/// What the addresses in a line table are relative to, by their offset in the table.
#[derive(Clone, Debug, Default)]
struct Relocations {
    by_offset: HashMap<u64, Place>,
}

impl Relocations {
    /// Those of the section `number`.
    fn of(elf: &Elf<'_>, number: usize) -> Result<Relocations, CubinError> {
        let is_it = |section: &&Section| {
            let kind = section.sh_type.get(LE);
            (kind == SHT_REL || kind == SHT_RELA) && section.sh_info.get(LE) as usize == number
        };
        let Some(section) = elf.sections.iter().find(is_it) else { return Ok(Relocations::default()) };
        let data = elf.data(section, "relocations")?;
        let symbols = elf.symbols()?.all;
        let of_symbol = |offset: u64, symbol: u32, addend: i64| {
            let symbol = symbols.get(symbol as usize).filter(|s| matches!(s.st_type(), STT_FUNC | STT_SECTION))?;
            Some((offset, place(symbol.st_shndx.get(LE).0, symbol.st_value.get(LE).checked_add_signed(addend)?)?))
        };
        let by_offset = match section.sh_type.get(LE) {
            SHT_RELA => structs::<Rela64<_>>(data)
                .iter()
                .filter_map(|r| of_symbol(r.r_offset.get(LE), r.r_sym(LE, false), r.r_addend.get(LE)))
                .collect(),
            _ => {
                structs::<Rel64<_>>(data).iter().filter_map(|r| of_symbol(r.r_offset.get(LE), r.r_sym(LE), 0)).collect()
            }
        };
        Ok(Relocations { by_offset })
    }
}

impl Relocate<usize> for &Relocations {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        let base = self.by_offset.get(&(offset as u64)).copied().unwrap_or(0);
        base.checked_add(value).ok_or(gimli::Error::AddressOverflow)
    }

    fn relocate_offset(&self, _offset: usize, value: usize) -> gimli::Result<usize> {
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::damage::data;
    use super::super::tests::{V12, V13_LINES};
    use super::*;

    const SCALE: &[u8] = b"_Z5scaleIfEvPT_S0_i";

    /// As `nvdisasm -g` and `-gp` show them.
    #[test]
    fn each_kernel_has_its_lines() {
        let lines = Lines::of(V13_LINES).expect("lines");
        let source = |line| Some(("/tmp/kernels/two.cu", line));
        assert_eq!(
            [lines.at(b"k0", 0), lines.at(b"k0", 0x90), lines.at(SCALE, 0x70)],
            [source(3), source(3), source(1)]
        );
        let ptx = Lines::of_ptx(V13_LINES).expect("lines");
        let line = |kernel, offset| ptx.at(kernel, offset).map(|(_, line)| line);
        let k0 = [0, 0x10, 0x20, 0x30, 0x40, 0x48, 0x50, 0x80].map(|offset| line(b"k0", offset));
        assert_eq!(k0, [54, 64, 66, 54, 66, 66, 67, 70].map(Some));
        assert_eq!([0, 0x10, 0x60].map(|offset| line(SCALE, offset)), [20, 34, 36].map(Some));
    }

    #[test]
    fn what_is_not_there_has_no_line() {
        let lines = Lines::of(V13_LINES).expect("lines");
        assert_eq!(lines.at(b"k0", 384), None, "behind its end");
        assert_eq!(lines.at(b"k0", u64::MAX), None);
        assert_eq!(lines.at(b"k1", 0), None);
        let none = Lines::of(V12).expect("a cubin without lines");
        assert!(none.is_empty() && none.at(b"k0", 0).is_none());
        assert!(matches!(Lines::of(b"not a cubin"), Err(LinesError::Cubin(_))));
    }

    #[test]
    fn a_function_ends_where_it_ends_even_if_its_lines_do_not() {
        let function = |begin, size_bytes| Function { begin, size_bytes };
        let second = 2 << OFFSET_BITS;
        let functions = [(b"f".to_vec(), function(second, 16)), (b"g".to_vec(), function(second + 16, 16))];
        let other = (b"h".to_vec(), function(3 << OFFSET_BITS, 16));
        let rows = vec![Row { place: second, file: 0, line: 5 }];
        let lines = Lines { functions: functions.into_iter().chain([other]).collect(), rows, files: vec!["a".into()] };
        assert_eq!([lines.at(b"f", 15), lines.at(b"f", 16), lines.at(b"g", 0)], [Some(("a", 5)), None, Some(("a", 5))]);
        assert_eq!(lines.at(b"h", 0), None, "the section before has no say");
    }

    #[test]
    fn a_table_that_is_cut_short_or_of_another_kind_is_an_error() {
        let table = data(V13_LINES, SOURCE);
        let with = |at: usize, value: &[u8]| {
            let mut bytes = V13_LINES.to_vec();
            bytes[table.start + at..table.start + at + value.len()].copy_from_slice(value);
            Lines::of(&bytes).map(|lines| lines.rows.len())
        };
        assert_eq!(with(4, &[5]), Err(LinesError::Version { offset: 0, actual: 5 }));
        assert!(matches!(with(0, &[0xff; 4]), Err(LinesError::Table(_))));
        assert!(matches!(with(0, &[1, 0, 0, 0]), Err(LinesError::Table(_))));
        let head = with(6, &u32::to_le_bytes(2 << 20));
        assert_eq!(
            head,
            Err(LinesError::TooLarge { what: "bytes in the head of a unit", actual: 2 << 20, max: MAX_HEAD_BYTES })
        );
    }

    #[test]
    fn names_that_would_fill_memory_are_refused() {
        let mut table = Table::default();
        let name = "f".repeat(MAX_FILE_NAME_BYTES / 4);
        let added: Vec<_> = (0..5).map(|_| table.add_file(name.clone())).collect();
        assert_eq!(added[..4], [Ok(0), Ok(0), Ok(0), Ok(0)]);
        assert!(matches!(added[4], Err(LinesError::TooLarge { .. })), "{:?}", added[4]);
    }
}
