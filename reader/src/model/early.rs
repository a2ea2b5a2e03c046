//! What has come before that which it belongs to: lanes have no order between them.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Held by key, at most so many; the oldest give way to newer ones.
#[derive(Debug)]
pub(super) struct Early<K, V> {
    most: usize,
    held: HashMap<K, V>,
    /// Keys in the order in which they came, some of them taken since.
    order: VecDeque<K>,
}

impl<K: Copy + Eq + Hash, V> Early<K, V> {
    pub(super) fn new(most: usize) -> Early<K, V> {
        Early { most, held: HashMap::new(), order: VecDeque::new() }
    }

    /// Holds it, in place of one with the same key; gives the one that had to give way.
    pub(super) fn hold(&mut self, key: K, value: V) -> Option<(K, V)> {
        if self.held.insert(key, value).is_some() {
            return None;
        }
        self.order.push_back(key);
        // One came, so at most one is too many; it may have been taken.
        let oldest = (self.order.len() > self.most).then(|| self.order.pop_front()).flatten()?;
        self.held.remove(&oldest).map(|value| (oldest, value))
    }

    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        self.held.remove(key)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.held.len().max(self.order.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_oldest_gives_way() {
        let mut early = Early::new(2);
        assert_eq!((early.hold(1, 'a'), early.hold(2, 'b'), early.hold(1, 'c')), (None, None, None));
        assert_eq!(early.take(&1), Some('c'));
        assert_eq!((early.hold(3, 'd'), early.hold(4, 'e')), (None, Some((2, 'b'))));
        assert_eq!((early.take(&2), early.take(&3), early.take(&4)), (None, Some('d'), Some('e')));
    }

    proptest! {
        #[test]
        fn it_never_holds_more_than_it_may(steps in proptest::collection::vec((any::<bool>(), 0u8..20), 0..400)) {
            let mut early = Early::new(5);
            for (holds, key) in steps {
                if holds { early.hold(key, ()); } else { early.take(&key); }
                prop_assert!(early.len() <= 5, "{early:?}");
            }
        }
    }
}
