//! What a round does to its processes, one blow after another.

use std::{
    os::unix::process::ExitStatusExt,
    time::{Duration, Instant},
};

use super::{
    plan::{Action, Arm, Did, Found, Number},
    points::{Point, Side},
    reader::READING,
    round::{Reading, Round, is_stopped, thread_lives},
    strike,
};

/// How long a place is given to be reached: some are seldom on anybody's way.
const REACHED_WITHIN: Duration = Duration::from_millis(15);

/// What became of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    Fired,
    Nobody,
}

/// One blow of any kind.
pub fn strike(round: &mut Round<'_>) {
    let pause = round.random.below(1500);
    std::thread::sleep(Duration::from_micros(pause));
    match round.random.below(100) {
        0..30 => end_a_thread_at_a_place(round),
        30..45 => end_a_thread_and_strike_its_heir(round),
        45..55 => end_a_thread_at_random(round),
        55..63 => kill_a_reader(round),
        63..72 => _ = at_a_place(round, Action::Kill, &Point::is_of_readers),
        72..77 => stop_a_reader(round),
        77..82 => park_a_thread(round),
        82..86 => stop_the_writer_at_a_place(round),
        86..89 => stop_the_writer_at_random(round),
        89..93 => nest_at_a_place(round),
        93..95 => nest_at_random(round),
        95..98 => _ = at_a_place(round, Action::Fork, &anywhere),
        _ => replace_the_writer(round),
    }
}

/// The blow that the writer does not survive.
pub fn last(round: &mut Round<'_>) {
    for _ in 0..10 {
        if round.random.in_100(25) {
            break;
        }
        if at_a_place(round, Action::Kill, &anywhere) == Came::Fired {
            return;
        }
    }
    if !round.writer_has_gone() {
        round.kill_writer_at_random();
    }
}

fn anywhere(point: &Point) -> bool {
    !point.is_of_readers()
}

/// Places that a thread passes which writes records or entries.
fn of_writing_threads(point: &Point) -> bool {
    point.is_of_lanes_or_stores() && !point.code.contains("RESERVED_BYTES") && !point.code.contains("FREE, Ordering")
}

impl Round<'_> {
    /// Arms one of the places that were hit before and for which `of` holds.
    fn arm(&mut self, which: usize, action: Action, of: &dyn Fn(&Point) -> bool) -> Option<Arm> {
        let points = &self.storm.points.all;
        let hit = |i: &usize| of(&points[*i]) && self.plan().hits(*i, Side::Before) > 0;
        let all: Vec<usize> = (0..points.len()).filter(hit).collect();
        let (point, side) = self.storm.least_deadly(&all, &mut self.random)?;
        self.arms += 1;
        let arm = Arm { point, side, action, serial: self.arms };
        let among = if self.random.in_100(50) { 1 } else { 20 };
        let nth = 1 + self.random.below(among);
        self.plan().arm(which, arm, nth);
        Some(arm)
    }

    /// Waits for an armed place to be reached, and counts what it did.
    pub fn settle(&mut self, which: usize, arm: Arm) -> bool {
        let deadline = Instant::now() + REACHED_WITHIN;
        let mut fired = self.plan().has_fired(which, arm);
        while !fired && Instant::now() < deadline && !self.writer_has_gone() {
            std::thread::sleep(Duration::from_micros(50));
            fired = self.plan().has_fired(which, arm);
        }
        fired = fired || !self.plan().disarm(which, arm);
        if fired && matches!(arm.action, Action::End | Action::Kill) {
            self.storm.totals.kills_at[arm.point][arm.side as usize] += 1;
            self.count_death(which, arm);
        }
        fired
    }

    /// Whether it was a thread's end or the process's: the housekeeping thread ends only with its process.
    fn count_death(&mut self, which: usize, arm: Arm) {
        if self.storm.points.all[arm.point].is_of_readers() {
            self.wait_for("a killed reader to be gone", |r| r.a_killed_reader_has_gone());
            self.storm.totals.kills.readers_at_points += 1;
        } else if self.plan().killed_the_process(which, arm) {
            self.wait_for("a killed writer to be gone", |r| r.writer_has_gone());
            self.storm.totals.kills.writers_at_points += 1;
        } else {
            self.storm.totals.kills.threads_at_points += 1;
        }
    }

    fn a_killed_reader_has_gone(&mut self) -> bool {
        let killed = |reading: &mut Reading| {
            let status = reading.child.try_wait().ok().flatten();
            status.is_some_and(|s| s.signal() == Some(libc::SIGKILL))
        };
        let which = self.readers.iter_mut().position(killed);
        which.map(|i| self.readers.swap_remove(i)).is_some()
    }

    fn threads(&self) -> Vec<(usize, u64)> {
        let (plan, pid) = (self.plan(), self.pid());
        let running = plan.streams().step_by(2).filter(|s| plan.did(*s, Did::Running) == 1);
        running.map(|s| (s, plan.did(s, Did::Tid))).filter(|(_, tid)| thread_lives(pid, *tid)).collect()
    }

    fn some_thread(&mut self) -> Option<u64> {
        let threads = self.threads();
        let (_, tid) = threads.get(self.random.below(threads.len().max(1) as u64) as usize)?;
        Some(*tid)
    }

    fn attempted(&self) -> u64 {
        self.plan().streams().map(|s| self.plan().did(s, Did::Attempted)).sum()
    }
}

fn at_a_place(round: &mut Round<'_>, action: Action, of: &dyn Fn(&Point) -> bool) -> Came {
    match round.arm(0, action, of) {
        Some(arm) if round.settle(0, arm) => {
            if action == Action::Fork {
                round.storm.totals.others.forks += 1;
            }
            Came::Fired
        }
        _ => Came::Nobody,
    }
}

fn end_a_thread_at_a_place(round: &mut Round<'_>) {
    at_a_place(round, Action::End, &of_writing_threads);
}

/// A thread ends inside a write; whoever takes its lane over is struck while it mends, or while it claims another.
fn end_a_thread_and_strike_its_heir(round: &mut Round<'_>) {
    if round.kills_left() < 4 {
        return;
    }
    let action = if round.random.in_100(85) { Action::End } else { Action::Kill };
    let heir_at = if round.random.in_100(65) { Point::is_repair } else { Point::is_claim };
    let heir = round.arm(1, action, &heir_at);
    let first = round.arm(0, Action::End, &Point::is_inside_a_write);
    if let Some(first) = first {
        round.settle(0, first);
    }
    if let Some(heir) = heir {
        round.settle(1, heir);
    }
}

fn end_a_thread_at_random(round: &mut Round<'_>) {
    let (pid, Some(tid)) = (round.pid(), round.some_thread()) else { return };
    if strike::end_thread(pid, tid) {
        round.storm.totals.kills.threads_at_random += 1;
        round.wait_for("a thread to end", |r| !thread_lives(pid, tid) || r.writer_has_gone());
    }
}

fn kill_a_reader(round: &mut Round<'_>) {
    if round.readers.is_empty() {
        return;
    }
    let which = round.random.below(round.readers.len() as u64) as usize;
    let mut reading = round.readers.swap_remove(which);
    // One that has closed its books already was not killed.
    if matches!(reading.child.try_wait(), Ok(None)) {
        let _ = reading.child.kill();
        let _ = reading.child.wait();
        round.storm.totals.kills.readers_at_random += 1;
    }
}

/// For the length of some blows: it goes on when the next one is stopped.
fn stop_a_reader(round: &mut Round<'_>) {
    round.continue_readers();
    if round.readers.is_empty() {
        return;
    }
    let which = round.random.below(round.readers.len() as u64) as usize;
    let reading = &mut round.readers[which];
    strike::kill(reading.child.id(), libc::SIGSTOP);
    reading.stopped = true;
    round.storm.totals.others.reader_stops += 1;
}

/// The others go on, whatever it is that it holds.
fn park_a_thread(round: &mut Round<'_>) {
    let Some(arm) = round.arm(0, Action::Park, &anywhere) else { return };
    if !round.settle(0, arm) {
        return;
    }
    round.storm.totals.others.parked += 1;
    let then = round.attempted();
    // Where the only thread is parked, nobody is left to go on; more than one may have ended just now.
    if round.threads().len() > 2 {
        round.wait_for("others to go on while a thread is parked", |r| {
            r.attempted() > then + 10 || r.writer_has_gone() || r.threads().len() < 3
        });
    }
    if round.random.in_100(30) && round.kills_left() > 1 {
        kill_a_reader(round);
    }
    round.plan().set(Number::Released, arm.serial);
}

fn stop_the_writer_at_a_place(round: &mut Round<'_>) {
    let Some(arm) = round.arm(0, Action::Stop, &anywhere) else { return };
    if round.settle(0, arm) {
        while_stopped(round);
    }
}

fn stop_the_writer_at_random(round: &mut Round<'_>) {
    strike::kill(round.pid(), libc::SIGSTOP);
    while_stopped(round);
}

/// Readers do not wait for a writer that has stopped.
fn while_stopped(round: &mut Round<'_>) {
    let pid = round.pid();
    round.wait_for("the writer to stop", |r| is_stopped(pid) || r.writer_has_gone());
    round.storm.totals.others.writer_stops += 1;
    let reads = |r: &Reading| !r.stopped;
    let number = round.readers.iter().find(|r| reads(r)).map(|r| r.number);
    if let Some(number) = number.filter(|n| round.plan().found(*n, Found::State) == READING) {
        let then = round.plan().found(number, Found::Turns);
        round.wait_for("a reader to go on while the writer is stopped", |r| {
            r.plan().found(number, Found::Turns) > then + 1 || r.plan().found(number, Found::State) != READING
        });
    }
    strike::kill(pid, libc::SIGCONT);
}

fn nest_at_a_place(round: &mut Round<'_>) {
    let then = round.plan().number(Number::NestedDone);
    if at_a_place(round, Action::Nest, &of_writing_threads) == Came::Fired {
        nested(round, then);
    }
}

fn nest_at_random(round: &mut Round<'_>) {
    let then = round.plan().number(Number::NestedDone);
    let (pid, Some(tid)) = (round.pid(), round.some_thread()) else { return };
    if strike::nest_in_thread(pid, tid) {
        nested(round, then);
    }
}

/// Nothing else is struck until the handler is through: a thread has one record in flight, or its handler has.
fn nested(round: &mut Round<'_>, then: u64) {
    round.storm.totals.others.nested += 1;
    round.wait_for("a signal handler to have written", |r| {
        r.plan().number(Number::NestedDone) > then || r.writer_has_gone()
    });
}

/// The process is replaced by itself: its tap is over, and it makes another.
fn replace_the_writer(round: &mut Round<'_>) {
    let taps = round.plan().number(Number::Taps);
    if taps >= 3 || at_a_place(round, Action::Exec, &anywhere) != Came::Fired {
        return;
    }
    round.storm.totals.others.execs += 1;
    round.begin_tap();
    round.plan().set(Number::Over, taps);
}
