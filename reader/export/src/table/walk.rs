//! Reads one process into rows.

use super::facts::Facts;
use super::rows::Rows;
use super::schema::{NAMES, Source, Table};
use super::texts::Texts;
use gputap_recording::{Block, Clock, Names, Problem, Process, Recorded};
use gputap_ringbuf::event::{Event, EventKind};

/// Which tables are wanted: a bit for each of [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selection(u32);

pub const ALL_TABLES: Selection = Selection((1 << NAMES.len()) - 1);

impl Selection {
    /// One table alone; None if there is no such table.
    pub fn only(name: &str) -> Option<Selection> {
        NAMES.iter().position(|(table, _)| *table == name).map(|at| Selection(1 << at))
    }

    /// The tables of the kinds of events in a mask of [`EventKind::bit`]s, and those that are of none.
    pub fn of_kinds(kinds: u64) -> Selection {
        let wanted = |kind: Option<EventKind>| kind.is_none_or(|kind| kinds & kind.bit() != 0);
        Selection((0..).zip(NAMES).filter(|(_, (_, kind))| wanted(*kind)).map(|(at, _)| 1 << at).sum())
    }

    pub fn has(self, name: &str) -> bool {
        Selection::only(name).is_some_and(|one| self.0 & one.0 != 0)
    }

    fn kinds(self) -> u64 {
        NAMES.iter().filter(|(name, _)| self.has(name)).filter_map(|(_, kind)| *kind).map(EventKind::bit).sum()
    }
}

/// Tables that are there without a row, too.
const ALWAYS: [EventKind; 3] = [EventKind::Kernel, EventKind::Memcpy, EventKind::Memset];

/// What was read of a process.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    pub events: u64,
    /// Events whose times cannot be believed.
    pub flawed: u64,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

/// Gives `take` the rows of the `wanted` tables of a process, a block at a time.
///
/// # Errors
/// Those of `take`, at once.
pub fn walk<E>(
    recorded: &Recorded,
    wanted: Selection,
    mut take: impl FnMut(&Table, &Rows, &Texts) -> Result<(), E>,
) -> Result<Walked, E> {
    let mut walked = Walked::default();
    let mut texts = Texts::default();
    let mut tables: Vec<Option<Reading>> = EventKind::ALL.iter().map(|_| None).collect();
    for kind in ALWAYS.iter().filter(|kind| wanted.kinds() & kind.bit() != 0) {
        let reading = reading(&mut tables, *kind, &recorded.process, &mut texts);
        take(&reading.table, &reading.rows, &texts)?;
    }
    let mut facts = Facts::default();
    let mut stream = recorded.stream(wanted.kinds());
    let mut events: Vec<Event> = Vec::new();
    while let Some(block) = stream.next_block() {
        match block {
            Block::Module(module) => facts.module(module),
            Block::Status(status) => facts.status = Some(status),
            Block::Events(block) => {
                events.clear();
                events.extend_from_slice(block);
                let Some(kind) = events.first().map(Event::kind) else { continue };
                let reading = reading(&mut tables, kind, &recorded.process, &mut texts);
                walked.flawed += reading.fill(&events, stream.names(), &mut texts);
                walked.events += events.len() as u64;
                take(&reading.table, &reading.rows, &texts)?;
            }
        }
    }
    for (table, rows) in facts.tables(&recorded.process, &mut texts) {
        if wanted.has(table.name) {
            take(&table, &rows, &texts)?;
        }
    }
    walked.problems = stream.problems().to_vec();
    Ok(walked)
}

/// One kind's table as it is being read.
struct Reading {
    table: Table,
    rows: Rows,
    clock: Option<Clock>,
    row: Vec<Option<u64>>,
}

fn reading<'a>(
    tables: &'a mut [Option<Reading>],
    kind: EventKind,
    process: &Process,
    texts: &mut Texts,
) -> &'a mut Reading {
    // The numbers of the kinds begin with 1.
    tables[kind as usize - 1].get_or_insert_with(|| {
        let table = Table::of(kind);
        let row = table.sources.iter().map(|source| of_process(*source, process, texts)).collect();
        Reading { rows: Rows::of(&table.columns), clock: process.clock, row, table }
    })
}

impl Reading {
    /// Takes a block of events for rows; how many of them have times that cannot be believed.
    fn fill(&mut self, events: &[Event], names: &Names, texts: &mut Texts) -> u64 {
        let (mut flawed, lasts) = (0, self.table.column("duration_ns").is_some());
        self.rows.clear();
        for event in events {
            event.numbers(|numbers| {
                let is_timed = if lasts { duration_ns(numbers[0], numbers[1]).is_some() } else { numbers[0] > 0 };
                flawed += u64::from(!is_timed);
                for (cell, source) in self.row.iter_mut().zip(&self.table.sources) {
                    match *source {
                        Source::Number(at) => *cell = Some(numbers[at]),
                        Source::NumberOrNone(at) => {
                            *cell = (numbers[at] != u64::from(u32::MAX)).then(|| numbers[at]);
                        }
                        Source::Duration => *cell = duration_ns(numbers[0], numbers[1]),
                        Source::Wall => *cell = wall_ns(self.clock, numbers[0]),
                        Source::Readable(at) => *cell = texts.of_name(names, numbers[at] as u32).map(|name| name[0]),
                        Source::Exact(at) => *cell = texts.of_name(names, numbers[at] as u32).map(|name| name[1]),
                        Source::Host | Source::Rank | Source::Pid | Source::Nonce | Source::Given => {}
                    }
                }
            });
            self.rows.push(&self.row);
        }
        flawed
    }
}

/// The cells that are the same in all rows of a process.
pub(super) fn of_process(source: Source, process: &Process, texts: &mut Texts) -> Option<u64> {
    match source {
        Source::Host => Some(texts.number(&process.host)),
        Source::Rank => process.rank.map(u64::from),
        Source::Pid => Some(u64::from(process.pid)),
        Source::Nonce => Some(texts.number(&process.nonce)),
        _ => None,
    }
}

/// None where the times cannot be believed: no start, no end, or an end before the start.
pub(crate) fn duration_ns(start_ns: u64, end_ns: u64) -> Option<u64> {
    if start_ns > 0 { end_ns.checked_sub(start_ns) } else { None }
}

fn wall_ns(clock: Option<Clock>, time_ns: u64) -> Option<u64> {
    clock.filter(|_| time_ns > 0).map(|clock| clock.wall_ns(time_ns))
}
