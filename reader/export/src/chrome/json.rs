//! JSON, written piece by piece. Names are any bytes: what is not UTF-8 was made readable before.

use std::fmt::{Display, Write};

/// Adds `text` as a JSON string. All that is not printable ASCII is escaped: no reader has to guess an encoding.
pub fn string(line: &mut String, text: &str) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => line.extend(['\\', c]),
            ' '..='~' => line.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing into a String does not fail.
                    let _ = write!(line, "\\u{unit:04x}");
                }
            }
        }
    }
    line.push('"');
}

/// An object that is being written.
pub struct Object<'l> {
    line: &'l mut String,
    is_empty: bool,
}

impl<'l> Object<'l> {
    pub fn new(line: &'l mut String) -> Object<'l> {
        line.push('{');
        Object { line, is_empty: true }
    }

    pub fn number(&mut self, key: &str, number: impl Display) -> &mut Self {
        self.key(key);
        let _ = write!(self.line, "{number}");
        self
    }

    pub fn text(&mut self, key: &str, text: &str) -> &mut Self {
        self.key(key);
        string(self.line, text);
        self
    }

    pub fn object(&mut self, key: &str, fill: impl FnOnce(&mut Object<'_>)) -> &mut Self {
        self.key(key);
        let mut object = Object::new(self.line);
        fill(&mut object);
        object.end();
        self
    }

    /// `key` is ours: it needs no escaping. The space is part of what readers look for.
    fn key(&mut self, key: &str) {
        let comma = if std::mem::take(&mut self.is_empty) { "" } else { ", " };
        let _ = write!(self.line, "{comma}\"{key}\": ");
    }

    pub fn end(self) {
        self.line.push('}');
    }
}

/// Nanoseconds as microseconds with all three digits after the point.
pub struct Micros(pub i64);

impl Display for Micros {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        write!(f, "{sign}{}.{:03}", self.0.unsigned_abs() / 1000, self.0.unsigned_abs() % 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_json_string() {
        let mut line = String::new();
        string(&mut line, "a\"b\\c\n\x1b\u{7f}é\u{1f682}</script>");
        assert_eq!(line, r#""a\"b\\c\u000a\u001b\u007f\u00e9\ud83d\ude82</script>""#);
        let text: String = (0..0x3000).chain(0x1_0000..0x1_0100).filter_map(char::from_u32).collect();
        let mut line = String::new();
        string(&mut line, &text);
        assert!(line.is_ascii());
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }

    #[test]
    fn objects_have_their_commas() {
        let mut line = String::new();
        let mut object = Object::new(&mut line);
        object.number("a", 1).text("b", "x").object("c", |inner| {
            inner.number("d", Micros(-1_005));
        });
        object.object("e", |_| ());
        object.end();
        assert_eq!(line, r#"{"a": 1, "b": "x", "c": {"d": -1.005}, "e": {}}"#);
    }
}
