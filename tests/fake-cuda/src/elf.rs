//! What the driver reads of a cubin: which functions it has, and what they cost.
//!
//! Guarantees: never reads outside the image, bounded by the image's section count, and refuses what is not a
//! little-endian ELF64 for CUDA (machine 190) with at least one `.text.NAME` section.
//!
//! A function's cost comes from its section `.nv.info.NAME` when that starts with the fields below (all little-endian,
//! written by the simulated job, not by NVIDIA's tools):
//!
//! | offset | field |
//! |---|---|
//! | 0 | magic `FKRN` |
//! | 4 | u32 registers per thread |
//! | 8 | u64 duration in nanoseconds |
//! | 16 | u32 static shared memory, bytes |
//! | 20 | u32 local memory per thread, bytes |
//!
//! Otherwise it is derived from the name: 2 to 66 µs, 16 to 79 registers.

const EM_CUDA: u16 = 190;
/// A section without bytes in the file.
const NOBITS: u32 = 8;

/// What the driver knows of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionInfo {
    pub name: String,
    pub duration_ns: u64,
    pub registers: u32,
    pub static_shared_bytes: u32,
    pub local_bytes: u32,
}

/// Where the section table of the image that begins with `header` ends.
pub fn table_end(header: &[u8; 64]) -> Option<usize> {
    let image = Image(header);
    image.check()?;
    let (offset, count) = (image.u64(0x28)? as usize, usize::from(image.u16(0x3c)?));
    (count > 0 && (64..1 << 32).contains(&offset)).then_some(offset + count * 64)
}

/// How long the image is, from its part up to [`table_end`]: to the end of the table or of the last section.
pub fn image_size(up_to_table_end: &[u8]) -> Option<usize> {
    let image = Image(up_to_table_end);
    let (offset, count) = (image.u64(0x28)? as usize, usize::from(image.u16(0x3c)?));
    (0..count).try_fold(up_to_table_end.len(), |size, index| {
        let header = Image(image.0.get(offset + index * 64..)?);
        let stored = if header.u32(4)? == NOBITS { 0 } else { header.u64(0x20)? };
        let end = header.u64(0x18)?.checked_add(stored)?;
        (end < 1 << 32).then_some(size.max(end as usize))
    })
}

/// The functions of a cubin, or None if it is not one.
pub fn functions(image: &[u8]) -> Option<Vec<FunctionInfo>> {
    let image = Image(image);
    image.check()?;
    let sections = image.sections()?;
    let mut found = Vec::new();
    for (name, _) in &sections {
        let Some(function) = name.strip_prefix(".text.") else { continue };
        let wanted = format!(".nv.info.{function}");
        let info = sections.iter().find(|(name, _)| *name == wanted).map(|(_, bytes)| *bytes);
        found.push(info.and_then(|bytes| stated(function, bytes)).unwrap_or_else(|| derived(function)));
    }
    (!found.is_empty()).then_some(found)
}

fn stated(name: &str, info: &[u8]) -> Option<FunctionInfo> {
    let info = Image(info);
    (info.0.get(..4)? == b"FKRN").then_some(())?;
    Some(FunctionInfo {
        name: name.to_owned(),
        registers: info.u32(4)?,
        duration_ns: info.u64(8)?,
        static_shared_bytes: info.u32(16)?,
        local_bytes: info.u32(20)?,
    })
}

fn derived(name: &str) -> FunctionInfo {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    FunctionInfo {
        name: name.to_owned(),
        duration_ns: 2_000 + (hash >> 48),
        registers: 16 + (hash >> 20) as u32 % 64,
        static_shared_bytes: 0,
        local_bytes: 0,
    }
}

struct Image<'a>(&'a [u8]);

impl<'a> Image<'a> {
    fn check(&self) -> Option<()> {
        // Class 64, little-endian; section headers of the usual 64 bytes.
        let ok = self.0.get(..6)? == b"\x7fELF\x02\x01" && self.u16(0x12)? == EM_CUDA && self.u16(0x3a)? == 64;
        ok.then_some(())
    }

    /// Every section's name and bytes.
    fn sections(&self) -> Option<Vec<(&'a str, &'a [u8])>> {
        let (offset, count, names) = (self.u64(0x28)? as usize, self.u16(0x3c)?, self.u16(0x3e)?);
        let header = |index: u16| self.0.get(offset.checked_add(usize::from(index) * 64)?..).map(Image);
        let names = self.section_bytes(&header(names)?)?;
        (0..count)
            .map(|index| {
                let header = header(index)?;
                let name = names.get(header.u32(0)? as usize..)?;
                let end = name.iter().position(|&b| b == 0)?;
                Some((std::str::from_utf8(&name[..end]).ok()?, self.section_bytes(&header)?))
            })
            .collect()
    }

    fn section_bytes(&self, header: &Image<'a>) -> Option<&'a [u8]> {
        if header.u32(4)? == NOBITS {
            return Some(&[]);
        }
        let (offset, size) = (header.u64(0x18)? as usize, header.u64(0x20)? as usize);
        self.0.get(offset..offset.checked_add(size)?)
    }

    fn u16(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.0.get(at..at.checked_add(2)?)?.try_into().ok()?))
    }

    fn u32(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at.checked_add(4)?)?.try_into().ok()?))
    }

    fn u64(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.0.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rubbish_is_refused() {
        for image in [&b""[..], b"\x7fELF", &[0; 64], &[0xff; 4096], b"hello world, this is not an ELF image at all"] {
            assert_eq!(functions(image), None);
        }
        assert_eq!(table_end(&[0; 64]), None);
    }

    #[test]
    fn a_name_gives_the_same_cost_every_time() {
        let info = derived("_Z4axpyfPfS_");
        assert_eq!(info, derived("_Z4axpyfPfS_"));
        assert!((2_000..68_000).contains(&info.duration_ns));
    }
}
