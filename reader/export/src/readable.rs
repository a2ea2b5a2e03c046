//! Names as people and other tools read them: demangled, valid UTF-8, at most 8 KiB, and never the same for two kernels.

use gputap_reader::symbols::demangle;
use gputap_reader::symbols::demangle::NAME_MAX_BYTES;
use gputap_reader::symbols::escape::for_screen;
use gputap_recording::Name;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Of a kernel without a name: none was recorded, or there was no room for it.
pub const UNNAMED: &str = "(no name)";

/// Names whose readable form is remembered; then all are forgotten and made again, so that memory is bounded.
const REMEMBERED: usize = 1 << 14;

/// The readable names of one process, by the recording's index of them.
#[derive(Debug, Default)]
pub struct Readable {
    by_index: HashMap<u32, Arc<str>>,
    /// Who has a text: two names may demangle to the same one.
    owners: HashMap<Arc<str>, u32>,
}

impl Readable {
    pub fn of(&mut self, index: u32, name: &Name) -> Arc<str> {
        if let Some(text) = self.by_index.get(&index) {
            return text.clone();
        }
        if self.by_index.len() >= REMEMBERED {
            *self = Readable::default();
        }
        let mut text: Arc<str> = readable(name).into();
        if *self.owners.entry(text.clone()).or_insert(index) != index {
            text = format!("{text} [{}]", escaped(&name.bytes)).into();
        }
        self.by_index.insert(index, text.clone());
        text
    }
}

/// Bytes that are not UTF-8 appear as `\xff`.
pub fn readable(name: &Name) -> String {
    let text = match std::str::from_utf8(&name.bytes) {
        Ok(_) if !name.is_text => demangle(&name.bytes),
        Ok(text) => for_screen(text, NAME_MAX_BYTES),
        Err(_) => escaped(&name.bytes),
    };
    if text.is_empty() { "(empty name)".to_owned() } else { text }
}

fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for piece in bytes[..bytes.len().min(NAME_MAX_BYTES + 4)].utf8_chunks() {
        text.push_str(piece.valid());
        for byte in piece.invalid() {
            // Writing into a String does not fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    for_screen(&text, NAME_MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(bytes: &[u8]) -> Name {
        Name { bytes: bytes.into(), is_text: false }
    }

    #[test]
    fn any_bytes_become_bounded_text_without_controls() {
        assert_eq!(readable(&kernel(b"_Z6vecaddPf")), "vecadd(float*)");
        assert_eq!(readable(&kernel(b"\xff\xfe_k\x80")), "\\xff\\xfe_k\\x80");
        assert_eq!(readable(&kernel(b"a\x1b\0\"b")), "a\\u{1b}\\u{0}\"b");
        assert_eq!(readable(&kernel(b"")), "(empty name)");
        assert!(readable(&kernel(&vec![b'x'; 500_000])).len() < NAME_MAX_BYTES + 8);
        assert!(readable(&kernel(&vec![0xff; 500_000])).len() < NAME_MAX_BYTES + 8);
        assert_eq!(readable(&Name { bytes: b"_Z6vecaddPf".as_slice().into(), is_text: true }), "_Z6vecaddPf");
    }

    #[test]
    fn two_kernels_never_share_a_name() {
        let mut readable = Readable::default();
        assert_eq!(&*readable.of(1, &kernel(b"_ZN5PlanAC1Ev")), "PlanA::PlanA()");
        assert_eq!(&*readable.of(2, &kernel(b"_ZN5PlanAC2Ev")), "PlanA::PlanA() [_ZN5PlanAC2Ev]");
        assert_eq!(&*readable.of(1, &kernel(b"_ZN5PlanAC1Ev")), "PlanA::PlanA()");
    }
}
