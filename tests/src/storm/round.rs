//! One round: a writer that lives until it is killed, readers that come and go, and at its end (`closing`) the books.

mod closing;

use std::{
    io,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use gputap_ringbuf::{attach::Attached, discover};

use super::{
    AS_READER, AS_WRITER, DEADLINE, Settings, blows,
    books::Books,
    leftovers::Leftovers,
    plan::{Action, Arm, Did, MAX_READERS, Number, Plan},
    points::{Points, Side},
    random::Random,
    strike,
    totals::Totals,
};

/// What lasts from round to round.
pub struct Storm {
    pub settings: Settings,
    pub plan: Plan,
    pub points: Points,
    pub totals: Totals,
    /// Nobody else sweeps where its taps are.
    pub alone: bool,
}

/// A reader process.
pub struct Reading {
    pub child: Child,
    pub number: usize,
    pub stopped: bool,
}

/// A tap of the round's writer, as the parent reads it.
enum Held {
    /// Read all the while.
    Books(Box<Books>),
    /// Mapped, and first read when the writer is dead.
    Late(Attached),
}

pub struct Round<'a> {
    pub storm: &'a mut Storm,
    pub random: Random,
    number: u64,
    writer: Child,
    writer_is_gone: bool,
    pub readers: Vec<Reading>,
    readers_begun: usize,
    taps: Vec<Held>,
    /// How many were set: each has a serial of its own.
    pub arms: u64,
    hung: bool,
}

impl Round<'_> {
    /// Runs the next round, with as many kills as are left at most.
    pub fn run(storm: &mut Storm, leftovers: &mut Leftovers) -> io::Result<()> {
        storm.totals.rounds += 1;
        let number = storm.totals.rounds;
        let mut random = Random::new(storm.settings.seed, &[number]);
        storm.plan.begin_round();
        let set = |number, value| storm.plan.set(number, value);
        set(Number::Seed, storm.settings.seed);
        set(Number::Round, number);
        set(Number::Memfd, u64::from(random.in_100(40)));
        set(Number::Lanes, 2 + random.below(8));
        set(Number::Generators, 2 + random.below(4));
        set(Number::Sabotage, storm.settings.sabotage.map_or(0, |s| s as u64));
        let at_start = random.in_100(15).then(|| Round::arm_the_start(storm, &mut random)).flatten();
        let fd = storm.plan.fd.to_string();
        let writer = Command::new(std::env::current_exe()?).args([AS_WRITER, &fd]).stdin(Stdio::null()).spawn()?;
        leftovers.is_of(writer.id());
        let mut round = Round {
            storm,
            random,
            number,
            writer,
            writer_is_gone: false,
            readers: Vec::new(),
            readers_begun: 0,
            taps: Vec::new(),
            arms: 1,
            hung: false,
        };
        round.go(at_start)?;
        if !leftovers.sweep() {
            round.hangs("a child of a killed writer to end");
        }
        Ok(())
    }

    /// Some rounds end as they begin: a place that is reached while a tap is made is armed before there is one.
    fn arm_the_start(storm: &mut Storm, random: &mut Random) -> Option<Arm> {
        let at_start = |i: &usize| {
            let point = &storm.points.all[*i];
            let code = |text: &str| point.code.contains(text);
            point.file.starts_with("header/identity") || code("head::") || (code("Release") && !point.is_of_readers())
        };
        let all: Vec<usize> = (0..storm.points.all.len()).filter(at_start).collect();
        let (point, side) = storm.least_deadly(&all, random)?;
        let arm = Arm { point, side, action: Action::Kill, serial: 1 };
        storm.plan.arm(0, arm, 1 + random.below(3));
        Some(arm)
    }

    fn go(&mut self, at_start: Option<Arm>) -> io::Result<()> {
        if at_start.is_none() && self.random.in_100(5) {
            // Somewhere in the making of a tap.
            std::thread::sleep(Duration::from_micros(self.random.below(5000)));
            self.kill_writer_at_random();
        }
        self.begin_tap();
        if let Some(arm) = at_start {
            self.settle(0, arm);
        }
        let blows = 6 + self.random.below(30);
        for _ in 0..blows {
            self.look_after_readers()?;
            if self.writer_has_gone() || self.kills_left() <= 1 || self.hung {
                break;
            }
            blows::strike(self);
            self.drain();
        }
        self.continue_readers();
        if !self.writer_has_gone() {
            self.everybody_goes_on();
            blows::last(self);
        }
        self.end()
    }

    /// Waits for the next tap of the writer, and holds it.
    pub fn begin_tap(&mut self) {
        let next = self.taps.len() as u64;
        let published = |r: &mut Round| r.plan().number(Number::Published) > next || r.writer_has_gone();
        if !self.wait_for("the tap to be published", published) || self.writer_is_gone {
            return;
        }
        let pid = self.pid();
        let nonce = self.plan().nonce(next as usize);
        let mut attached = None;
        self.wait_for("the tap to be found", |r| {
            let found = discover::find(pid).ok().and_then(|found| Attached::open(&found).ok());
            attached = found.filter(|a| a.identity().nonce == nonce);
            attached.is_some() || r.writer_has_gone()
        });
        if let Some(attached) = attached {
            let early = self.random.in_100(50);
            self.taps.push(if early { Held::Books(Box::new(Books::open(attached))) } else { Held::Late(attached) });
        }
    }

    fn drain(&mut self) {
        let limit = 1 << self.random.below(16);
        for held in &mut self.taps {
            if let Held::Books(books) = held {
                books.drain(limit);
                books.look();
            }
        }
    }

    /// Starts readers, and sees that those which are over were over in good order.
    fn look_after_readers(&mut self) -> io::Result<()> {
        let mut ended = Vec::new();
        for i in (0..self.readers.len()).rev() {
            if self.readers[i].child.try_wait()?.is_some() {
                ended.push(self.readers.swap_remove(i));
            }
        }
        for reading in ended {
            self.close_reader(reading)?;
        }
        let wanted = self.readers.len() < 3 && self.random.in_100(60);
        if wanted && self.readers_begun < MAX_READERS {
            let (fd, number) = (self.plan().fd.to_string(), self.readers_begun);
            let words = [AS_READER, &fd, &number.to_string(), &self.pid().to_string()];
            let child = Command::new(std::env::current_exe()?).args(words).stdin(Stdio::null()).spawn()?;
            self.readers.push(Reading { child, number, stopped: false });
            self.readers_begun += 1;
        }
        Ok(())
    }

    /// A reader that ended by itself: its books have to balance too, when the round is over.
    fn close_reader(&mut self, mut reading: Reading) -> io::Result<()> {
        let status = reading.child.wait()?;
        if !status.success() {
            self.fault(&format!("reader {} ended with {status}", reading.number));
        }
        Ok(())
    }

    pub fn continue_readers(&mut self) {
        for reading in &mut self.readers {
            strike::kill(reading.child.id(), libc::SIGCONT);
            reading.stopped = false;
        }
    }

    /// Nothing holds a living thread up: every one goes on, and where there are lanes enough, it has one.
    fn everybody_goes_on(&mut self) {
        let (pid, plan) = (self.pid(), self.plan());
        // A thread may have claimed a second lane in a handler that came while it claimed its first.
        let most_lanes = plan.number(Number::Generators) + plan.number(Number::NestedDone);
        let lanes_enough = plan.number(Number::Lanes) >= most_lanes;
        let done = |plan: &Plan, stream: usize| {
            let written = plan.did(stream, Did::Done).saturating_sub(plan.did(stream, Did::Refused));
            if lanes_enough { written } else { plan.did(stream, Did::Done) }
        };
        let threads = plan.streams().step_by(2).filter(|s| plan.did(*s, Did::Running) == 1);
        let before: Vec<(usize, u64)> = threads.map(|s| (s, done(plan, s))).collect();
        self.wait_for("every thread to write on", |r| {
            let goes_on = |(stream, then): &(usize, u64)| {
                done(r.plan(), *stream) > *then || !thread_lives(pid, r.plan().did(*stream, Did::Tid))
            };
            before.iter().all(goes_on) || r.writer_has_gone()
        });
    }

    pub fn plan(&self) -> &Plan {
        &self.storm.plan
    }

    pub fn pid(&self) -> u32 {
        self.writer.id()
    }

    pub fn kills_left(&self) -> u64 {
        self.storm.settings.kills.saturating_sub(self.storm.totals.kills.all())
    }

    pub fn writer_has_gone(&mut self) -> bool {
        self.writer_is_gone |= matches!(self.writer.try_wait(), Ok(Some(_)));
        self.writer_is_gone
    }

    pub fn kill_writer_at_random(&mut self) {
        self.storm.totals.kills.writers_at_random += 1;
        let _ = self.writer.kill();
        self.wait_for("a killed writer to be gone", |r| r.writer_has_gone());
    }

    fn fault(&mut self, fault: &str) {
        self.storm.totals.fault(self.number, fault);
    }

    /// Waits until it `holds`; what does not within the deadline hangs, and the writer with it is killed.
    pub fn wait_for(&mut self, what: &str, mut holds: impl FnMut(&mut Round) -> bool) -> bool {
        let deadline = Instant::now() + DEADLINE;
        while !holds(self) {
            if Instant::now() > deadline {
                self.hangs(what);
                return false;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        true
    }

    fn hangs(&mut self, what: &str) {
        self.hung = true;
        self.storm.totals.hung += 1;
        eprintln!("storm: round {}: waited in vain for {what}", self.number);
        let readers = self.readers.iter().map(|reading| reading.child.id());
        for pid in readers.chain([self.pid()]) {
            eprintln!("process {pid}:\n{}", crate::stacks::dump(pid));
        }
        let _ = self.writer.kill();
    }
}

impl Storm {
    /// Of these places, one that has been a death as seldom as any of a few, and on which side of it.
    pub fn least_deadly(&self, all: &[usize], random: &mut Random) -> Option<(usize, Side)> {
        let any = |random: &mut Random| {
            let point = *all.get(random.below(all.len().max(1) as u64) as usize)?;
            Some((point, if random.in_100(50) { Side::Before } else { Side::After }))
        };
        let some: Vec<(usize, Side)> = (0..4).filter_map(|_| any(random)).collect();
        some.into_iter().min_by_key(|(point, side)| self.totals.kills_at[*point][*side as usize])
    }
}

pub fn thread_lives(pid: u32, tid: u64) -> bool {
    std::path::Path::new(&format!("/proc/{pid}/task/{tid}")).exists()
}

/// Whether all of the process is stopped.
pub fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}
