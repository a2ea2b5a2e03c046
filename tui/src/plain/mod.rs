//! Pictures without a screen: tables, JSON or CSV, one at each refresh, for pipes, files and plain terminals.

mod csv;
mod json;

use std::time::{Duration, Instant, SystemTime};

use gputap_reader::model::snapshot::Snapshot;

use crate::cli::{Format, Lines};
use crate::error::Result;
use crate::output::print;
use crate::text::table;
use crate::view::{Theme, glyphs};

/// Where nobody said how often.
const EVERY: Duration = Duration::from_secs(1);

/// What to print, how often, and how often in all.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    format: Format,
    every: Duration,
    count: Option<u64>,
    rows: usize,
    ascii: bool,
}

impl Plan {
    pub fn new(lines: &Lines, format: Format, count: Option<u64>, theme: Theme) -> Plan {
        Plan { format, every: lines.refresh.or(EVERY), count, rows: lines.rows, ascii: theme.ascii }
    }
}

/// What has been printed of a plan.
pub struct Printer {
    plan: Plan,
    printed: u64,
    due: Instant,
}

impl Printer {
    pub fn new(plan: Plan, now: Instant) -> Printer {
        Printer { plan, printed: 0, due: now + plan.every }
    }

    pub fn is_due(&self, now: Instant) -> bool {
        now >= self.due && !self.is_done()
    }

    /// As many as were asked for.
    pub fn is_done(&self) -> bool {
        self.plan.count.is_some_and(|count| self.printed >= count)
    }

    pub fn print(&mut self, snapshot: &Snapshot, now: Instant) -> Result<()> {
        let text = self.text(snapshot, SystemTime::now())?;
        print(&text)?;
        self.printed += 1;
        // One that is late, as after a stop, is not made up for.
        while self.due <= now {
            self.due += self.plan.every;
        }
        Ok(())
    }

    fn text(&self, snapshot: &Snapshot, time: SystemTime) -> Result<String> {
        match self.plan.format {
            Format::Table => {
                let table = table::of_snapshot(snapshot, self.plan.rows);
                Ok(if self.plan.ascii { glyphs::text_to_ascii(&table) } else { table } + "\n")
            }
            Format::Json => json::line(snapshot, time),
            Format::Csv => csv::rows(snapshot, time, self.printed == 0),
        }
    }
}
