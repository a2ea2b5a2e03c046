//! Text from a tapped process made safe for a screen, and no longer than it should be.

/// Stands at the end of a text that was cut.
const CUT: char = '…';

/// Escapes control characters (a kernel may be called `\x1b[2J`) as well as the invisible ones that turn the reading
/// direction around, and cuts at a character boundary so that at most `max_bytes` and the sign of the cut remain.
pub fn for_screen(text: &str, max_bytes: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max_bytes));
    for c in text.chars() {
        let before = out.len();
        if is_unsafe_on_screen(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        if out.len() > max_bytes {
            out.truncate(before);
            out.push(CUT);
            break;
        }
    }
    out
}

fn is_unsafe_on_screen(c: char) -> bool {
    // Zero-width marks, direction overrides and isolates, and the byte order mark.
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_screen() {
        assert_eq!(for_screen("a\x1b[2Jb\n\u{202e}c\u{9b}d", 100), "a\\u{1b}[2Jb\\n\\u{202e}c\\u{9b}d");
        assert_eq!(for_screen("quotes \" and \\ and ü stay", 100), "quotes \" and \\ and ü stay");
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        assert_eq!(for_screen("üüü", 4), "üü…");
        assert_eq!(for_screen("üüü", 3), "ü…");
        assert_eq!(for_screen("ab\u{1b}", 4), "ab…");
        assert_eq!(for_screen(&"x".repeat(1 << 20), 8), "xxxxxxxx…");
    }
}
