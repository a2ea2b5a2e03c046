//! The file: TOML in the XDG place, read into lines of keys and texts.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

/// Nobody writes more than this by hand.
const FILE_MAX_BYTES: u64 = 1 << 20;

/// A key with what it is set to, or with why that is no text.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    pub key: String,
    pub text: Result<String, String>,
    /// From 1.
    pub line: usize,
}

/// <https://specifications.freedesktop.org/basedir-spec/latest/>: a relative folder is as good as none.
pub fn path(variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(folder.join("gputap/config.toml"))
}

/// `None` where there is no such file.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    let metadata = match fs::metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        metadata => metadata?,
    };
    if !metadata.is_file() {
        return Err(io::Error::other("is not a file"));
    }
    let mut text = String::new();
    File::open(path)?.take(FILE_MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > FILE_MAX_BYTES {
        return Err(io::Error::other("is larger than 1 MiB"));
    }
    Ok(Some(text))
}

/// Everything that could be understood, in the order of the lines, and what could not.
pub fn lines(place: &str, text: &str) -> (Vec<Line>, Vec<String>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let complaint = |error: toml::de::Error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        format!("{place}:{line}: {}", error.message().replace('\n', ", "))
    };
    let mut lines = Vec::new();
    collect(table.get_ref(), "", text, &mut lines);
    lines.sort_by_key(|line| line.line);
    (lines, errors.into_iter().map(complaint).collect())
}

fn collect(table: &DeTable<'_>, before: &str, text: &str, lines: &mut Vec<Line>) {
    for (key, value) in table {
        let name = format!("{before}{}", key.get_ref());
        if let DeValue::Table(inner) = value.get_ref() {
            collect(inner, &format!("{name}."), text, lines);
        } else {
            lines.push(Line { key: name, text: text_of(value.get_ref()), line: line_of(text, key.span().start) });
        }
    }
}

/// As the flag would have it: a list is one word with commas.
fn text_of(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(boolean) => Ok(boolean.to_string()),
        DeValue::Array(values) => {
            let words: Result<Vec<String>, String> = values.iter().map(|value| text_of(value.get_ref())).collect();
            Ok(words?.join(","))
        }
        other => Err(format!("a {} cannot be used; write a string", other.type_str())),
    }
}

fn line_of(text: &str, at_byte: usize) -> usize {
    text.bytes().take(at_byte).filter(|&byte| byte == b'\n').count() + 1
}
