//! The characters outside ASCII that are drawn, each with a twin in ASCII of the same width. What is drawn is translated
//! as a whole, so that no widget has to think of it, and names that other programs made come out readable too.

use ratatui::buffer::Buffer;
use unicode_width::UnicodeWidthChar;

/// The name of a key where one character of ASCII cannot say it.
pub fn key(name: &'static str, ascii: bool) -> &'static str {
    if ascii && name == "⏎" { "Enter" } else { name }
}

/// What has no better twin. Wide characters have it twice.
const UNKNOWN: char = '?';

/// Everything on the screen in ASCII.
pub fn to_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        let symbol = cell.symbol();
        if !symbol.is_ascii() {
            // The first character of a cluster says what it is; the cell beside a wide one is drawn as it is, a blank.
            let twin = symbol.chars().next().map_or(UNKNOWN, twin);
            cell.set_char(twin);
        }
    }
}

/// A text in ASCII, as wide as it was.
pub fn text_to_ascii(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    for c in text.chars() {
        let columns = if c.is_ascii() { 1 } else { c.width().unwrap_or(0) };
        ascii.extend(std::iter::repeat_n(twin(c), columns));
    }
    ascii
}

fn twin(c: char) -> char {
    match c {
        c if c.is_ascii() => c,
        'µ' | 'μ' => 'u',
        '×' | '✕' | '✗' => 'x',
        '…' => '~',
        '·' => '|',
        '–' | '—' | '−' => '-',
        '●' | '•' | '◆' | '★' => '*',
        '○' | '◦' => 'o',
        '✓' => '+',
        '⏎' => '<',
        '←' | '◂' | '◀' | '‹' | '«' => '<',
        '→' | '▸' | '▶' | '›' | '»' => '>',
        '↑' | '▴' | '▲' | '△' => '^',
        '↓' | '▾' | '▼' | '▽' => 'v',
        'Δ' => 'd',
        '≈' => '~',
        '≤' => '<',
        '≥' => '>',
        '±' => '+',
        '²' => '2',
        '³' => '3',
        'σ' => 's',
        c @ ('─'..='╿' | '▀'..='▟' | '\u{2800}'..='\u{28ff}') => drawn(c),
        _ => UNKNOWN,
    }
}

/// Lines, blocks and dots, by what they look like.
fn drawn(c: char) -> char {
    match c {
        '─' | '━' | '┄' | '┅' | '┈' | '┉' | '╌' | '╍' | '╴' | '╶' | '╸' | '╺' | '╼' | '╾' => {
            '-'
        }
        '═' => '=',
        '│' | '┃' | '┆' | '┇' | '┊' | '┋' | '╎' | '╏' | '║' | '╵' | '╷' | '╹' | '╻' | '╽' | '╿' => {
            '|'
        }
        '╱' => '/',
        '╲' => '\\',
        '─'..='╿' => '+',
        '█' | '▉' | '▊' | '▓' => '#',
        '▋' | '▌' | '▐' | '▒' => '=',
        '▍' | '▎' => '-',
        '▏' | '▕' => '|',
        '░' => ':',
        // Heights, for sparklines.
        '▁' => '_',
        '▂' => '.',
        '▃' => ',',
        '▄' => '-',
        '▅' => '=',
        '▆' => '+',
        '▇' => '*',
        '▀' | '▔' => '\'',
        '▖' | '▗' => '.',
        '▘' | '▝' => '\'',
        '▀'..='▟' => '%',
        braille => dots(braille),
    }
}

/// By the number of dots.
fn dots(braille: char) -> char {
    match (braille as u32 & 0xff).count_ones() {
        0 => ' ',
        1..=2 => '.',
        3..=4 => ':',
        5..=6 => '+',
        _ => '#',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_width() {
        assert_eq!(text_to_ascii("12.3 µs  8,8×128  a…z · 核e\u{301}"), "12.3 us  8,8x128  a~z | ??e");
        assert_eq!(text_to_ascii("a\n\tb"), "a\n\tb");
    }

    #[test]
    fn every_twin_is_printable_ascii() {
        for c in ('\u{80}'..='\u{3000}').chain('\u{1f000}'..='\u{1faff}') {
            assert!(matches!(twin(c), ' '..='~'), "{c:?}");
        }
    }

    #[test]
    fn sparklines_and_bars_stay_telling() {
        let heights: Vec<char> = "▁▂▃▄▅▆▇█".chars().map(twin).collect();
        let distinct: std::collections::HashSet<&char> = heights.iter().collect();
        assert_eq!(distinct.len(), heights.len(), "{heights:?}");
        assert_eq!("╭─╮│╰╯█▏".chars().map(twin).collect::<String>(), "+-+|++#|");
    }
}
