//! What was launched and has not finished.
//!
//! A launch is open from its event until a record with its correlation id says that what it launched has ended. Events
//! and records come through different lanes, in no order between them. Where records are lost, a launch may stay open
//! though its work has ended: such launches are told apart, and given up once the work has gone on past them.

use super::early::Early;
use super::graph_runs::GraphRuns;
use super::snapshot::{InFlight, InFlightRow};
use crate::clock::Now;
use gputap_ringbuf::event::LaunchEvent;
use std::collections::HashMap;

/// Launches that can be open at a time; later ones are counted.
pub const MAX_OPEN: usize = 1 << 16;
/// Ends that wait for their launch to be read.
const MAX_EARLY: usize = 1 << 16;
/// Rows shown, the oldest.
pub const MAX_ROWS: usize = 32;
/// An uncertain launch is given up once something has ended that was launched so much later, and after the loss.
const PASSED_BY_NS: u64 = 10_000_000_000;
/// How often the uncertain ones are looked through.
const LOOK_EVERY_NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Launches {
    /// Launches come, or are to come: else ends need not be remembered.
    expected: bool,
    /// By correlation id.
    open: HashMap<u64, LaunchEvent>,
    ended_early: Early<u64, ()>,
    graph_runs: GraphRuns,
    /// Ids up to this one may have ended and been forgotten before their launch was read.
    forgotten_up_to: u64,
    /// Open launches from before this time may have lost their record.
    doubt_before_ns: u64,
    /// The latest launch whose work has ended.
    passed_ns: u64,
    looked_ns: u64,
    launches: u64,
    given_up: u64,
    not_tracked: u64,
}

impl Default for Launches {
    fn default() -> Launches {
        Launches {
            expected: false,
            open: HashMap::new(),
            ended_early: Early::new(MAX_EARLY),
            graph_runs: GraphRuns::default(),
            forgotten_up_to: 0,
            doubt_before_ns: 0,
            passed_ns: 0,
            looked_ns: 0,
            launches: 0,
            given_up: 0,
            not_tracked: 0,
        }
    }
}

impl Launches {
    /// Launches are asked for: ends that are read before them are to be remembered from now on.
    pub(super) fn expect(&mut self) {
        self.expected = true;
    }

    pub(super) fn launched(&mut self, launch: &LaunchEvent, now: Now) {
        self.expected = true;
        self.launches = self.launches.saturating_add(1);
        if launch.correlation_id != 0 && self.ended_early.take(&launch.correlation_id).is_some() {
            self.passed_ns = self.passed_ns.max(launch.time_ns);
            return;
        }
        self.give_up(now);
        // Without an id its end would not be known for its own.
        if launch.correlation_id == 0 || self.open.len() >= MAX_OPEN {
            self.not_tracked = self.not_tracked.saturating_add(1);
            return;
        }
        self.open.insert(launch.correlation_id, *launch);
    }

    /// Work with this id has ended: `graph_id` as the record has it, 0 for what is no node of a graph.
    pub(super) fn node_ended(&mut self, graph_id: u32, correlation_id: u64) {
        if !self.expected || graph_id == 0 {
            return self.ended(correlation_id);
        }
        let mut runs = std::mem::take(&mut self.graph_runs);
        runs.node_ended(graph_id, correlation_id, |id| self.ended(id));
        self.graph_runs = runs;
    }

    /// All work with this id has ended.
    pub(super) fn ended(&mut self, correlation_id: u64) {
        if !self.expected || correlation_id == 0 {
            return;
        }
        match self.open.remove(&correlation_id) {
            Some(launch) => self.passed_ns = self.passed_ns.max(launch.time_ns),
            None => {
                if let Some((id, ())) = self.ended_early.hold(correlation_id, ()) {
                    self.forgotten_up_to = self.forgotten_up_to.max(id);
                }
            }
        }
    }

    /// A copy or set has ended: a node of a graph, or no launch's.
    pub(super) fn copy_ended(&mut self, graph_id: u32, correlation_id: u64) {
        if graph_id != 0 {
            self.node_ended(graph_id, correlation_id);
        }
    }

    /// Records may have been lost until `now`: those of what is open, too.
    pub(super) fn lost_records(&mut self, now: Now) {
        self.doubt_before_ns = self.doubt_before_ns.max(now.monotonic_ns);
    }

    fn is_uncertain(&self, launch: &LaunchEvent) -> bool {
        launch.time_ns <= self.doubt_before_ns || launch.correlation_id <= self.forgotten_up_to
    }

    /// Once in a while: what is uncertain and has been passed by is not shown for ever.
    fn give_up(&mut self, now: Now) {
        if now.monotonic_ns.saturating_sub(self.looked_ns) < LOOK_EVERY_NS {
            return;
        }
        self.looked_ns = now.monotonic_ns;
        let before = self.open.len();
        let (doubt_before_ns, forgotten_up_to, passed_ns) =
            (self.doubt_before_ns, self.forgotten_up_to, self.passed_ns);
        self.open.retain(|_, launch| {
            let lost_since = launch.time_ns <= doubt_before_ns && passed_ns > doubt_before_ns;
            let is_uncertain = lost_since || launch.correlation_id <= forgotten_up_to;
            !(is_uncertain && passed_ns.saturating_sub(launch.time_ns) >= PASSED_BY_NS)
        });
        self.given_up = self.given_up.saturating_add((before - self.open.len()) as u64);
    }

    /// `name_of` gives a kernel's name by its slot.
    pub(super) fn in_flight(&self, now: Now, name_of: impl Fn(&LaunchEvent) -> String) -> InFlight {
        let mut oldest: Vec<&LaunchEvent> = self.open.values().collect();
        let key = |launch: &&LaunchEvent| (launch.time_ns, launch.correlation_id);
        if oldest.len() > MAX_ROWS {
            oldest.select_nth_unstable_by_key(MAX_ROWS, key);
            oldest.truncate(MAX_ROWS);
        }
        oldest.sort_unstable_by_key(key);
        let row = |launch: &LaunchEvent| InFlightRow {
            name: name_of(launch),
            age_ns: now.monotonic_ns.saturating_sub(launch.time_ns),
            launched_ns: launch.time_ns,
            correlation: launch.correlation_id,
            thread: launch.thread_id,
            context: launch.context_id,
            uncertain: self.is_uncertain(launch),
        };
        InFlight {
            launches: self.launches,
            open: self.open.len() as u64,
            uncertain: self.open.values().filter(|launch| self.is_uncertain(launch)).count() as u64,
            given_up: self.given_up,
            not_tracked: self.not_tracked,
            oldest: oldest.into_iter().map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    const SECOND_NS: u64 = 1_000_000_000;

    fn at(second: u64) -> Now {
        Now { monotonic_ns: second * SECOND_NS, realtime_ns: 0 }
    }

    fn launch(correlation_id: u64, second: u64) -> LaunchEvent {
        LaunchEvent { correlation_id, time_ns: second * SECOND_NS, ..Default::default() }
    }

    fn open(launches: &Launches, now: Now) -> Vec<(u64, u64, bool)> {
        let rows = launches.in_flight(now, |_| String::new()).oldest;
        rows.iter().map(|row| (row.correlation, row.age_ns / SECOND_NS, row.uncertain)).collect()
    }

    #[test]
    fn what_was_launched_and_has_not_ended_is_shown_oldest_first() {
        let mut launches = Launches::default();
        [(5, 1), (3, 2), (4, 3)].iter().for_each(|&(id, second)| launches.launched(&launch(id, second), at(second)));
        launches.ended(3);
        assert_eq!(open(&launches, at(10)), [(5, 9, false), (4, 7, false)]);
        // A graph's further nodes.
        launches.ended(3);
        launches.ended(5);
        launches.ended(5);
        assert_eq!(open(&launches, at(10)), [(4, 7, false)]);
        assert_eq!(launches.in_flight(at(10), |_| String::new()).launches, 3);
    }

    #[test]
    fn a_graph_is_in_flight_until_as_many_nodes_have_ended_as_before() {
        let mut launches = Launches::default();
        (1..=3).for_each(|id| launches.launched(&launch(id, id), at(id)));
        [1, 1, 2, 2, 2].iter().for_each(|&id| launches.node_ended(9, id));
        launches.node_ended(9, 3);
        launches.copy_ended(9, 3);
        assert_eq!(open(&launches, at(10)), [(3, 7, false)]);
        launches.node_ended(9, 3);
        assert_eq!(open(&launches, at(10)), []);
    }

    #[test]
    fn an_end_that_is_read_before_its_launch_counts() {
        let mut launches = Launches::default();
        launches.ended(6);
        launches.launched(&launch(6, 1), at(1));
        assert_eq!(open(&launches, at(2)).len(), 1, "before launches were expected nothing is remembered");
        launches.ended(7);
        launches.launched(&launch(7, 2), at(2));
        // Copies are nobody's launch, and would fill the memory of early ends; but for those in graphs.
        launches.copy_ended(0, 8);
        launches.launched(&launch(8, 2), at(2));
        launches.copy_ended(1, 6);
        assert_eq!(open(&launches, at(2)), [(8, 0, false)]);
    }

    #[test]
    fn a_launch_is_uncertain_after_loss_and_given_up_once_the_work_has_gone_on() {
        let mut launches = Launches::default();
        launches.launched(&launch(1, 1), at(1));
        launches.lost_records(at(2));
        launches.launched(&launch(2, 3), at(3));
        assert_eq!(open(&launches, at(60)), [(1, 59, true), (2, 57, false)]);
        // Nothing has ended since: it may be what everybody waits for.
        launches.launched(&launch(3, 100), at(100));
        assert_eq!(open(&launches, at(100)).len(), 3);
        launches.ended(3);
        launches.launched(&launch(4, 102), at(102));
        let left = launches.in_flight(at(102), |_| String::new());
        assert_eq!((open(&launches, at(102)), left.given_up), (vec![(2, 99, false), (4, 0, false)], 1));
    }

    #[test]
    fn more_than_there_is_room_for_are_counted() {
        let mut launches = Launches::default();
        let extra = 5;
        (1..=MAX_OPEN as u64 + extra).for_each(|id| launches.launched(&launch(id, 1), at(1)));
        launches.launched(&launch(0, 1), at(1));
        let seen = launches.in_flight(at(1), |_| String::new());
        assert_eq!((seen.open, seen.not_tracked, seen.oldest.len()), (MAX_OPEN as u64, extra + 1, MAX_ROWS));
    }

    #[test]
    fn an_end_that_had_to_be_forgotten_makes_its_launch_uncertain() {
        let mut launches = Launches::default();
        launches.expect();
        (1..=MAX_EARLY as u64 + 2).for_each(|id| launches.ended(id));
        (1..=4).for_each(|id| launches.launched(&launch(id, 1), at(1)));
        assert_eq!(open(&launches, at(1)), [(1, 0, true), (2, 0, true)]);
    }

    proptest! {
        /// Without loss, whatever the order, what is open is what was launched less what ended.
        #[test]
        fn nothing_is_open_that_has_ended(steps in proptest::collection::vec((1u64..40, any::<bool>()), 0..300)) {
            let mut launches = Launches::default();
            launches.expect();
            let (mut launched, mut ended) = (HashSet::new(), HashSet::new());
            for (id, is_launch) in steps {
                if !is_launch {
                    launches.ended(id);
                    ended.insert(id);
                } else if launched.insert(id) {
                    launches.launched(&launch(id, 1), at(1));
                }
            }
            let open: HashSet<u64> = launches.open.keys().copied().collect();
            prop_assert_eq!(open, &launched - &ended);
        }

        #[test]
        fn no_launch_breaks_it(words in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), 0u8..4), 0..50)) {
            let mut launches = Launches::default();
            for (correlation_id, time_ns, now_ns, what) in words {
                let now = Now { monotonic_ns: now_ns, realtime_ns: 0 };
                match what {
                    0 => launches.ended(correlation_id),
                    1 => launches.lost_records(now),
                    _ => launches.launched(&LaunchEvent { correlation_id, time_ns, ..Default::default() }, now),
                }
                let seen = launches.in_flight(now, |_| String::new());
                prop_assert!(seen.uncertain <= seen.open && seen.oldest.len() <= MAX_ROWS);
            }
        }
    }
}
