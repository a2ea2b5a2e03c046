//! What a storm adds up to, and how it is told.

use super::{
    balance::Balance,
    plan::Plan,
    points::{Points, Side},
};

/// Sums over all rounds.
#[derive(Default)]
pub struct Totals {
    pub rounds: u64,
    pub balance: Balance,
    pub readers: Balance,
    pub readers_closed: u64,
    pub corrupt: u64,
    pub hung: u64,
    pub leftovers: u64,
    pub kills: Kills,
    pub others: Others,
    /// Kills at each place, before and after it.
    pub kills_at: Vec<[u64; 2]>,
}

/// What counts as a kill: the end of a process by SIGKILL, or of a thread without any clean-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kills {
    pub writers_at_points: u64,
    pub writers_at_random: u64,
    pub readers_at_points: u64,
    pub readers_at_random: u64,
    pub threads_at_points: u64,
    pub threads_at_random: u64,
}

impl Kills {
    pub fn all(&self) -> u64 {
        self.writers_at_points
            + self.writers_at_random
            + self.readers_at_points
            + self.readers_at_random
            + self.threads_at_points
            + self.threads_at_random
    }
}

/// What else was done, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    pub writer_stops: u64,
    pub reader_stops: u64,
    pub parked: u64,
    pub nested: u64,
    pub forks: u64,
    pub execs: u64,
    pub inherited: u64,
    pub mended_by_heirs: u64,
    pub mended_by_housekeeping: u64,
    pub loads: u64,
    pub names: u64,
}

/// From so many kills on, each place in lanes and stores has to have been one of them.
pub const KILLS_THAT_REACH_ALL: u64 = 2000;

impl Totals {
    pub fn fault(&mut self, round: u64, fault: &str) {
        self.corrupt += 1;
        eprintln!("storm: round {round}: {fault}");
    }

    /// Prints everything; true if the storm was passed.
    pub fn tell(&self, plan: &Plan, points: &Points) -> bool {
        let (unhit, spared) = self.tell_points(plan, points);
        let (k, o, b) = (&self.kills, &self.others, &self.balance);
        println!("{} places, before and after: {unhit} never hit, {spared} of lanes and stores never a death", {
            points.all.len()
        });
        println!(
            "killed: {} writers at places, {} at random; {} readers at places, {} at random",
            k.writers_at_points, k.writers_at_random, k.readers_at_points, k.readers_at_random
        );
        println!("ended: {} threads at places, {} at random", k.threads_at_points, k.threads_at_random);
        println!(
            "besides: {} writers and {} readers stopped, {} threads parked, {} nested writes, {} forks, {} execs",
            o.writer_stops, o.reader_stops, o.parked, o.nested, o.forks, o.execs
        );
        println!(
            "threads that inherited a pointer: {}; lanes left inside a write, mended by heirs: {}, by housekeeping: {}",
            o.inherited, o.mended_by_heirs, o.mended_by_housekeeping
        );
        println!("loads {}, names {}: every one stored, met again, refused or in flight", o.loads, o.names);
        println!(
            "lost: overwritten {}, before_attach {}, abandoned {}, no_lane {}, nested {}, in flight {}, unread {}",
            b.overwritten, b.before_attach, b.abandoned, b.no_lane, b.nested, b.vanished, b.unread
        );
        println!(
            "{} rounds; {} readers lived to close their books: {} attempted, {} delivered, {} lost",
            self.rounds,
            self.readers_closed,
            self.readers.attempted,
            self.readers.delivered,
            self.readers.lost()
        );
        println!(
            "kills {} attempted {} delivered {} lost {} corrupt {} hung {} leftovers {}",
            k.all(),
            b.attempted,
            b.delivered,
            b.lost(),
            self.corrupt,
            self.hung,
            self.leftovers
        );
        let whole = b.is_even() && self.readers.is_even();
        let reached = unhit == 0 && (spared == 0 || k.all() < KILLS_THAT_REACH_ALL);
        whole && reached && self.corrupt + self.hung + self.leftovers == 0
    }

    /// Gives how many places were never hit, and how many were never a death and should have been.
    fn tell_points(&self, plan: &Plan, points: &Points) -> (usize, usize) {
        let (mut unhit, mut spared) = (0, 0);
        println!("{:>12} {:>7} {:>12} {:>7}  place", "hits before", "deaths", "hits after", "deaths");
        for (i, point) in points.all.iter().enumerate() {
            let hits = [Side::Before, Side::After].map(|side| plan.hits(i, side));
            let kills = self.kills_at[i];
            unhit += hits.iter().filter(|n| **n == 0).count();
            if point.is_of_lanes_or_stores() {
                spared += kills.iter().filter(|n| **n == 0).count();
            }
            let place = format!("{}:{} {:?}", point.file, point.line, point.part);
            println!(
                "{:>12} {:>7} {:>12} {:>7}  {place}  {}",
                hits[0],
                kills[0],
                hits[1],
                kills[1],
                point.code.chars().take(60).collect::<String>()
            );
        }
        (unhit, spared)
    }
}
