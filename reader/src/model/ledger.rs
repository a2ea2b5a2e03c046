//! Where every record went: attempted = delivered + lost by reason + pending.

use super::snapshot::{Counts, Lost};

/// Reasons that the reader itself finds. The shim's own reasons keep the names that the shared memory gives them.
pub mod reason {
    /// The lane's writer lapped this reader after it attached.
    pub const OVERWRITTEN: &str = "overwritten";
    /// Gone from the lanes before this reader attached.
    pub const BEFORE_ATTACH: &str = "before_attach";
    /// Read, but of a kind or length that this version cannot decode.
    pub const UNDECODABLE: &str = "undecodable";
    /// Mangled: a broken writer's, never our shim's.
    pub const UNREADABLE: &str = "unreadable";
    /// Begun by a thread that ended in the middle.
    pub const ABANDONED: &str = "abandoned";
    /// In a buffer that was thrown away, because CUPTI held all that there are.
    pub const POOL_EMPTY: &str = "pool_empty";
    /// In a segment that somebody truncated before it was read.
    pub const CUT: &str = "cut";
    /// Counted by the shim, but never finished: the process ended in the middle.
    pub const UNFINISHED: &str = "unfinished";
}

/// The figures of both sides at one instant; the shim's were read after the reader's.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Records that reached the shim, by its own count.
    pub attempted: u64,
    /// Decoded and handed to the model.
    pub delivered: u64,
    pub overwritten: u64,
    pub before_attach: u64,
    pub undecodable: u64,
    pub unreadable: u64,
    pub abandoned: u64,
    /// What the shim lost itself, by its name for the reason.
    pub lost_by_shim: Vec<(&'static str, u64)>,
    /// The target has ended and the lanes have been drained for the last time.
    pub ended: bool,
    /// The segment was truncated: what the shim counted after that is unknown.
    pub cut: bool,
    /// CUPTI may have held records that never reached the shim: the target ended without a last flush.
    pub held_by_cupti_unknown: bool,
    /// CUPTI had to be given a buffer that is thrown away: how many records that cost is unknown.
    pub thrown_away_unknown: bool,
}

impl Ledger {
    /// Balances the books. What the shim counted and nobody has seen is pending while the target lives, and lost as
    /// [`reason::UNFINISHED`] once it has ended.
    pub fn balance(&self) -> Counts {
        let mut lost: Vec<Lost> = Vec::new();
        let mut add = |reason: &str, count: u64| {
            if count == 0 {
                return;
            }
            match lost.iter_mut().find(|lost| lost.reason == reason) {
                Some(known) => known.count = known.count.saturating_add(count),
                None => lost.push(Lost { reason: reason.to_owned(), count, unknown: false }),
            }
        };
        self.lost_by_shim.iter().for_each(|&(reason, count)| add(reason, count));
        add(reason::OVERWRITTEN, self.overwritten);
        add(reason::BEFORE_ATTACH, self.before_attach);
        add(reason::UNDECODABLE, self.undecodable);
        add(reason::UNREADABLE, self.unreadable);
        add(reason::ABANDONED, self.abandoned);
        let seen = lost.iter().fold(self.delivered, |sum, lost| sum.saturating_add(lost.count));
        let open = self.attempted.saturating_sub(seen);
        if self.cut {
            lost.push(Lost { reason: reason::CUT.to_owned(), count: open, unknown: true });
        } else if self.ended && open > 0 {
            lost.push(Lost { reason: reason::UNFINISHED.to_owned(), count: open, unknown: false });
        }
        if self.thrown_away_unknown {
            lost.push(Lost { reason: reason::POOL_EMPTY.to_owned(), count: 0, unknown: true });
        }
        if self.held_by_cupti_unknown {
            lost.push(Lost { reason: "held_by_cupti".to_owned(), count: 0, unknown: true });
        }
        lost.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.reason.cmp(&b.reason)));
        Counts {
            // A writer killed between the record and its counter, or a hostile one, may have counted less than was read.
            attempted: self.attempted.max(seen),
            delivered: self.delivered,
            pending: if self.ended || self.cut { 0 } else { open },
            lost,
            ..Counts::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_books_always_balance(
            attempted in 0u64..1 << 40, delivered in 0u64..1 << 40, overwritten in 0u64..1 << 40,
            before_attach in 0u64..1 << 40, undecodable in 0u64..9, unreadable in 0u64..9, abandoned in 0u64..9,
            no_lane in 0u64..9, dropped in 0u64..9,
            ended: bool, cut: bool, held_by_cupti_unknown: bool,
        ) {
            let lost_by_shim = vec![("no_lane", no_lane), ("cupti_dropped", dropped), ("overwritten", no_lane)];
            let ledger = Ledger {
                attempted, delivered, overwritten, before_attach, undecodable, unreadable, abandoned, lost_by_shim, ended, cut,
                held_by_cupti_unknown, thrown_away_unknown: false,
            };
            let counts = ledger.balance();
            let lost: u64 = counts.lost.iter().map(|lost| lost.count).sum();
            prop_assert_eq!(counts.attempted, counts.delivered + lost + counts.pending);
            prop_assert!(counts.attempted >= attempted);
            prop_assert!(!ended || counts.pending == 0);
            let mut reasons: Vec<_> = counts.lost.iter().map(|lost| &lost.reason).collect();
            reasons.sort();
            reasons.dedup();
            prop_assert_eq!(reasons.len(), counts.lost.len());
        }
    }

    #[test]
    fn what_a_killed_writer_left_open_is_lost_not_pending() {
        let mut ledger = Ledger { attempted: 10, delivered: 7, overwritten: 2, ..Default::default() };
        assert_eq!(ledger.balance().pending, 1);
        ledger.ended = true;
        let counts = ledger.balance();
        assert_eq!(counts.pending, 0);
        assert!(counts.lost.iter().any(|lost| lost.reason == reason::UNFINISHED && lost.count == 1));
    }
}
