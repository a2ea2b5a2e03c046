//! Whether a tap's books balance: what its generators counted outside the segment against what one reader found in it.

use gputap_ringbuf::{attach::Counters, header::counters::Counter};

use super::{
    books::Sums,
    plan::{Did, Plan},
};

/// What the generators of one tap counted. All of them are dead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    pub attempted: u64,
    /// Records whose outcome their thread did not live to see.
    pub in_flight: u64,
    pub threads: u64,
    pub loads: u64,
    pub loads_in_flight: u64,
    pub names: u64,
    pub names_in_flight: u64,
}

impl Generated {
    pub fn of_tap(plan: &Plan, tap: usize) -> Generated {
        let mut sum = Generated::default();
        for stream in plan.streams().filter(|s| plan.did(*s, Did::Tap) == tap as u64) {
            let did = |what| plan.did(stream, what);
            // A handler's stream is no thread of its own.
            sum.threads += u64::from(stream % 2 == 0);
            sum.attempted += did(Did::Attempted);
            sum.in_flight += did(Did::Attempted) - did(Did::Done);
            sum.loads += did(Did::LoadsAttempted);
            sum.loads_in_flight += did(Did::LoadsAttempted) - did(Did::LoadsDone);
            sum.names += did(Did::NamesAttempted);
            sum.names_in_flight += did(Did::NamesAttempted) - did(Did::NamesDone);
        }
        sum
    }
}

/// Attempted records of a tap, and where one reader says that they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    pub attempted: u64,
    pub delivered: u64,
    pub overwritten: u64,
    pub before_attach: u64,
    /// Begun by a thread that ended, and closed by another.
    pub abandoned: u64,
    pub no_lane: u64,
    pub nested: u64,
    /// In flight when their thread was killed, and left no trace.
    pub vanished: u64,
    /// Went with a memfd whose process was killed before anybody held it.
    pub unread: u64,
}

impl Balance {
    pub fn lost(&self) -> u64 {
        let in_lanes = self.overwritten + self.before_attach + self.abandoned;
        in_lanes + self.no_lane + self.nested + self.vanished + self.unread
    }

    pub fn is_even(&self) -> bool {
        self.attempted == self.delivered + self.lost()
    }

    pub fn add(&mut self, other: Balance) {
        self.attempted += other.attempted;
        self.delivered += other.delivered;
        self.overwritten += other.overwritten;
        self.before_attach += other.before_attach;
        self.abandoned += other.abandoned;
        self.no_lane += other.no_lane;
        self.nested += other.nested;
        self.vanished += other.vanished;
        self.unread += other.unread;
    }

    /// Balances what was generated with a reader's sums; `faults` tells what does not fit.
    pub fn of(made: &Generated, counters: &Counters, sums: &Sums, faults: &mut Vec<String>) -> Balance {
        let (no_lane, nested) = (counters.get(Counter::NoLane), counters.get(Counter::Nested));
        let known = sums.records() + no_lane + nested;
        // Each thread had one record in flight at most when it was killed; what it left half done is one of these.
        let most_vanished = made.in_flight.saturating_sub(sums.abandoned);
        let vanished = made.attempted.saturating_sub(known).min(most_vanished);
        let Sums { delivered, overwritten, before_attach, abandoned, .. } = *sums;
        let attempted = made.attempted;
        let unread = 0;
        let balance =
            Balance { attempted, delivered, overwritten, before_attach, abandoned, no_lane, nested, vanished, unread };
        let mut expect = |holds: bool, what: &str| {
            if !holds {
                faults.push(format!("{what}: {made:?}, {sums:?}, {counters:?}"));
            }
        };
        expect(balance.is_even(), "attempted is not delivered + lost");
        expect(made.in_flight <= made.threads, "a thread has more than one record in flight");
        expect(sums.abandoned <= made.in_flight, "more records abandoned than were in flight");
        // What the lanes say of themselves may be ahead by a record that was in flight.
        let in_lanes = counters.attempted - counters.lost().map(|(_, n)| n).sum::<u64>();
        let in_flight = |ahead: u64| ahead <= made.in_flight;
        expect(in_lanes.checked_sub(sums.records()).is_some_and(in_flight), "the lanes count otherwise");
        balance
    }
}

/// The same for loads and names, of which a reader gets all. `cubin_uses` is what the entries say of themselves in the
/// end, those of cubins and those of refusals.
pub fn check_stores(
    made: &Generated,
    counters: &Counters,
    sums: &Sums,
    cubin_uses: Option<(u64, u64)>,
    faults: &mut Vec<String>,
) {
    let count = |counter| counters.get(counter);
    let duplicates = count(Counter::ModuleDuplicates);
    let refused = count(Counter::ModulesFull) + count(Counter::ModulesNotReserved) + count(Counter::ModulesContended);
    let mut expect = |whole: u64, parts: u64, in_flight: u64, what: &str| {
        if whole.checked_sub(parts).is_none_or(|missing| missing > in_flight) {
            let found = format!("{parts} of {whole}, {in_flight} in flight: {made:?}, {sums:?}, {counters:?}");
            faults.push(format!("{what}: {found}"));
        }
    };
    let flying = made.loads_in_flight;
    expect(made.loads, count(Counter::ModuleLoads), flying, "loads that reached the tap");
    expect(made.loads, sums.cubins + duplicates + refused, flying, "loads stored, met again or refused");
    if let Some((uses, refusals)) = cubin_uses {
        expect(uses, sums.cubins + duplicates, flying, "uses of cubins");
        // A size whose note found no slot is not noted.
        expect(refused + flying, refusals, refused + flying, "uses of refusals");
    }
    expect(made.names, sums.names + count(Counter::NamesLost), made.names_in_flight, "names stored or lost");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads, one of them killed with a record in flight; ten records attempted, `in_lanes` in the lanes.
    fn balance(delivered: u64, abandoned: u64, in_lanes: u64) -> (Balance, usize) {
        let made = Generated { attempted: 10, in_flight: 1, threads: 2, ..Generated::default() };
        let mut counters = Counters::default();
        counters.attempted += in_lanes;
        let mut faults = Vec::new();
        let sums = Sums { delivered, abandoned, ..Sums::default() };
        let balance = Balance::of(&made, &counters, &sums, &mut faults);
        (balance, faults.len())
    }

    #[test]
    fn one_record_in_flight_may_be_lost_for_each_thread_killed_and_no_more() {
        for (delivered, abandoned, in_lanes, vanished) in [(10, 0, 10, 0), (9, 1, 10, 0), (9, 0, 9, 1), (9, 0, 10, 1)] {
            let (balance, faults) = balance(delivered, abandoned, in_lanes);
            assert!(balance.is_even() && faults == 0, "{balance:?}");
            assert_eq!((balance.vanished, balance.lost()), (vanished, 10 - delivered));
        }
        for (delivered, abandoned, in_lanes) in [(8, 0, 8), (8, 1, 9), (11, 0, 11), (8, 2, 10), (9, 0, 8), (9, 0, 11)] {
            let (balance, faults) = balance(delivered, abandoned, in_lanes);
            assert!(faults > 0, "{balance:?}");
        }
    }
}
