//! Which calls led to which work: only what has both ends is worth an arrow.

use crate::times::Span;
use gputap_recording::{Block, Recorded};
use gputap_ringbuf::event::{Event, EventKind};
use std::collections::HashMap;

const WORK: u64 = EventKind::Kernel.bit() | EventKind::Memcpy.bit() | EventKind::Memset.bit() | EventKind::Graph.bit();
const API: u64 = EventKind::Runtime.bit() | EventKind::Driver.bit();
/// Ids are given out in turn, so a page of 8 KiB is for 65,536 of them: 268 million in all. Beyond, no arrows.
const PAGES_MAX: usize = 1 << 12;

/// Correlation ids, a bit each.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    pages: HashMap<u64, Box<[u64; 1024]>>,
}

impl Ids {
    fn insert(&mut self, id: u64) {
        let full = self.pages.len() >= PAGES_MAX;
        if full && !self.pages.contains_key(&(id >> 16)) {
            return;
        }
        let page = self.pages.entry(id >> 16).or_insert_with(|| Box::new([0; 1024]));
        page[(id as usize >> 6) & 1023] |= 1 << (id & 63);
    }

    /// Whether `id` was there; it is not any more.
    pub fn take(&mut self, id: u64) -> bool {
        let Some(word) = self.pages.get_mut(&(id >> 16)).map(|page| &mut page[(id as usize >> 6) & 1023]) else {
            return false;
        };
        let had = *word >> (id & 63) & 1 == 1;
        *word &= !(1 << (id & 63));
        had
    }

    fn keep_common(&mut self, other: &Ids) {
        self.pages.retain(|number, page| match other.pages.get(number) {
            Some(also) => {
                page.iter_mut().zip(also.iter()).for_each(|(word, other)| *word &= other);
                true
            }
            None => false,
        });
    }
}

/// The ids that have a call and work, to be taken once at each end: a graph's launch leads to the first of its nodes.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// Whether calls are launches, or else calls of the API.
    pub from_launches: bool,
    pub calls: Ids,
    pub work: Ids,
}

impl Flows {
    /// Reads the recording once for the calls, and if there are any, once for the work.
    pub fn find(recorded: &Recorded, prefer_launches: bool) -> Flows {
        let order = if prefer_launches { [EventKind::Launch.bit(), API] } else { [API, EventKind::Launch.bit()] };
        for kinds in order {
            let mut calls = ids(recorded, kinds);
            if !calls.pages.is_empty() {
                calls.keep_common(&ids(recorded, WORK));
                return Flows { from_launches: kinds & API == 0, work: calls.clone(), calls };
            }
        }
        Flows::default()
    }

    pub fn take_call(&mut self, event: &Event) -> Option<u64> {
        let is_launch = matches!(event, Event::Launch(_));
        let id = correlation_id(event)?;
        (is_launch == self.from_launches && self.calls.take(id)).then_some(id)
    }

    pub fn take_work(&mut self, event: &Event) -> Option<u64> {
        let id = correlation_id(event)?;
        self.work.take(id).then_some(id)
    }
}

fn ids(recorded: &Recorded, kinds: u64) -> Ids {
    let mut ids = Ids::default();
    let mut stream = recorded.stream(kinds);
    while let Some(block) = stream.next_block() {
        let Block::Events(events) = block else { continue };
        let drawn = events.iter().filter(|event| Span::of(event).is_some());
        drawn.filter_map(correlation_id).for_each(|id| ids.insert(id));
    }
    ids
}

/// None where CUPTI gave none.
pub fn correlation_id(event: &Event) -> Option<u64> {
    let id = match event {
        Event::Kernel(kernel) => kernel.correlation_id,
        Event::Memcpy(copy) => copy.correlation_id,
        Event::Memset(memset) => memset.correlation_id,
        Event::Graph(graph) => graph.correlation_id,
        Event::Runtime(call) | Event::Driver(call) => call.correlation_id,
        Event::Launch(launch) => launch.correlation_id,
        Event::Sync(sync) => sync.correlation_id,
        Event::Memory(memory) => memory.correlation_id,
        Event::Pool(pool) => pool.correlation_id,
        Event::Overhead(_) | Event::Marker(_) => 0,
    };
    (id != 0).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_once() {
        let (mut calls, mut work) = (Ids::default(), Ids::default());
        [1, 2, 65_536, 1 << 32 | 5].iter().for_each(|&id| calls.insert(id));
        [2, 65_536, 65_537, 1 << 40].iter().for_each(|&id| work.insert(id));
        calls.keep_common(&work);
        let taken: Vec<u64> = [1, 2, 2, 65_536, 65_537, 1 << 32 | 5].into_iter().filter(|&id| calls.take(id)).collect();
        assert_eq!(taken, [2, 65_536]);
    }

    #[test]
    fn ids_of_a_hostile_recording_take_no_more_memory() {
        let mut ids = Ids::default();
        (0..2 * PAGES_MAX as u64).for_each(|page| ids.insert(page << 16));
        assert_eq!(ids.pages.len(), PAGES_MAX);
        assert!(ids.take(0) && !ids.take((2 * PAGES_MAX as u64 - 1) << 16));
    }
}
