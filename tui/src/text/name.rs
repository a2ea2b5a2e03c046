//! Names from other programs: of any length, with any character in them.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A name may have half a megabyte of template arguments; no screen shows more of it than this.
const SHOWN_MAX_BYTES: usize = 16 * 1024;

/// In terminal columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Without anything that a terminal would obey instead of show.
pub fn clean(text: &str) -> String {
    bounded(text).chars().map(|c| if is_unprintable(c) { '\u{fffd}' } else { c }).collect()
}

/// A kernel's name in at most `columns`: first without its return type, then without anonymous namespaces and its
/// arguments, then without the namespaces around it, then with the middle left out, since the beginning says what it is
/// and the end which variant.
pub fn kernel_name(name: &str, columns: usize) -> String {
    let name = clean(name);
    let name = name.strip_prefix("void ").unwrap_or(&name);
    if width(name) <= columns {
        return name.to_owned();
    }
    let name = name.replace("(anonymous namespace)::", "");
    let bare = without_arguments(&name);
    let marked = format!("{bare}(…)");
    if bare.len() < name.len() && width(&marked) <= columns {
        return marked;
    }
    if width(bare) <= columns { bare.to_owned() } else { without_middle(without_namespaces(bare), columns) }
}

/// The beginning of `text`, in at most `columns`.
pub fn clip(text: &str, columns: usize) -> String {
    let text = clean(text);
    if width(&text) <= columns {
        return text;
    }
    match columns {
        0 => String::new(),
        columns => take_columns(text.graphemes(true), columns - 1).concat() + "…",
    }
}

/// `text` clipped or padded to just `columns`, to the right where `right`.
pub fn pad(text: &str, columns: usize, right: bool) -> String {
    let text = clip(text, columns);
    let space = " ".repeat(columns - width(&text).min(columns));
    if right { space + &text } else { text + &space }
}

/// `text` in lines of at most `columns`, broken anywhere: names have no words.
pub fn broken(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for grapheme in clean(text).graphemes(true) {
        let columns_more = width(grapheme);
        if used + columns_more > columns.max(1) && used > 0 {
            lines.push(String::new());
            used = 0;
        }
        used += columns_more;
        if let Some(line) = lines.last_mut() {
            line.push_str(grapheme);
        }
    }
    lines
}

fn bounded(text: &str) -> &str {
    let mut end = text.len().min(SHOWN_MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Control characters, and those that turn the direction of the text around them.
fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

fn without_arguments(name: &str) -> &str {
    match opening_of_last_parenthesis(name) {
        // Of `(anonymous namespace)` nothing would be left, and `()` is hardly shorter without.
        Some(open) if open > 0 && name.len() - open > 2 => &name[..open],
        _ => name,
    }
}

fn opening_of_last_parenthesis(name: &str) -> Option<usize> {
    if !name.ends_with(')') {
        return None;
    }
    let mut depth = 0_usize;
    for (index, byte) in name.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// `f<T>` of `a::b::f<T>`: what comes before the last `::` that no template argument or parenthesis holds.
fn without_namespaces(name: &str) -> &str {
    let arguments = name.find(['<', '(']).unwrap_or(name.len());
    match name[..arguments].rfind("::") {
        Some(at) if at + 2 < name.len() => &name[at + 2..],
        _ => name,
    }
}

fn without_middle(name: &str, columns: usize) -> String {
    if width(name) <= columns {
        return name.to_owned();
    }
    if columns <= 1 {
        return "…".repeat(columns);
    }
    let room = columns - 1;
    let front = room - room * 2 / 5;
    let head = take_columns(name.graphemes(true), front);
    let mut tail = take_columns(name.graphemes(true).rev(), room - front);
    tail.reverse();
    format!("{}…{}", head.concat(), tail.concat())
}

fn take_columns<'a>(graphemes: impl Iterator<Item = &'a str>, columns: usize) -> Vec<&'a str> {
    let mut used = 0;
    graphemes
        .take_while(|grapheme| {
            used += width(grapheme);
            used <= columns
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 12] = [
        "",
        "gemm",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int, float)",
        "核函数<汉字, テンプレート>(整数)",
        "e\u{301}e\u{301}e\u{301}👩‍👩‍👧‍👦👩‍👩‍👧‍👦",
        "\u{1b}[31mred\u{7}\n\t\0",
        "(((((",
        ")))))",
        "()",
        "(anonymous namespace)",
        "f()",
        "\u{202e}reversed",
    ];

    #[test]
    fn fits_any_width() {
        for name in NAMES {
            for columns in 0..130 {
                for text in [kernel_name(name, columns), clip(name, columns), pad(name, columns, true)] {
                    assert!(width(&text) <= columns, "{name:?} in {columns}: {text:?}");
                    assert!(!text.chars().any(is_unprintable), "{text:?}");
                }
                assert_eq!(width(&pad(name, columns, false)), columns, "{name:?}");
            }
        }
    }

    #[test]
    fn keeps_what_tells_kernels_apart() {
        let name = NAMES[2];
        assert_eq!(kernel_name(name, 200), &name[5..]);
        assert_eq!(
            kernel_name(name, 84),
            "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(…)"
        );
        assert_eq!(kernel_name(name, 40), "vectorized_elementwise_k…Functor<float>>");
        let anonymous = "void at::native::(anonymous namespace)::softmax<8, float>(float*)";
        assert_eq!(kernel_name(anonymous, 40), "at::native::softmax<8, float>(…)");
        assert_eq!(kernel_name(anonymous, 25), "softmax<8, float>");
        assert_eq!(kernel_name(anonymous, 29), "at::native::softmax<8, float>");
    }

    #[test]
    fn half_a_megabyte_is_no_trouble() {
        let name = format!("f<{}>(int)", "int, ".repeat(100_000));
        assert!(width(&kernel_name(&name, 50)) <= 50);
    }
}
