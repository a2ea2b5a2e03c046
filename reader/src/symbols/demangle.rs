//! Itanium C++ names made readable. A name that is not mangled, or is broken or huge, stays as it is.

use super::escape::for_screen;
use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};
use std::fmt::{self, Write};

/// Longest mangled name that is tried: template libraries reach tens of KiB, and the work grows with the length.
pub const DEMANGLE_MAX_BYTES: usize = 64 * 1024;
/// Longest readable name kept.
pub const NAME_MAX_BYTES: usize = 8 * 1024;
/// Substitutions let a short name expand without end; the demangler's own limit is on depth only.
const RECURSION_MAX: u32 = 96;

/// The readable form of `mangled`, safe for a screen and at most [`NAME_MAX_BYTES`] long (then marked with `…`).
pub fn demangle(mangled: &[u8]) -> String {
    let readable =
        if mangled.starts_with(b"_Z") && mangled.len() <= DEMANGLE_MAX_BYTES { parse(mangled) } else { None };
    match readable {
        Some(name) => for_screen(&name, NAME_MAX_BYTES),
        None => for_screen(&String::from_utf8_lossy(prefix(mangled)), NAME_MAX_BYTES),
    }
}

fn parse(mangled: &[u8]) -> Option<String> {
    let options = ParseOptions::default().recursion_limit(RECURSION_MAX);
    let symbol = Symbol::new_with_options(mangled, &options).ok()?;
    let options = DemangleOptions::default().recursion_limit(RECURSION_MAX);
    let mut text = Bounded::default();
    match symbol.structured_demangle(&mut text, &options) {
        Ok(()) => Some(text.text),
        // Cut, but readable so far.
        Err(_) if text.full => Some(text.text),
        Err(_) => None,
    }
}

/// What of a raw name is looked at: enough to fill [`NAME_MAX_BYTES`] and show that there was more.
fn prefix(raw: &[u8]) -> &[u8] {
    &raw[..raw.len().min(NAME_MAX_BYTES + 4)]
}

/// Takes text until it is longer than a name may be, then refuses, which ends the demangler's work.
#[derive(Default)]
struct Bounded {
    text: String,
    full: bool,
}

impl Write for Bounded {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.text.push_str(s);
        self.full = self.text.len() > NAME_MAX_BYTES;
        if self.full { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_become_readable() {
        assert_eq!(demangle(b"_Z6vecaddPfS_i"), "vecadd(float*, float*, int)");
        assert_eq!(demangle(b"_ZN2at6native4fillIfEEvT_"), "void at::native::fill<float>(float)");
        assert_eq!(demangle(b"k0"), "k0");
        assert_eq!(demangle(b""), "");
    }

    #[test]
    fn broken_names_stay_as_they_are() {
        assert_eq!(demangle(b"_Z9nope"), "_Z9nope");
        assert_eq!(demangle(b"_Z\x1b[2J"), "_Z\\u{1b}[2J");
        assert_eq!(demangle(&[0xff, b'a']), "\u{fffd}a");
    }

    #[test]
    fn half_a_megabyte_is_cut() {
        let long = vec![b'k'; 512 * 1024];
        let name = demangle(&long);
        assert!(name.ends_with('…') && name.len() <= NAME_MAX_BYTES + '…'.len_utf8());
    }

    #[test]
    fn a_name_that_expands_without_end_is_cut() {
        // pair<X, X> of pair<X, X> of ...: doubles with each substitution.
        let mut name = String::from("_Z1f");
        let mut inner = String::from("1a");
        for level in 0..40 {
            inner = format!(
                "1bI{inner}{}E",
                if level == 0 { "S_".to_string() } else { format!("S{}_", to_base36(level * 2)) }
            );
        }
        name.push_str(&inner);
        let readable = demangle(name.as_bytes());
        assert!(readable.len() <= NAME_MAX_BYTES + '…'.len_utf8());
    }

    fn to_base36(n: usize) -> String {
        const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let (high, low) = (n / 36, n % 36);
        let mut text = String::new();
        if high > 0 {
            text.push(char::from(DIGITS[high]));
        }
        text.push(char::from(DIGITS[low]));
        text
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_bounded_printable_name(bytes in proptest::collection::vec(any::<u8>(), 0..400), mangled: bool) {
            let mut name = if mangled { b"_Z".to_vec() } else { Vec::new() };
            name.extend(bytes);
            let readable = demangle(&name);
            prop_assert!(readable.len() <= NAME_MAX_BYTES + 3);
            prop_assert!(!readable.chars().any(char::is_control));
        }
    }
}
