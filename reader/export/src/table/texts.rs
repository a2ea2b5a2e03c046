//! The texts of one process' tables. Cells refer to them by number, so that a name is made readable once.

use gputap_reader::symbols::demangle;
use gputap_recording::{Name, Names};
use std::collections::HashMap;
use std::fmt::Write;

#[derive(Debug, Default)]
pub struct Texts {
    texts: Vec<String>,
    by_text: HashMap<String, u64>,
    /// Readable and exact text by [`Names::index`].
    of_names: HashMap<u32, [u64; 2]>,
}

impl Texts {
    /// # Panics
    /// If no cell of this process has that number.
    pub fn get(&self, number: u64) -> &str {
        &self.texts[number as usize]
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The number of `text`, the same each time.
    pub(super) fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.by_text.get(text) {
            return *number;
        }
        let number = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.by_text.insert(text.to_owned(), number);
        number
    }

    /// The name of `id`, readable and exact; None where it has none, or it could not be read.
    #[inline]
    pub(super) fn of_name(&mut self, names: &Names, id: u32) -> Option<[u64; 2]> {
        let index = names.index(id)?;
        if let Some(numbers) = self.of_names.get(&index) {
            return Some(*numbers);
        }
        let numbers = self.learn(names.name(index));
        self.of_names.insert(index, numbers);
        Some(numbers)
    }

    fn learn(&mut self, name: &Name) -> [u64; 2] {
        let exact = exact(&name.bytes);
        let readable = if name.is_text { exact.clone() } else { demangle(&name.bytes) };
        [self.number(&readable), self.number(&exact)]
    }
}

/// `bytes` as text from which they can be told again: `\xNN` for each byte that is of no UTF-8 character, or of a control
/// character, and `\\` for a backslash.
pub fn exact(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if c.is_control() => escape(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut text),
                c => text.push(c),
            }
        }
        escape(chunk.invalid(), &mut text);
    }
    text
}

fn escape(bytes: &[u8], text: &mut String) {
    for byte in bytes {
        // A String takes everything.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The other way round, as `docs/export.md` says it.
    fn bytes_of(text: &str) -> Vec<u8> {
        let (mut bytes, mut rest) = (Vec::new(), text);
        while let Some(at) = rest.find('\\') {
            bytes.extend(&rest.as_bytes()[..at]);
            let escape = &rest[at + 1..];
            let length = match escape.strip_prefix('x') {
                Some(digits) => {
                    bytes.push(u8::from_str_radix(&digits[..2], 16).unwrap());
                    3
                }
                None => {
                    bytes.push(b'\\');
                    1
                }
            };
            rest = &escape[length..];
        }
        bytes.extend(rest.as_bytes());
        bytes
    }

    #[test]
    fn what_is_no_text_is_escaped() {
        assert_eq!(exact(b"_Z6vecaddPfS_i"), "_Z6vecaddPfS_i");
        assert_eq!(exact("ü\\\n\u{9b}".as_bytes()), "ü\\\\\\x0a\\xc2\\x9b");
        assert_eq!(exact(b"\xff\xfek\xc3("), "\\xff\\xfek\\xc3(");
    }

    proptest! {
        #[test]
        fn bytes_can_be_told_from_their_text(bytes in prop::collection::vec(any::<u8>(), 0..60), text in ".{0,20}") {
            for bytes in [bytes, text.clone().into_bytes(), text.replace('a', "\\x41").into_bytes()] {
                let text = exact(&bytes);
                prop_assert!(!text.chars().any(char::is_control));
                prop_assert_eq!(bytes_of(&text), bytes);
            }
        }
    }
}
