//! Which columns a table has, and where each comes from: derived from the fields of the events.

use gputap_ringbuf::event::EventKind;

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nanoseconds of CLOCK_MONOTONIC.
    Time,
    /// Nanoseconds since 1970.
    Wall,
    /// Something to calculate with.
    Quantity,
    /// A 32-bit number that names or classifies something.
    Id,
    /// A 64-bit number that is no quantity.
    Wide,
    Flag,
    /// The number is that of a text in [`super::Texts`].
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub content: Content,
    pub nullable: bool,
}

/// Where a cell comes from. Numbers are those of [`gputap_ringbuf::event::Event::numbers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Host,
    Rank,
    Pid,
    Nonce,
    Number(usize),
    /// `u32::MAX` means none.
    NumberOrNone(usize),
    /// Of the first two numbers, where they can be believed.
    Duration,
    /// Of the first number.
    Wall,
    /// Of the name whose id the number is: demangled, and as it was recorded.
    Readable(usize),
    Exact(usize),
    /// The table is none of events.
    Given,
}

#[derive(Clone, Debug)]
pub struct Table {
    /// Of its file or folder.
    pub name: &'static str,
    /// None: not of events.
    pub kind: Option<EventKind>,
    pub columns: Vec<Column>,
    pub(super) sources: Vec<Source>,
}

/// The columns with which every table begins: whose the row is.
const OF_PROCESS: [(&str, Content, Source); 4] = [
    ("host", Content::Text, Source::Host),
    ("rank", Content::Id, Source::Rank),
    ("pid", Content::Id, Source::Pid),
    ("process", Content::Text, Source::Nonce),
];

/// The tables, with the kind of their events.
pub const NAMES: [(&str, Option<EventKind>); 16] = [
    ("kernels", Some(EventKind::Kernel)),
    ("copies", Some(EventKind::Memcpy)),
    ("memsets", Some(EventKind::Memset)),
    ("syncs", Some(EventKind::Sync)),
    ("graphs", Some(EventKind::Graph)),
    ("memory", Some(EventKind::Memory)),
    ("pools", Some(EventKind::Pool)),
    ("overheads", Some(EventKind::Overhead)),
    ("runtime", Some(EventKind::Runtime)),
    ("driver", Some(EventKind::Driver)),
    ("nvtx", Some(EventKind::Marker)),
    ("launches", Some(EventKind::Launch)),
    ("processes", None),
    ("losses", None),
    ("devices", None),
    ("modules", None),
];

impl Table {
    /// The table of the events of `kind`.
    pub fn of(kind: EventKind) -> Table {
        let name = NAMES.iter().find(|(_, of)| *of == Some(kind)).map_or(kind.name(), |(name, _)| name);
        let mut table = Table::of_process(name);
        table.kind = Some(kind);
        let mut at = 0;
        for (field, numbers) in kind.fields() {
            match *numbers {
                3 => ["x", "y", "z"].iter().zip(at..).for_each(|(axis, number)| {
                    table.add(&format!("{field}_{axis}"), Content::Quantity, false, Source::Number(number));
                }),
                _ => table.add_field(kind, field, at),
            }
            at += numbers;
        }
        table
    }

    /// Only the columns that say whose a row is.
    pub(super) fn of_process(name: &'static str) -> Table {
        let mut table = Table { name, kind: None, columns: Vec::new(), sources: Vec::new() };
        for (name, content, source) in OF_PROCESS {
            table.add(name, content, source == Source::Rank, source);
        }
        table
    }

    pub(super) fn add(&mut self, name: &str, content: Content, nullable: bool, source: Source) {
        self.columns.push(Column { name: name.to_owned(), content, nullable });
        self.sources.push(source);
    }

    fn add_field(&mut self, kind: EventKind, field: &str, at: usize) {
        match field {
            "end_ns" => {
                self.add("end_ns", Content::Time, false, Source::Number(at));
                self.add("duration_ns", Content::Time, true, Source::Duration);
                self.add("start_time", Content::Wall, true, Source::Wall);
            }
            "time_ns" => {
                self.add("time_ns", Content::Time, false, Source::Number(at));
                self.add("time", Content::Wall, true, Source::Wall);
            }
            "name_id" if kind != EventKind::Marker => {
                self.add("name", Content::Text, true, Source::Readable(at));
                self.add("symbol", Content::Text, true, Source::Exact(at));
            }
            "name_id" | "domain_id" => self.add(short(field), Content::Text, true, Source::Exact(at)),
            "stream_id" | "cuda_event_id" if kind == EventKind::Sync => {
                self.add(short(field), Content::Id, true, Source::NumberOrNone(at));
            }
            _ => self.add(short(field), content(field), false, Source::Number(at)),
        }
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// A field's name without what its place in a table says anyway.
fn short(field: &str) -> &str {
    match field {
        "registers_per_thread" => "registers",
        field => field.strip_suffix("_id").unwrap_or(field),
    }
}

fn content(field: &str) -> Content {
    match field {
        _ if field.ends_with("_ns") => Content::Time,
        _ if field.ends_with("address") => Content::Wide,
        "registers_per_thread" | "correlation_id" | "graph_node_id" => Content::Quantity,
        _ if field.contains("bytes") => Content::Quantity,
        _ => Content::Id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_table_of_all_its_fields() {
        for kind in EventKind::ALL {
            let table = Table::of(*kind);
            assert!(NAMES.contains(&(table.name, Some(*kind))), "{}", table.name);
            let mut numbers: Vec<usize> = table
                .sources
                .iter()
                .filter_map(|source| match source {
                    Source::Number(at) | Source::NumberOrNone(at) | Source::Exact(at) => Some(*at),
                    _ => None,
                })
                .collect();
            numbers.sort_unstable();
            let all: usize = kind.fields().iter().map(|(_, numbers)| numbers).sum();
            assert_eq!(numbers, (0..all).collect::<Vec<_>>(), "{}", table.name);
        }
    }

    #[test]
    fn the_columns_of_kernels() {
        let table = Table::of(EventKind::Kernel);
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(
            names.join(" "),
            "host rank pid process start_ns end_ns duration_ns start_time correlation graph_node name symbol device \
             context stream graph grid_x grid_y grid_z block_x block_y block_z static_shared_bytes \
             dynamic_shared_bytes local_bytes_per_thread registers"
        );
    }
}
