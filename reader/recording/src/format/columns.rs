//! Events as columns of numbers. A column is a byte and then its numbers:
//!
//! * 0: all are the same; that number as LEB128.
//! * 1: each as its difference to the one before (the first: to 0), zigzag, as LEB128.
//!
//! The column `end_ns` holds `end_ns - start_ns`, wrapping: a duration is shorter than a time.

use super::Malformed;
use gputap_ringbuf::event::EventKind;

const SAME: u8 = 0;
const DIFFERENCES: u8 = 1;

/// Appends the columns of events of `kind` to `out`.
pub fn encode_columns(kind: EventKind, columns: &[Vec<u64>], out: &mut Vec<u8>) {
    let end = end_column(kind);
    for (number, column) in columns.iter().enumerate() {
        if Some(number) == end {
            let durations: Vec<u64> =
                column.iter().zip(&columns[0]).map(|(end, start)| end.wrapping_sub(*start)).collect();
            encode(&durations, out);
        } else {
            encode(column, out);
        }
    }
}

/// Reads `rows` events of `kind` from `bytes` into `columns`.
pub fn decode_columns(kind: EventKind, rows: usize, bytes: &[u8], columns: &mut [Vec<u64>]) -> Result<(), Malformed> {
    let mut rest = bytes;
    for column in columns.iter_mut() {
        decode(rows, &mut rest, column)?;
    }
    if !rest.is_empty() {
        return Err(broken("there is more than its columns"));
    }
    if let Some(end) = end_column(kind) {
        let (start, rest) = columns.split_at_mut(1);
        let ends = &mut rest[end - 1];
        ends.iter_mut().zip(&start[0]).for_each(|(end, start)| *end = end.wrapping_add(*start));
    }
    Ok(())
}

/// Columns of an event of `kind`.
pub(crate) fn width(kind: EventKind) -> usize {
    kind.fields().iter().map(|(_, numbers)| numbers).sum()
}

/// Whether the second column of `kind` is an end.
pub(crate) fn has_end(kind: EventKind) -> bool {
    end_column(kind).is_some()
}

fn end_column(kind: EventKind) -> Option<usize> {
    let fields = kind.fields();
    (fields.len() > 1 && fields[0].0 == "start_ns" && fields[1].0 == "end_ns").then_some(1)
}

fn encode(column: &[u64], out: &mut Vec<u8>) {
    let first = column.first().copied().unwrap_or(0);
    if column.iter().all(|&number| number == first) {
        out.push(SAME);
        leb128(first, out);
        return;
    }
    out.push(DIFFERENCES);
    let mut before = 0;
    for &number in column {
        leb128(zigzag(number.wrapping_sub(before) as i64), out);
        before = number;
    }
}

fn decode(rows: usize, bytes: &mut &[u8], column: &mut Vec<u64>) -> Result<(), Malformed> {
    column.clear();
    let (&way, rest) = bytes.split_first().ok_or_else(|| broken("a column is missing"))?;
    *bytes = rest;
    match way {
        SAME => {
            let number = of_leb128(bytes)?;
            column.resize(rows, number);
        }
        DIFFERENCES => {
            column.reserve(rows);
            let mut number = 0_u64;
            for _ in 0..rows {
                number = number.wrapping_add(of_zigzag(of_leb128(bytes)?) as u64);
                column.push(number);
            }
        }
        _ => return Err(broken("a column of an unknown way")),
    }
    Ok(())
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn of_zigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn leb128(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[inline]
fn of_leb128(bytes: &mut &[u8]) -> Result<u64, Malformed> {
    if let [byte @ 0..=0x7f, rest @ ..] = *bytes {
        *bytes = rest;
        return Ok(u64::from(*byte));
    }
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(|| broken("a number is cut off"))?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(broken("a number of more than ten bytes"))
}

fn broken(what: &str) -> Malformed {
    Malformed::Content(what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_come_back(column in prop::collection::vec(any::<u64>(), 1..50), same in any::<u64>()) {
            let mut bytes = Vec::new();
            let constant = vec![same; column.len()];
            encode(&column, &mut bytes);
            encode(&constant, &mut bytes);
            let (mut rest, mut read) = (bytes.as_slice(), Vec::new());
            decode(column.len(), &mut rest, &mut read).unwrap();
            prop_assert_eq!(&read, &column);
            decode(column.len(), &mut rest, &mut read).unwrap();
            prop_assert_eq!(&read, &constant);
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_are_columns_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), rows in 0_usize..100) {
            let mut columns = vec![Vec::new(); width(EventKind::Kernel)];
            let _ = decode_columns(EventKind::Kernel, rows, &bytes, &mut columns);
        }
    }

    /// Who writes a reader has nothing but the document.
    #[test]
    fn the_document_names_the_numbers() {
        let page = include_str!("../../../../docs/format.md");
        for kind in EventKind::ALL {
            let field = |(name, numbers): &(&str, usize)| match numbers {
                1 => format!("`{name}`"),
                _ => format!("`{name}[{numbers}]`"),
            };
            let cells = kind.fields().iter().map(field).collect::<Vec<_>>().join(" ");
            let line = format!("| {} | `{}` | {cells} |", *kind as u16, kind.name());
            assert!(page.lines().any(|one| one == line), "{line}");
        }
    }

    #[test]
    fn a_duration_takes_the_place_of_an_end() {
        let mut columns = vec![vec![7]; width(EventKind::Kernel)];
        (columns[0], columns[1]) = (vec![1 << 60], vec![(1 << 60) + 100]);
        let mut bytes = Vec::new();
        encode_columns(EventKind::Kernel, &columns, &mut bytes);
        assert_eq!(bytes[10..13], [SAME, 100, SAME], "{bytes:?}");
        let mut read = vec![Vec::new(); columns.len()];
        decode_columns(EventKind::Kernel, 1, &bytes, &mut read).unwrap();
        assert_eq!(read, columns);
    }
}
