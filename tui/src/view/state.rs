//! What the view knows: the snapshot on the screen and what a person has done to it. No terminal, no clock; drawing
//! reads it, input changes it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use gputap_reader::model::snapshot::Snapshot;
use ratatui::text::Line;

use super::order::Sort;
use super::pages::Tab;
use super::panes::Panes;

/// Seconds of history behind the sparkline.
const HISTORY_MAX: usize = 240;
const STATUS_SHOWN: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlay {
    None,
    Help,
    /// All about the selected row.
    Detail,
    /// The job still runs: end it, or leave the view?
    Leave,
}

/// A job that was started from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Started elsewhere: never sent anything.
    Foreign,
    Running,
    /// How it ended, in words.
    Ended(String),
}

/// One table's place: which row a person holds, and the first row on the screen.
#[derive(Clone, Debug)]
pub struct Table {
    pub sort: usize,
    pub reversed: bool,
    pub held: Option<String>,
    pub offset: usize,
}

pub struct View {
    pub snapshot: Snapshot,
    pub tab: Tab,
    pub overlay: Overlay,
    pub job: Job,
    /// The job may be left without a question.
    pub for_show: bool,
    pub filter: String,
    pub filter_typed: bool,
    pub frozen: bool,
    /// Share of busy time a second, oldest first.
    pub busy_history: VecDeque<f64>,
    /// Rows of the current table, as indices into the snapshot.
    pub rows: Vec<usize>,
    /// The job's own screen, scrolled back by `log_back` lines.
    pub log: Vec<Line<'static>>,
    pub log_back: usize,
    /// The views that are no tables.
    pub panes: Panes,
    status: Option<(String, Instant)>,
    tables: Vec<Table>,
    last_second: u64,
    page_rows: usize,
}

impl View {
    pub fn new(job: Job) -> View {
        let table = Table { sort: 0, reversed: false, held: None, offset: 0 };
        View {
            snapshot: Snapshot::default(),
            tab: Tab::Kernels,
            overlay: Overlay::None,
            job,
            for_show: false,
            filter: String::new(),
            filter_typed: false,
            frozen: false,
            busy_history: VecDeque::new(),
            rows: Vec::new(),
            log: Vec::new(),
            log_back: 0,
            panes: Panes::default(),
            status: None,
            tables: vec![table; Tab::ALL.len()],
            last_second: 0,
            page_rows: 1,
        }
    }

    /// Whether a job runs that is not simply left.
    pub fn guards_job(&self) -> bool {
        self.job == Job::Running && !self.for_show
    }

    /// Takes a newer picture. While frozen only the history moves on.
    pub fn update(&mut self, snapshot: Snapshot) {
        let second = snapshot.elapsed_ns / 1_000_000_000;
        if second != self.last_second && snapshot.target.alive {
            self.last_second = second;
            self.busy_history.push_back(snapshot.gpu_busy);
            if self.busy_history.len() > HISTORY_MAX {
                self.busy_history.pop_front();
            }
        }
        self.panes.look(&snapshot);
        if !self.frozen {
            self.snapshot = snapshot;
            self.refresh();
        }
    }

    /// How many rows the screen has for a table: what a page is.
    pub fn set_page(&mut self, rows: usize) {
        self.page_rows = rows.max(1);
        self.keep_in_sight();
    }

    pub fn page_rows(&self) -> usize {
        self.page_rows
    }

    pub fn table(&self) -> &Table {
        &self.tables[self.tab.place()]
    }

    pub fn sort(&self) -> Option<Sort> {
        let table = self.table();
        self.tab.sorts().get(table.sort).map(|&column| Sort { column, reversed: table.reversed })
    }

    /// Place of the held row in `rows`.
    pub fn selected(&self) -> Option<usize> {
        let held = self.table().held.as_deref()?;
        self.rows.iter().position(|&row| self.tab.key(self, row) == held)
    }

    pub fn show(&mut self, tab: Tab) {
        self.tab = tab;
        self.refresh();
    }

    pub fn sort_by_next(&mut self) {
        let sorts = self.tab.sorts().len();
        if sorts > 0 {
            let table = self.table_mut();
            table.sort = (table.sort + 1) % sorts;
            table.reversed = false;
            self.refresh();
        }
    }

    pub fn reverse(&mut self) {
        let table = self.table_mut();
        table.reversed = !table.reversed;
        self.refresh();
    }

    pub fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.refresh();
    }

    /// Holds the row `by` rows away; from nothing held, the first movement holds the row at the top of the screen.
    pub fn move_by(&mut self, by: isize) {
        if self.tab == Tab::Output {
            self.log_back = self.log_back.saturating_add_signed(-by);
            return;
        }
        let Some(last) = self.rows.len().checked_sub(1) else { return };
        let to = match self.selected() {
            Some(at) => at.saturating_add_signed(by).min(last),
            None => self.table().offset.min(last),
        };
        self.hold(to);
    }

    pub fn move_to_start(&mut self) {
        self.log_back = usize::MAX;
        self.table_mut().offset = 0;
        // Back at the top and holding nothing: the table's leaders, whoever they are.
        self.release();
    }

    pub fn move_to_end(&mut self) {
        self.log_back = 0;
        if let Some(last) = self.rows.len().checked_sub(1) {
            self.hold(last);
        }
    }

    pub fn release(&mut self) {
        self.table_mut().held = None;
    }

    pub fn say(&mut self, words: impl Into<String>, now: Instant) {
        self.status = Some((words.into(), now));
    }

    pub fn status(&self, now: Instant) -> Option<&str> {
        let (words, since) = self.status.as_ref()?;
        (now.saturating_duration_since(*since) < STATUS_SHOWN).then_some(words)
    }

    pub fn refresh(&mut self) {
        self.rows = self.tab.rows(self);
        self.keep_in_sight();
    }

    fn hold(&mut self, at: usize) {
        let key = self.tab.key(self, self.rows[at]).into_owned();
        self.table_mut().held = Some(key);
        self.keep_in_sight();
    }

    fn keep_in_sight(&mut self) {
        let selected = self.selected();
        let last_offset = self.rows.len().saturating_sub(self.page_rows);
        let page_rows = self.page_rows;
        let table = self.table_mut();
        if let Some(at) = selected {
            table.offset = table.offset.clamp((at + 1).saturating_sub(page_rows), at);
        }
        table.offset = table.offset.min(last_offset);
    }

    fn table_mut(&mut self) -> &mut Table {
        &mut self.tables[self.tab.place()]
    }
}
