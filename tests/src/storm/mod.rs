//! The storm: processes and threads that write and read a tap are killed, stopped, parked, forked and replaced, before
//! and after every store of the protocol and at random times; and every record is accounted for.
//!
//! The parent (`round`) strikes. A writer process (`writer`, `generator`) carries a tap whose words are `watched`: each
//! access to them is a place of the protocol's sources (`points`), where a thread may be told to act (`strike`).
//! Reader processes (`reader`) come and go. What the generators attempt is counted outside the segment (`plan`); after
//! the writer's death a last reader's `books` have to `balance` with it.

mod balance;
mod blows;
mod books;
mod generator;
mod leftovers;
mod own_shm;
mod pattern;
mod plan;
mod points;
mod random;
mod reader;
mod round;
mod sabotage;
mod strike;
mod totals;
mod watched;
mod writer;

use std::{io, time::Duration};

pub use sabotage::Sabotage;

use leftovers::Leftovers;
use plan::Plan;
use points::Points;
use round::{Round, Storm};
use totals::Totals;

/// What waits for longer than this hangs.
const DEADLINE: Duration = Duration::from_secs(20);
/// So many hung rounds tell enough.
const MOST_HUNG: u64 = 3;

/// The words that make this program a writer, or a reader: `--as-writer FD`, `--as-reader FD NUMBER PID`.
pub const AS_WRITER: &str = "--as-writer";
pub const AS_READER: &str = "--as-reader";

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub kills: u64,
    pub seed: u64,
    pub sabotage: Option<Sabotage>,
}

/// Runs a storm and prints what came of it; true if it was passed.
pub fn run(settings: Settings) -> io::Result<bool> {
    let alone = own_shm::take();
    if let Err(error) = &alone {
        println!("no /dev/shm of its own ({error}): named taps that others sweep count as unread");
    }
    let (plan, _file) = Plan::create()?;
    let mut leftovers = Leftovers::before()?;
    let points = Points::of_the_sources();
    assert!(points.all.len() <= plan::MAX_POINTS, "{} places", points.all.len());
    let totals = Totals { kills_at: vec![[0; 2]; points.all.len()], ..Totals::default() };
    let mut storm = Storm { settings, plan, points, totals, alone: alone.is_ok() };
    println!("seed {}", settings.seed);
    while storm.totals.kills.all() < settings.kills && storm.totals.hung < MOST_HUNG {
        Round::run(&mut storm, &mut leftovers)?;
        // A broken protocol has been seen to fail: that is all that was asked.
        if settings.sabotage.is_some() && storm.totals.corrupt > 0 {
            break;
        }
    }
    let Storm { plan, points, mut totals, .. } = storm;
    totals.leftovers = leftovers.after()?;
    Ok(totals.tell(&plan, &points))
}

/// Runs as one of the storm's processes, as the words after the program's name say.
pub fn run_as(words: &[String]) -> io::Result<()> {
    let number = |i: usize| words.get(i).and_then(|w| w.parse::<i32>().ok()).ok_or(io::ErrorKind::InvalidInput);
    match words[0].as_str() {
        AS_WRITER => {
            let program = std::env::current_exe()?;
            writer::run(&program.to_string_lossy(), AS_WRITER, number(1)?)
        }
        _ => reader::run(number(1)?, number(2)? as usize, number(3)? as u32),
    }
}
