//! What happened, with its time: found by comparing each snapshot with the one before, and kept up to a bound.

use std::collections::{HashMap, VecDeque};

use gputap_reader::model::snapshot::{ModuleRow, Snapshot};

use crate::text;

/// Entries kept; the oldest go first and are counted.
const KEPT_MAX: usize = 2_000;
/// Modules told one by one of a snapshot; further ones in a line together.
const MODULES_MAX: usize = 20;
/// Processes compared with; of more, those that have ended are forgotten.
const KNOWN_MAX: usize = 256;
/// Entries that a late one goes before, at most.
const LATE_MAX: usize = 64;
/// A reason goes on being told once it has lost so much more.
const LOSS_TOLD_AGAIN: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Process,
    State,
    Module,
    Loss,
    Clock,
    Note,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// CLOCK_MONOTONIC of when it happened, or of the snapshot in which it was first seen.
    pub time_ns: u64,
    /// Wall time, 0 where it is not known.
    pub wall_ns: u64,
    pub pid: u32,
    pub sort: Sort,
    pub words: String,
}

/// What is known of one process, to compare with.
#[derive(Debug, Default)]
struct Known {
    alive: bool,
    state: String,
    reason: String,
    /// Loads of each module, by its slot.
    loads: HashMap<u32, u64>,
    /// What was told of each reason.
    lost: HashMap<String, u64>,
    clock_steps: u64,
    notes: Vec<String>,
    time_ns: u64,
}

#[derive(Debug, Default)]
pub struct Happened {
    entries: VecDeque<Entry>,
    /// Entries that went.
    gone: u64,
    known: HashMap<u32, Known>,
}

impl Happened {
    pub fn entries(&self) -> &VecDeque<Entry> {
        &self.entries
    }

    pub fn gone(&self) -> u64 {
        self.gone
    }

    /// Compares a snapshot with the one before of the same process. `wall_ns` is wall time of `snapshot.time_ns`.
    pub fn look(&mut self, snapshot: &Snapshot, wall_ns: u64) {
        let pid = snapshot.target.pid;
        // What waits for its tap has not begun.
        if pid == 0 || snapshot.time_ns == 0 {
            return;
        }
        if self.known.len() >= KNOWN_MAX {
            self.known.retain(|_, known| known.alive);
        }
        let is_new = !self.known.contains_key(&pid);
        let mut known = self.known.remove(&pid).unwrap_or_default();
        if snapshot.time_ns != 0 && snapshot.time_ns < known.time_ns {
            // A recording that starts again.
            self.entries.retain(|entry| entry.pid != pid || entry.time_ns <= snapshot.time_ns);
            known = Known::default();
        }
        let mut tell = Teller { happened: self, pid, time_ns: snapshot.time_ns, wall_ns };
        process(&mut tell, &mut known, snapshot, is_new);
        modules(&mut tell, &mut known, snapshot);
        loss(&mut tell, &mut known, snapshot);
        clock_and_notes(&mut tell, &mut known, snapshot);
        known.time_ns = snapshot.time_ns;
        self.known.insert(pid, known);
    }

    /// How many processes are followed has changed.
    pub fn peers(&mut self, before: usize, after: usize) {
        if before.max(after) < 2 {
            // The one process speaks for itself.
            return;
        }
        let (what, latest) = (if after > before { "joined" } else { "left" }, self.entries.back());
        let (time_ns, wall_ns) = latest.map_or((0, 0), |entry| (entry.time_ns, entry.wall_ns));
        let words = format!("{} {what}: {after} processes are followed", text::grouped(after.abs_diff(before) as u64));
        self.push(Entry { time_ns, wall_ns, pid: 0, sort: Sort::Process, words });
    }

    fn push(&mut self, entry: Entry) {
        if self.entries.len() >= KEPT_MAX {
            self.entries.pop_front();
            self.gone += 1;
        }
        // A module is found some time after it was loaded.
        let is_later = |other: &&Entry| other.time_ns > entry.time_ns && other.pid == entry.pid;
        let later = self.entries.iter().rev().take(LATE_MAX).take_while(is_later).count();
        self.entries.insert(self.entries.len() - later, entry);
    }
}

struct Teller<'a> {
    happened: &'a mut Happened,
    pid: u32,
    time_ns: u64,
    wall_ns: u64,
}

impl Teller<'_> {
    fn tell(&mut self, sort: Sort, words: impl Into<String>) {
        self.tell_at(self.time_ns, sort, words);
    }

    fn tell_at(&mut self, time_ns: u64, sort: Sort, words: impl Into<String>) {
        let ago_ns = self.time_ns.saturating_sub(time_ns);
        let wall_ns = if self.wall_ns == 0 { 0 } else { self.wall_ns.saturating_sub(ago_ns) };
        self.happened.push(Entry { time_ns, wall_ns, pid: self.pid, sort, words: words.into() });
    }
}

fn process(tell: &mut Teller, known: &mut Known, snapshot: &Snapshot, is_new: bool) {
    let target = &snapshot.target;
    if is_new {
        let uptime = text::duration_ns(target.uptime_ns as f64);
        let words = format!("followed from here on, up for {uptime}: {}", text::clip(&target.command, 200));
        tell.tell(Sort::Process, words);
    }
    if target.state != known.state || target.reason != known.reason {
        let mut words = target.state.clone();
        if !known.state.is_empty() && target.state != known.state {
            words = format!("{} → {words}", known.state);
        }
        if !target.reason.is_empty() {
            words += &format!(" ({})", text::clip(&target.reason, 200));
        }
        tell.tell(Sort::State, words);
        (known.state, known.reason) = (target.state.clone(), target.reason.clone());
    }
    if known.alive && !target.alive {
        tell.tell(Sort::Process, "the process has ended");
    }
    known.alive = target.alive;
}

fn modules(tell: &mut Teller, known: &mut Known, snapshot: &Snapshot) {
    let rows = &snapshot.modules;
    let fresh: Vec<&ModuleRow> = rows.iter().filter(|row| !known.loads.contains_key(&row.slot)).collect();
    for row in fresh.iter().take(MODULES_MAX) {
        let time_ns = if row.first_load_ns == 0 { tell.time_ns } else { row.first_load_ns };
        tell.tell_at(time_ns, Sort::Module, format!("loaded {}", described(row)));
    }
    if fresh.len() > MODULES_MAX {
        let (number, size) = fresh[MODULES_MAX..]
            .iter()
            .fold((0u64, 0u64), |(number, size), row| (number + 1, size.saturating_add(row.size_bytes)));
        tell.tell(Sort::Module, format!("loaded {} more, {}", text::grouped(number), text::bytes(size)));
    }
    for row in rows {
        let before = known.loads.insert(row.slot, row.loads);
        if let Some(before) = before.filter(|&before| before < row.loads) {
            let times = row.loads - before;
            let again = if times == 1 { "again".to_owned() } else { format!("{} times again", text::grouped(times)) };
            tell.tell(Sort::Module, format!("loaded {again}: {}", described(row)));
        }
    }
}

fn described(row: &ModuleRow) -> String {
    let crc = row.crc32.map_or_else(|| "CRC32 not known yet".to_owned(), |crc| format!("CRC32 {crc:08x}"));
    let what = match (row.functions.first(), row.function_count) {
        (Some(name), 1) => format!(": {}", text::kernel_name(name, 60)),
        (Some(name), count) => {
            format!(": {} and {} more", text::kernel_name(name, 60), text::grouped(count.saturating_sub(1)))
        }
        (None, _) if !row.parse_error.is_empty() => format!(": {}", text::clip(&row.parse_error, 80)),
        (None, _) => String::new(),
    };
    format!("{} {crc}{what}", text::bytes(row.size_bytes))
}

/// As a loss begins, and again as it has grown tenfold: not at every picture.
fn loss(tell: &mut Teller, known: &mut Known, snapshot: &Snapshot) {
    for lost in snapshot.counts.lost.iter().chain(&snapshot.module_counts.refused) {
        // One whose number is not known counts as one.
        let count = lost.count.max(u64::from(lost.unknown));
        let told = known.lost.get(&lost.reason).copied().unwrap_or(0);
        if count == 0 || (told > 0 && count < told.saturating_mul(LOSS_TOLD_AGAIN)) {
            continue;
        }
        let reason = text::clip(&lost.reason, 60);
        let words = match (told, lost.count, lost.unknown) {
            (0, 0, _) => format!("loss begins: {reason}, how much is not known"),
            (0, count, _) => format!("loss begins: {reason} {}", text::grouped(count)),
            (_, count, _) => format!("loss has grown: {reason} {}", text::grouped(count)),
        };
        tell.tell(Sort::Loss, words);
        known.lost.insert(lost.reason.clone(), count);
    }
}

fn clock_and_notes(tell: &mut Teller, known: &mut Known, snapshot: &Snapshot) {
    let steps = snapshot.clock.steps;
    if steps > known.clock_steps {
        let doubtful = text::grouped(snapshot.clock.doubtful_times);
        tell.tell(Sort::Clock, format!("the wall clock was set; {doubtful} times of records are doubtful so far"));
    }
    known.clock_steps = steps;
    for note in snapshot.notes.iter().filter(|note| !known.notes.contains(note)) {
        tell.tell(Sort::Note, text::clip(note, 300));
    }
    known.notes.clone_from(&snapshot.notes);
}

#[cfg(test)]
mod tests {
    use gputap_reader::model::snapshot::{Counts, Lost, Target};

    use super::*;

    fn snapshot(second: u64) -> Snapshot {
        let target = Target { pid: 7, alive: true, state: "recording".into(), ..Target::default() };
        Snapshot { target, time_ns: second * 1_000_000_000, ..Snapshot::default() }
    }

    fn words(happened: &Happened) -> Vec<(Sort, String)> {
        happened.entries().iter().map(|entry| (entry.sort, entry.words.clone())).collect()
    }

    /// The entries that `later` adds to those of a quiet first snapshot.
    fn added(later: Snapshot) -> Vec<(Sort, String)> {
        let mut happened = Happened::default();
        happened.look(&snapshot(1), 0);
        let before = happened.entries().len();
        happened.look(&later, 0);
        words(&happened).split_off(before)
    }

    #[test]
    fn nothing_new_is_nothing_told() {
        assert_eq!(added(snapshot(2)), []);
    }

    #[test]
    fn processes_come_change_and_go() {
        let mut happened = Happened::default();
        happened.look(&snapshot(1), 0);
        assert_eq!(words(&happened)[0].0, Sort::Process);
        assert_eq!(words(&happened)[1], (Sort::State, "recording".into()));
        let mut ended = snapshot(2);
        (ended.target.alive, ended.target.state) = (false, "exited".into());
        let told = added(ended);
        assert_eq!(told[0], (Sort::State, "recording → exited".into()));
        assert_eq!(told[1], (Sort::Process, "the process has ended".into()));
    }

    #[test]
    fn modules_are_told_at_their_load_and_when_they_are_loaded_again() {
        let row = ModuleRow {
            slot: 3,
            size_bytes: 1_500,
            loads: 1,
            crc32: Some(0xabc),
            first_load_ns: 1_250_000_000,
            functions: vec!["gemm".into()],
            function_count: 3,
            ..ModuleRow::default()
        };
        let mut happened = Happened::default();
        let loaded = Snapshot { modules: vec![row.clone()], ..snapshot(2) };
        happened.look(&loaded, 100_000_000_000);
        let entry = happened.entries().front().unwrap();
        assert_eq!(entry.sort, Sort::Module, "before what came later");
        assert_eq!((entry.time_ns, entry.wall_ns), (1_250_000_000, 99_250_000_000));
        assert_eq!(entry.words, "loaded 1.50 kB CRC32 00000abc: gemm and 2 more");
        happened.look(&Snapshot { modules: vec![ModuleRow { loads: 4, ..row }], ..snapshot(3) }, 0);
        assert!(happened.entries().back().unwrap().words.starts_with("loaded 3 times again"));
    }

    #[test]
    fn many_modules_at_a_time_are_told_together() {
        let rows = (0..50).map(|slot| ModuleRow { slot, size_bytes: 10, ..ModuleRow::default() });
        let told = added(Snapshot { modules: rows.collect(), ..snapshot(2) });
        assert_eq!(told.len(), MODULES_MAX + 1);
        assert_eq!(told.last().unwrap().1, "loaded 30 more, 300 B");
    }

    #[test]
    fn a_loss_is_told_as_it_begins_and_as_it_has_grown_tenfold() {
        let lossy = |second, count, unknown| {
            let lost = vec![Lost { reason: "overwritten".into(), count, unknown }];
            Snapshot { counts: Counts { lost, ..Counts::default() }, ..snapshot(second) }
        };
        let mut happened = Happened::default();
        for (second, count) in [(1, 0), (2, 5), (3, 6), (4, 49), (5, 50), (6, 51)] {
            happened.look(&lossy(second, count, false), 0);
        }
        let told: Vec<_> = words(&happened).into_iter().filter(|(sort, _)| *sort == Sort::Loss).collect();
        assert_eq!(told[0].1, "loss begins: overwritten 5");
        assert_eq!(told[1].1, "loss has grown: overwritten 50");
        assert_eq!(told.len(), 2);
        assert_eq!(added(lossy(2, 0, true))[0].1, "loss begins: overwritten, how much is not known");
    }

    #[test]
    fn clock_steps_and_notes_are_told_once() {
        let mut noted = snapshot(2);
        noted.clock.steps = 1;
        noted.notes = vec!["no lease".into()];
        let told = added(noted.clone());
        assert_eq!(told.iter().map(|(sort, _)| *sort).collect::<Vec<_>>(), [Sort::Clock, Sort::Note]);
        let mut happened = Happened::default();
        (0..5).for_each(|_| happened.look(&noted, 0));
        assert_eq!(words(&happened).iter().filter(|(sort, _)| *sort == Sort::Note).count(), 1);
    }

    #[test]
    fn what_is_kept_is_bounded_and_what_went_is_counted() {
        let mut happened = Happened::default();
        for second in 0..KEPT_MAX as u64 + 10 {
            let mut changed = snapshot(second + 1);
            changed.target.reason = second.to_string();
            happened.look(&changed, 0);
        }
        assert_eq!(happened.entries().len(), KEPT_MAX);
        assert_eq!(happened.gone(), 11, "one of the process beside those of the states");
    }

    #[test]
    fn a_recording_that_starts_again_is_told_again() {
        let mut happened = Happened::default();
        happened.look(&snapshot(5), 0);
        happened.look(&snapshot(9), 0);
        happened.look(&snapshot(1), 0);
        assert!(happened.entries().iter().all(|entry| entry.time_ns <= 1_000_000_000));
        assert_eq!(words(&happened).last().unwrap(), &(Sort::State, "recording".into()));
    }
}
