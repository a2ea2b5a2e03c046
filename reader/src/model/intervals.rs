//! The union of many intervals, in bounded memory.

/// Intervals held before they are merged.
const CAPACITY: usize = 1 << 15;

/// Half-open intervals of one second's nanoseconds, in any order, overlapping or not.
///
/// Exact up to [`CAPACITY`]/2 disjoint intervals. Beyond that the smallest gaps are closed, so that the union is
/// overstated by at most their sum.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals {
    held: Vec<(u32, u32)>,
}

impl Intervals {
    /// Adds `start..end`; an empty or reversed one adds nothing.
    pub(super) fn add(&mut self, start: u32, end: u32) {
        if start >= end {
            return;
        }
        // Records mostly come in order, and back to back: the common case needs no new entry.
        if let Some((last_start, last_end)) = self.held.last_mut()
            && *last_start <= start
            && start <= *last_end
        {
            *last_end = end.max(*last_end);
            return;
        }
        if self.held.len() >= CAPACITY {
            self.compact();
        }
        self.held.push((start, end));
    }

    pub(super) fn extend(&mut self, other: &Intervals) {
        for &(start, end) in &other.held {
            self.add(start, end);
        }
    }

    /// The length of the union.
    pub(super) fn covered(&self) -> u64 {
        let mut sorted = self.held.clone();
        merge(&mut sorted, 0);
        sorted.iter().map(|&(start, end)| u64::from(end - start)).sum()
    }

    fn compact(&mut self) {
        let mut gap = 0;
        merge(&mut self.held, gap);
        while self.held.len() > CAPACITY / 2 {
            gap = if gap == 0 { 1 } else { gap * 2 };
            merge(&mut self.held, gap);
        }
    }
}

/// Sorts, and joins neighbours that touch or lie at most `gap` apart.
fn merge(held: &mut Vec<(u32, u32)>, gap: u32) {
    held.sort_unstable();
    held.dedup_by(|next, previous| {
        let joins = next.0 <= previous.1.saturating_add(gap);
        if joins {
            previous.1 = previous.1.max(next.1);
        }
        joins
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(pairs: &[(u32, u32)]) -> u64 {
        let mut covered = vec![false; 1000];
        for &(start, end) in pairs {
            covered.iter_mut().take(end as usize).skip(start as usize).for_each(|c| *c = true);
        }
        covered.iter().filter(|c| **c).count() as u64
    }

    proptest! {
        #[test]
        fn the_union_is_what_counting_gives(pairs in proptest::collection::vec((0u32..1000, 0u32..1000), 0..60), cut in 0usize..60) {
            let mut first = Intervals::default();
            let mut second = Intervals::default();
            for (i, &(start, end)) in pairs.iter().enumerate() {
                if i < cut { first.add(start, end) } else { second.add(start, end) }
            }
            first.extend(&second);
            prop_assert_eq!(first.covered(), naive(&pairs));
            first.compact();
            prop_assert_eq!(first.covered(), naive(&pairs));
        }
    }

    #[test]
    fn too_many_are_joined_over_the_smallest_gaps() {
        let mut intervals = Intervals::default();
        for i in 0..1_000_000u32 {
            intervals.add(i * 1000, i * 1000 + 500 + i % 490);
        }
        assert!(intervals.held.len() <= CAPACITY);
        let exact: u64 = (0..1_000_000u64).map(|i| 500 + i % 490).sum();
        let covered = intervals.covered();
        assert!(covered >= exact && covered <= 1_000_000_000, "{covered} of {exact}");
    }

    #[test]
    fn up_to_half_the_capacity_is_exact() {
        let mut intervals = Intervals::default();
        let disjoint = u32::try_from(CAPACITY / 2).expect("fits");
        for round in 0..4 {
            for i in 0..disjoint {
                intervals.add(i * 10 + round, i * 10 + round + 1);
            }
        }
        assert_eq!(intervals.covered(), u64::from(disjoint) * 4);
    }
}
