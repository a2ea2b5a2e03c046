//! When a graph's launch has ended, where its nodes are recorded one by one.
//!
//! Nothing says how many records are to come. But launches of a graph follow each other, and mostly have as many nodes as
//! the one before: a launch has ended when so many have, or when the next one has begun. As long as that number is not
//! known, or where it varies (conditional nodes), the first node counts for all.

use std::collections::HashMap;

/// Graphs told apart.
const MAX_GRAPHS: usize = 4096;
/// After so many launches with another number than expected nothing is expected any more.
const MAX_SURPRISES: u8 = 3;

#[derive(Debug, Default)]
pub(super) struct GraphRuns {
    by_graph: HashMap<u32, Run>,
}

/// The launch of a graph that has nodes ending now.
#[derive(Debug, Default)]
struct Run {
    correlation_id: u64,
    nodes: u64,
    /// As many as the launch before had.
    expected: Option<u64>,
    surprises: u8,
    /// Seen from its first node on, unlike the one that ran when the reader came.
    is_whole: bool,
}

impl GraphRuns {
    /// A node of a launch has ended: tells `ended` each launch that has ended with it, some more than once.
    pub(super) fn node_ended(&mut self, graph_id: u32, correlation_id: u64, mut ended: impl FnMut(u64)) {
        if !self.by_graph.contains_key(&graph_id) && self.by_graph.len() >= MAX_GRAPHS {
            return ended(correlation_id);
        }
        let run = self.by_graph.entry(graph_id).or_default();
        if correlation_id > run.correlation_id {
            ended(run.correlation_id);
            run.begin(correlation_id);
        }
        // One of a launch that the next has followed is late.
        run.nodes += u64::from(correlation_id == run.correlation_id);
        if correlation_id < run.correlation_id || run.expected.is_none_or(|expected| run.nodes >= expected) {
            ended(correlation_id);
        }
    }
}

impl Run {
    fn begin(&mut self, correlation_id: u64) {
        let is_surprise = self.expected.is_some_and(|expected| expected != self.nodes);
        self.surprises = self.surprises.saturating_add(u8::from(is_surprise));
        let is_expected = self.is_whole && !is_surprise && self.surprises < MAX_SURPRISES;
        self.expected = is_expected.then_some(self.nodes);
        self.is_whole = self.correlation_id != 0;
        (self.correlation_id, self.nodes) = (correlation_id, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After each node of the launches with so many, whether the launch had ended.
    fn ended_after(runs: &mut GraphRuns, launch: u64, nodes: usize) -> Vec<bool> {
        let mut has_ended = false;
        let node = |_| {
            runs.node_ended(7, launch, |id| has_ended |= id == launch);
            has_ended
        };
        (0..nodes).map(node).collect()
    }

    #[test]
    fn a_launch_has_ended_with_as_many_nodes_as_the_one_before_had() {
        let mut runs = GraphRuns::default();
        // The reader came in the midst of the first.
        assert_eq!(ended_after(&mut runs, 1, 2), [true; 2]);
        assert_eq!(ended_after(&mut runs, 2, 3), [true; 3]);
        assert_eq!(ended_after(&mut runs, 3, 3), [false, false, true]);
        // The next launch says that this one has ended, and its own nodes are counted from 1.
        assert_eq!(ended_after(&mut runs, 4, 2), [false; 2]);
        let mut followed = Vec::new();
        runs.node_ended(7, 5, |id| followed.push(id));
        assert_eq!(followed, [4, 5], "it surprised, so that nothing is expected of 5");
        runs.node_ended(7, 4, |id| followed.push(id));
        assert_eq!(followed, [4, 5, 4], "a late node says no more");
    }

    #[test]
    fn where_the_number_varies_the_first_node_counts() {
        let mut runs = GraphRuns::default();
        let waits = |runs: &mut GraphRuns, launch| !ended_after(runs, launch, 2 + launch as usize % 3)[0];
        let mut waiting = |launches: std::ops::Range<u64>| launches.filter(|&launch| waits(&mut runs, launch)).count();
        assert_eq!((waiting(1..20), waiting(20..40)), (MAX_SURPRISES.into(), 0));
    }

    #[test]
    fn graphs_beyond_the_room_end_with_their_first_node() {
        let mut runs = GraphRuns::default();
        for graph_id in 1..=MAX_GRAPHS as u32 + 5 {
            let mut ended = 0;
            (1..=3).for_each(|launch| runs.node_ended(graph_id, launch, |_| ended += 1));
            assert!(ended >= 3);
        }
        assert_eq!(runs.by_graph.len(), MAX_GRAPHS);
    }
}
