//! Ways to break the protocol through the same view: a storm over a broken protocol has to fail.

use gputap_ringbuf::{
    lane::header::{INTENT, TAIL},
    store::READY,
};

use super::points::{Part, Point};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// INTENT moves with TAIL, when the words before it are written already.
    LateIntent = 1,
    /// TAIL moves with INTENT, when the words before it are not written yet.
    EarlyTail = 2,
    /// A lane left inside a write is taken over as it is.
    NoRepair = 3,
    /// An entry is shown when its room is taken.
    EarlyReady = 4,
}

impl Sabotage {
    pub const ALL: [Sabotage; 4] =
        [Sabotage::LateIntent, Sabotage::EarlyTail, Sabotage::NoRepair, Sabotage::EarlyReady];

    pub fn name(self) -> &'static str {
        match self {
            Sabotage::LateIntent => "late-intent",
            Sabotage::EarlyTail => "early-tail",
            Sabotage::NoRepair => "no-repair",
            Sabotage::EarlyReady => "early-ready",
        }
    }

    pub fn from_number(number: u64) -> Option<Sabotage> {
        Sabotage::ALL.into_iter().find(|s| *s as u64 == number)
    }

    /// The stores that take the place of the one of `value` to word `index` at `point`; `None` where it stays.
    /// Allocates nothing: the thread may be ended at any instruction.
    pub fn instead(self, point: &Point, index: usize, value: u64) -> Option<[Option<(usize, u64)>; 2]> {
        let is = |text: &str| point.code.contains(text);
        let both = [Some((INTENT, value)), Some((TAIL, value))];
        match self {
            Sabotage::LateIntent if is(".store(header::INTENT,") => Some([None, None]),
            Sabotage::LateIntent if is(".store(header::TAIL,") => Some(both),
            Sabotage::EarlyTail if is(".store(header::INTENT,") => Some(both),
            Sabotage::NoRepair if point.part == Part::Mending => Some([None, None]),
            Sabotage::EarlyReady if is("slot::STATE, RESERVED") => Some([Some((index, READY)), None]),
            _ => None,
        }
    }
}
