//! Several taps, followed at a time: they come and go, and one of them is looked at.

use std::time::{Duration, Instant};

use gputap_reader::model::snapshot::Snapshot;
use gputap_reader::model::timeline::{Stretch, Timeline};

use super::{Peer, Source, Standing};
use crate::error::Result;

/// Followed at a time. For more, those that have ended make room; a host has no more GPUs than this.
const FOLLOWED_MAX: usize = 64;
/// Of those that have ended, so many are kept: their segments take memory.
const ENDED_MAX: usize = 16;
/// A step of all of them takes about so long: keys wait for it.
const STEP_MAX: Duration = Duration::from_millis(30);

struct Followed {
    key: u64,
    standing: Standing,
    source: Box<dyn Source>,
}

/// Never more than [`FOLLOWED_MAX`].
#[derive(Default)]
pub struct Several {
    followed: Vec<Followed>,
    /// Which one is looked at.
    at: usize,
    /// Which one comes first in the next step, so that a busy one does not starve the others.
    first: usize,
    /// A person chose the one that is looked at: it stays, ended or not.
    is_chosen: bool,
    next_key: u64,
}

impl Several {
    /// Follows one more; false where there is no room.
    pub fn follow(&mut self, source: Box<dyn Source>, standing: Standing) -> bool {
        let ended = self.followed.iter().filter(|one| one.source.ended()).count();
        if ended > ENDED_MAX {
            self.drop_an_ended_one();
        }
        if self.followed.len() >= FOLLOWED_MAX && !self.drop_an_ended_one() {
            return false;
        }
        self.next_key += 1;
        self.followed.push(Followed { key: self.next_key, standing, source });
        let looked_at_has_ended = self.current().is_none_or(|current| current.ended());
        if looked_at_has_ended && !self.is_chosen {
            self.at = self.followed.len() - 1;
        }
        true
    }

    pub fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    pub fn all_ended(&self) -> bool {
        self.followed.iter().all(|one| one.source.ended())
    }

    fn current(&self) -> Option<&dyn Source> {
        self.followed.get(self.at).map(|one| &*one.source)
    }

    fn current_mut(&mut self) -> Option<&mut Followed> {
        self.followed.get_mut(self.at)
    }

    fn drop_an_ended_one(&mut self) -> bool {
        let at = self.at;
        let Some(ended) = (0..self.followed.len()).find(|&place| place != at && self.followed[place].source.ended())
        else {
            return false;
        };
        self.followed.remove(ended).source.discard();
        self.at -= usize::from(ended < self.at);
        true
    }
}

impl Source for Several {
    fn step(&mut self) -> Result<bool> {
        let until = Instant::now() + STEP_MAX;
        let count = self.followed.len();
        let mut more = false;
        for turn in 0..count {
            let place = (self.first + turn) % count;
            more |= self.followed[place].source.step()?;
            if Instant::now() >= until && turn + 1 < count {
                self.first = (place + 1) % count;
                return Ok(true);
            }
        }
        self.first = if count == 0 { 0 } else { (self.first + 1) % count };
        Ok(more)
    }

    fn snapshot(&mut self) -> Snapshot {
        self.current_mut().map(|one| one.source.snapshot()).unwrap_or_default()
    }

    fn ended(&self) -> bool {
        self.all_ended()
    }

    fn pending_checksums(&self) -> usize {
        self.followed.iter().map(|one| one.source.pending_checksums()).sum()
    }

    fn finish(&mut self) -> Result<()> {
        self.followed.iter_mut().try_for_each(|one| one.source.finish())
    }

    fn discard(&mut self) {
        self.followed.iter_mut().for_each(|one| one.source.discard());
    }

    fn timeline(&mut self, stretch: Stretch) -> Timeline {
        self.current_mut().map(|one| one.source.timeline(stretch)).unwrap_or_default()
    }

    fn step_ns(&mut self) -> Option<u64> {
        self.current_mut().and_then(|one| one.source.step_ns())
    }

    /// In the order of their ranks, then as they came.
    fn peers(&mut self) -> Vec<Peer> {
        let shown = self.at;
        let peer = |(place, one): (usize, &mut Followed)| {
            let (snapshot, step_ns) = (one.source.snapshot(), one.source.step_ns());
            Peer { is_shown: place == shown, ..Peer::new(one.key, one.standing.clone(), &snapshot, step_ns) }
        };
        let mut peers: Vec<Peer> = self.followed.iter_mut().enumerate().map(peer).collect();
        peers.sort_by_key(|peer| (peer.standing.rank.is_none(), peer.standing.rank, peer.key));
        peers
    }

    fn peer_count(&self) -> usize {
        self.followed.len()
    }

    fn look_at(&mut self, key: u64) {
        if let Some(at) = self.followed.iter().position(|one| one.key == key) {
            self.at = at;
            self.is_chosen = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use gputap_reader::model::snapshot::Target;

    use super::*;

    /// A tap that ends when it is told to.
    struct Fake {
        pid: u32,
        ended: Rc<Cell<bool>>,
        steps: Rc<Cell<u32>>,
    }

    impl Source for Fake {
        fn step(&mut self) -> Result<bool> {
            self.steps.set(self.steps.get() + 1);
            Ok(false)
        }

        fn snapshot(&mut self) -> Snapshot {
            Snapshot { target: Target { pid: self.pid, ..Target::default() }, ..Snapshot::default() }
        }

        fn ended(&self) -> bool {
            self.ended.get()
        }

        fn pending_checksums(&self) -> usize {
            0
        }

        fn finish(&mut self) -> Result<()> {
            Ok(())
        }

        fn discard(&mut self) {}
    }

    fn follow(several: &mut Several, pid: u32, rank: Option<u32>) -> (Rc<Cell<bool>>, Rc<Cell<u32>>) {
        let (ended, steps) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        let fake = Fake { pid, ended: ended.clone(), steps: steps.clone() };
        several.follow(Box::new(fake), Standing { rank, ..Standing::default() });
        (ended, steps)
    }

    fn shown(several: &mut Several) -> u32 {
        several.snapshot().target.pid
    }

    #[test]
    fn all_are_stepped_and_listed_by_rank() {
        let mut several = Several::default();
        let steps: Vec<_> =
            [(10, None), (11, Some(1)), (12, Some(0))].map(|(pid, rank)| follow(&mut several, pid, rank).1).into();
        several.step().unwrap();
        assert!(steps.iter().all(|steps| steps.get() == 1));
        let order: Vec<_> = several.peers().iter().map(|peer| (peer.pid, peer.is_shown)).collect();
        assert_eq!(order, [(12, false), (11, false), (10, true)]);
    }

    #[test]
    fn one_that_has_ended_gives_way_to_a_new_one_unless_a_person_chose_it() {
        let mut several = Several::default();
        let (first_ended, _) = follow(&mut several, 10, None);
        follow(&mut several, 11, None);
        assert_eq!(shown(&mut several), 10, "it lives");
        first_ended.set(true);
        follow(&mut several, 12, None);
        assert_eq!(shown(&mut several), 12);
        let key = several.peers().iter().find(|peer| peer.pid == 10).unwrap().key;
        several.look_at(key);
        follow(&mut several, 13, None);
        assert_eq!(shown(&mut several), 10);
        assert!(!several.ended());
    }

    #[test]
    fn those_that_have_ended_make_room() {
        let mut several = Several::default();
        let ends: Vec<_> = (0..FOLLOWED_MAX as u32).map(|pid| follow(&mut several, pid, None).0).collect();
        follow(&mut several, 1_000, None);
        assert_eq!(several.peer_count(), FOLLOWED_MAX);
        assert!(several.peers().iter().all(|peer| peer.pid != 1_000), "no room");
        several.look_at(several.followed[9].key);
        ends[3].set(true);
        follow(&mut several, 1_001, None);
        let pids: Vec<_> = several.peers().iter().map(|peer| peer.pid).collect();
        assert!(pids.contains(&1_001) && !pids.contains(&3));
        assert_eq!(shown(&mut several), 9, "who is looked at stays");
    }
}
