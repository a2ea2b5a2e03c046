//! The attributes in `.nv.info` and `.nv.info.NAME`: what the compiler tells the driver of a kernel.
//!
//! Each is a format byte, a code, and two bytes: the value itself, or the length of the value that follows. The codes
//! are those that `cuobjdump -elf` shows as EIATTR_...; `.ci/cubins` holds what is read here against it.

/// What is read of the attributes, as they stand. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    /// EIATTR_REGCOUNT: registers a thread, of the function with this symbol.
    Registers { symbol: u32, count: u32 },
    /// EIATTR_FRAME_SIZE: the function's own part of the stack.
    Frame { symbol: u32, size_bytes: u32 },
    /// EIATTR_MIN_STACK_SIZE: the stack with all that the kernel calls; all ones where it calls itself.
    Stack { symbol: u32, size_bytes: u32 },
    /// EIATTR_MAX_THREADS, or EIATTR_REQNTID: threads of a block in x, y, z.
    MaxThreads([u32; 3]),
    /// Not read here.
    Other,
}

/// The attributes of a section, up to the first that is cut off or has a format that is not known.
pub(super) struct Attributes<'a>(pub &'a [u8]);

const FORMAT_NONE: u8 = 1;
const FORMAT_BYTE: u8 = 2;
const FORMAT_HALF: u8 = 3;
const FORMAT_SIZED: u8 = 4;

const MAX_THREADS: u8 = 0x05;
const REQNTID: u8 = 0x10;
const FRAME_SIZE: u8 = 0x11;
const MIN_STACK_SIZE: u8 = 0x12;
const REGCOUNT: u8 = 0x2f;

impl Iterator for Attributes<'_> {
    type Item = Attribute;

    fn next(&mut self) -> Option<Attribute> {
        let (head, rest) = self.0.split_first_chunk::<4>()?;
        let [format, code, low, high] = *head;
        match format {
            FORMAT_NONE | FORMAT_BYTE | FORMAT_HALF => {
                self.0 = rest;
                Some(Attribute::Other)
            }
            FORMAT_SIZED => {
                let (value, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
                self.0 = rest;
                Some(sized(code, value))
            }
            _ => None,
        }
    }
}

fn sized(code: u8, value: &[u8]) -> Attribute {
    let words: Vec<u32> = value.as_chunks::<4>().0.iter().take(3).map(|word| u32::from_le_bytes(*word)).collect();
    match (code, words.as_slice()) {
        (REGCOUNT, &[symbol, count, ..]) => Attribute::Registers { symbol, count },
        (FRAME_SIZE, &[symbol, size_bytes, ..]) => Attribute::Frame { symbol, size_bytes },
        (MIN_STACK_SIZE, &[symbol, size_bytes, ..]) => Attribute::Stack { symbol, size_bytes },
        (MAX_THREADS | REQNTID, &[x, y, z]) => Attribute::MaxThreads([x, y, z]),
        _ => Attribute::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_each_format_are_stepped_over() {
        let bytes = [
            &[4, 0x2f, 8, 0, 7, 0, 0, 0, 40, 0, 0, 0][..],
            &[3, 0x1b, 255, 0, 1, 0x01, 0, 0, 2, 0x4c, 1, 0],
            &[4, 0x12, 8, 0, 9, 0, 0, 0, 255, 255, 255, 255],
            &[4, 0x05, 12, 0, 0, 1, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0],
            // Too short for what its code says.
            &[4, 0x11, 4, 0, 7, 0, 0, 0],
        ];
        let other = Attribute::Other;
        let expected = [
            Attribute::Registers { symbol: 7, count: 40 },
            other,
            other,
            other,
            Attribute::Stack { symbol: 9, size_bytes: u32::MAX },
            Attribute::MaxThreads([256, 2, 1]),
            other,
        ];
        assert_eq!(Attributes(&bytes.concat()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_cut_off_or_unknown_ends_them() {
        assert_eq!(Attributes(&[4, 0x2f, 8, 0, 7, 0, 0]).count(), 0);
        assert_eq!(Attributes(&[3, 0x1b, 255]).count(), 0);
        assert_eq!(Attributes(b"\x03\x1b\xff\0FKRN\x03\x1b\xff\0").count(), 1);
    }
}
