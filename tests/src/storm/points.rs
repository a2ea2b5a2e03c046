//! The places at which the storm strikes: before and after every store, addition and exchange of the protocol.
//!
//! The list is read off the sources, so that none can be forgotten; which of them an access belongs to is told by the
//! line that it was called from. Two kinds of line have several places: a record's copy (its first, a middle and its
//! last word, and its head), and what a lane's heir runs too, while it mends.

use std::panic::Location;

struct Source {
    file: &'static str,
    text: &'static str,
}

macro_rules! source {
    ($file:literal) => {
        Source { file: $file, text: include_str!(concat!("../../../ringbuf/src/", $file)) }
    };
}

const SOURCES: &[Source] = &[
    source!("lane/writer.rs"),
    source!("lane/directory.rs"),
    source!("store/writer.rs"),
    source!("header/identity.rs"),
    source!("header/status.rs"),
    source!("header/counters.rs"),
    source!("control/server.rs"),
    source!("control/client.rs"),
];

/// What a client keeps to itself, in atomics of its own.
const PRIVATE: [&str; 2] = ["self.kinds.", "self.sent."];

/// Which of a line's places is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Word,
    /// As `Word`, by a thread that mends a lane left inside a write.
    Mending,
    /// An exchange that takes a lane over from a thread that ended inside a write.
    TakeOver,
    FirstWord,
    MiddleWord,
    LastWord,
    Head,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Before = 0,
    After = 1,
}

/// One place, to be struck before and after.
#[derive(Debug)]
pub struct Point {
    pub file: &'static str,
    pub line: u32,
    pub part: Part,
    pub code: &'static str,
}

impl Point {
    /// Whether it lies in what a writing thread runs for a record or an entry.
    pub fn is_of_lanes_or_stores(&self) -> bool {
        self.file.starts_with("lane/") || self.file.starts_with("store/")
    }

    /// Whether it is readers who pass here.
    pub fn is_of_readers(&self) -> bool {
        self.file == "control/client.rs"
    }

    pub fn is_repair(&self) -> bool {
        matches!(self.part, Part::Mending | Part::TakeOver)
    }

    /// Whether it lies in what a thread runs once, to get its first lane.
    pub fn is_claim(&self) -> bool {
        self.code.contains("compare_exchange(owner, FREE")
    }

    /// Whether a thread that ends here leaves a record begun.
    pub fn is_inside_a_write(&self) -> bool {
        self.file == "lane/writer.rs" && !self.is_repair()
    }
}

/// All places, numbered.
pub struct Points {
    pub all: Vec<Point>,
    /// For each source, the number of the first place of each line.
    of_line: Vec<Vec<Option<u16>>>,
}

fn parts(file: &str, code: &str) -> &'static [Part] {
    let calls = |name: &str| code.contains(name);
    if calls(".store_headed(") {
        &[Part::FirstWord, Part::MiddleWord, Part::LastWord, Part::Head]
    } else if file == "lane/writer.rs" && calls(".store(") {
        &[Part::Word, Part::Mending]
    } else if calls("slot::BUSY, from, to") {
        &[Part::Word, Part::TakeOver]
    } else if calls(".store(") || calls(".fetch_add(") || calls(".compare_exchange(") {
        &[Part::Word]
    } else {
        &[]
    }
}

impl Points {
    pub fn of_the_sources() -> Points {
        let mut points = Points { all: Vec::new(), of_line: Vec::new() };
        for source in SOURCES {
            let code = source.text.split("#[cfg(all(test").next().unwrap_or_default();
            let mut lines = vec![None];
            for (line, code) in (1..).zip(code.lines().map(str::trim)) {
                let ours = !code.starts_with("//") && !PRIVATE.iter().any(|p| code.contains(p));
                let parts = if ours { parts(source.file, code) } else { &[] };
                lines.push((!parts.is_empty()).then_some(points.all.len() as u16));
                points.all.extend(parts.iter().map(|part| Point { file: source.file, line, part: *part, code }));
            }
            points.of_line.push(lines);
        }
        points
    }

    /// The number of the place that `here` is, if it is one.
    pub fn find(&self, here: &Location<'_>, part: Part) -> Option<usize> {
        let source = SOURCES.iter().position(|s| here.file().ends_with(s.file))?;
        let first = usize::from((*self.of_line.get(source)?.get(here.line() as usize)?)?);
        let of_line = self.all[first..].iter().take_while(|p| p.line == here.line() && p.file == SOURCES[source].file);
        let with_part = of_line.clone().position(|p| p.part == part);
        with_part.or_else(|| of_line.clone().position(|p| p.part == Part::Word)).map(|i| first + i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    /// Sources that change words and are no part of the protocol: the views of words themselves, and a copy of a file's
    /// head in the reader's own memory.
    const OTHERS: [&str; 3] = ["words.rs", "sync.rs", "attach/file.rs"];

    fn sources_in(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => sources_in(&path, found),
                path => found.push(path.to_string_lossy().into_owned()),
            }
        }
    }

    #[test]
    fn no_source_that_changes_words_is_forgotten() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ringbuf/src");
        let mut all = Vec::new();
        sources_in(&root, &mut all);
        assert!(all.len() > SOURCES.len());
        for path in all {
            let name = path.split_once("ringbuf/src/").unwrap().1;
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(all(test").next().unwrap();
            let changes_words = code.lines().any(|line| {
                let calls = [".store(", ".fetch_add(", ".compare_exchange(", ".store_headed("];
                calls.iter().any(|call| line.contains(call)) && line.contains("words.")
            });
            let known = SOURCES.iter().any(|s| s.file == name) || OTHERS.contains(&name);
            assert!(known || !changes_words, "{name} changes words, and is not among the storm's sources");
        }
    }

    #[test]
    fn each_place_is_found_by_its_line_and_is_called_from_there() {
        let points = Points::of_the_sources();
        assert!(points.all.len() > 40, "{}", points.all.len());
        let text = |file| SOURCES.iter().find(|s| s.file == file).unwrap().text;
        for point in &points.all {
            let line = text(point.file).lines().nth(point.line as usize - 1).unwrap();
            assert_eq!(line.trim(), point.code);
        }
    }
}
