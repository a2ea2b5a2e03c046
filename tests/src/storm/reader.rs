//! A reader process: attaches to the writer's tap, some day, drains as it pleases, and closes its books when the tap is
//! over. It may be stopped or killed at any time.

use std::{
    io,
    time::{Duration, Instant},
};

use gputap_ringbuf::{
    attach::{Attached, MappedFile},
    control::{
        Answer, CONTROL_BYTES, Command,
        client::{ControlClient, ControlError, Ticket},
    },
    discover::{self, Found as FoundTap},
    process,
};

use super::{
    DEADLINE,
    books::Books,
    plan::{Found, MAX_TAPS, Number, Plan},
    random::Random,
    watched::{Watch, WatchedWords},
};

pub const READING: u64 = 1;
pub const CLOSED: u64 = 2;

/// Reads the tap of process `pid` as reader number `number`.
pub fn run(fd: i32, number: usize, pid: u32) -> io::Result<()> {
    let plan = Plan::open(fd)?;
    let Some((found, attached, tap)) = attach(&plan, pid) else { return Ok(()) };
    plan.set_found(number, Found::Tap, tap as u64);
    plan.set_found(number, Found::State, READING);
    let seed = plan.number(Number::Seed);
    let mut random = Random::new(seed, &[plan.number(Number::Round), 3, number as u64]);
    let mut lease = Lease { client: None, waiting: None, found, watch: Watch::of_this_process(&plan) };
    let mut books = Books::open(attached);
    while plan.number(Number::Over) <= tap as u64 {
        let limit = 1 << random.below(14);
        books.drain(limit);
        if random.in_100(20) {
            books.look();
        }
        lease.keep(&plan);
        plan.set_found(number, Found::Turns, plan.found(number, Found::Turns) + 1);
        if random.in_100(70) {
            std::thread::sleep(Duration::from_micros(random.below(3000)));
        }
    }
    books.close();
    tell(&plan, number, &books);
    Ok(())
}

/// The tap, once it can be attached to; `None` when the writer is gone before.
fn attach(plan: &Plan, pid: u32) -> Option<(FoundTap, Attached, usize)> {
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline && plan.number(Number::Over) < MAX_TAPS as u64 {
        let opened = discover::find(pid).ok().and_then(|found| Some((Attached::open(&found).ok()?, found)));
        if let Some((attached, found)) = opened {
            let nonce = attached.identity().nonce;
            let tap = (0..MAX_TAPS).find(|tap| plan.nonce(*tap) == nonce)?;
            return Some((found, attached, tap));
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    None
}

/// A place in the control object, taken again when it was lost.
struct Lease {
    client: Option<ControlClient<WatchedWords>>,
    /// A command without an answer yet.
    waiting: Option<Ticket>,
    found: FoundTap,
    watch: &'static Watch,
}

impl Lease {
    fn keep(&mut self, plan: &Plan) {
        match &self.client {
            Some(client) if client.renew() => self.waiting = command(client, self.waiting),
            _ => self.take(plan),
        }
    }

    fn take(&mut self, plan: &Plan) {
        self.waiting = None;
        // It fails where the writer of a memfd has gone.
        let Ok(words) = MappedFile::open_writable(&self.found.control, CONTROL_BYTES) else { return };
        match ControlClient::take_slot(WatchedWords::new(words, self.watch), process::random()) {
            Ok(client) => {
                client.want(1);
                self.client = Some(client);
            }
            Err(ControlError::NoSlot) => _ = plan.add(Number::LeasesRefused),
            // The process was replaced meanwhile, and what was the memfd's descriptor is another's.
            Err(_) => {}
        }
    }
}

/// Sends a command, or sees to the answer of the one before; gives what waits then.
fn command(client: &ControlClient<WatchedWords>, waiting: Option<Ticket>) -> Option<Ticket> {
    let Some(ticket) = waiting else { return client.send(Command::Flush).ok() };
    match client.answer(ticket) {
        Ok(None) => Some(ticket),
        Ok(Some(Answer::Done)) | Err(ControlError::Lapsed { .. }) => None,
        other => panic!("{other:?} to {ticket:?}"),
    }
}

fn tell(plan: &Plan, number: usize, books: &Books) {
    let sums = &books.sums;
    for (what, value) in [
        (Found::Delivered, sums.delivered),
        (Found::Overwritten, sums.overwritten),
        (Found::BeforeAttach, sums.before_attach),
        (Found::Abandoned, sums.abandoned),
        (Found::Corrupt, sums.corrupt),
        (Found::Cubins, sums.cubins),
        (Found::Names, sums.names),
    ] {
        plan.set_found(number, what, value);
    }
    for fault in &books.faults {
        eprintln!("storm: reader {number}: {fault}");
    }
    plan.set_found(number, Found::State, CLOSED);
}
