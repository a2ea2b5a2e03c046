//! Draining the lanes, fairly and in bounded portions.

use super::names::Names;
use super::sink::Guarded;
use crate::clock::Now;
use crate::model::Model;
use gputap_ringbuf::attach::Attached;
use gputap_ringbuf::event::{Event, NO_NAME};
use gputap_ringbuf::lane::reader::{Drained, LaneReader, Record};
use gputap_ringbuf::words::MappedWords;

/// Records read in one step, beyond one chunk a lane: a fast writer cannot keep a step from ending.
pub(super) const STEP_MAX_RECORDS: u64 = 128 * 1024;
/// The least that a lane gets in its turn.
const LANE_MIN_RECORDS: u64 = 1024;

/// What became of the records of a lane, or of all: every one that was written is in one of these, or still in a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Decoded and counted by the model.
    pub delivered: u64,
    /// Read whole, but of a kind or length that this version does not know.
    pub undecodable: u64,
    /// What the lanes' readers say of what they read and missed.
    pub drained: Drained,
}

/// All lanes of a tap. A lane gets a reader when it is first used.
pub(super) struct Lanes {
    readers: Vec<Option<LaneReader<MappedWords>>>,
    /// The lane that comes first in the next step.
    first: usize,
    pub tally: Tally,
}

impl Lanes {
    pub fn new(attached: &Attached) -> Lanes {
        let readers = (0..attached.lane_count()).map(|_| None).collect();
        Lanes { readers, first: 0, tally: Tally::default() }
    }

    /// Reads what the lanes hold, up to [`STEP_MAX_RECORDS`]; true where there is more.
    pub fn step(
        &mut self,
        attached: &Attached,
        names: &mut Names,
        model: &mut Model,
        now: Now,
        sink: &mut Guarded<'_>,
    ) -> bool {
        let used: Vec<usize> = (0..self.readers.len()).filter(|&lane| attached.lane_is_used(lane)).collect();
        if used.is_empty() {
            return false;
        }
        self.first = (self.first + 1) % used.len();
        let mut budget = STEP_MAX_RECORDS;
        let mut more = false;
        for turn in 0..used.len() {
            let lane = used[(self.first + turn) % used.len()];
            let share = budget / (used.len() - turn) as u64;
            let reader = self.readers[lane].get_or_insert_with(|| attached.lane(lane));
            let tally = &mut self.tally;
            let drained = reader.drain(share.max(LANE_MIN_RECORDS), |record| {
                deliver(&record, tally, names, model, now, sink);
            });
            tally.drained += drained;
            budget = budget.saturating_sub(drained.delivered);
            more |= drained.more;
        }
        more
    }
}

fn deliver(
    record: &Record<'_>,
    tally: &mut Tally,
    names: &mut Names,
    model: &mut Model,
    now: Now,
    sink: &mut Guarded<'_>,
) {
    let Ok(event) = Event::decode(record.kind, record.words) else {
        tally.undecodable += 1;
        return;
    };
    for slot in event.names().into_iter().filter(|slot| *slot != NO_NAME) {
        names.look_up(slot, model, sink);
    }
    tally.delivered += 1;
    model.event(&event, now);
    sink.put(|sink| sink.event(&event));
}
