//! Events in the order of their starts, from a recording that has them nearly so.

use crate::times::Span;
use gputap_ringbuf::event::Event;

/// An event comes out in order if no more than this many that begin after it were recorded before it. CUPTI hands over whole
/// buffers, of some thousand records each, and a recorder writes batches of 4,096 of a kind: 16 of these may be out of
/// place. What is later still is given at once, after events that it should precede, and counted.
pub const WINDOW: usize = 1 << 16;

/// Holds at most two windows of events, whatever the length of the recording.
#[derive(Debug, Default)]
pub struct Reorder {
    waiting: Vec<(Span, Event)>,
    rest: Vec<(Span, Event)>,
    order: Vec<(u64, u64, u32)>,
    given_ns: u64,
    late: u64,
}

impl Reorder {
    pub fn push(&mut self, span: Span, event: &Event) {
        self.late += u64::from(span.start_ns < self.given_ns);
        self.waiting.push((span, *event));
    }

    /// Nothing can be pushed before [`Reorder::give`].
    pub fn is_full(&self) -> bool {
        self.waiting.len() >= 2 * WINDOW
    }

    /// Gives the earlier half, or all.
    pub fn give<E>(&mut self, all: bool, mut take: impl FnMut(Span, &Event) -> Result<(), E>) -> Result<(), E> {
        let count = if all { self.waiting.len() } else { self.waiting.len() / 2 };
        self.order.clear();
        // Of two that begin at once the longer comes first: it may enclose the other.
        self.order.extend((0..).zip(&self.waiting).map(|(at, (span, _))| (span.start_ns, !span.end_ns, at)));
        self.order.sort_unstable();
        for &(start_ns, _, at) in &self.order[..count] {
            let (span, event) = &self.waiting[at as usize];
            take(*span, event)?;
            self.given_ns = self.given_ns.max(start_ns);
        }
        self.rest.clear();
        self.rest.extend(self.order[count..].iter().map(|&(_, _, at)| self.waiting[at as usize]));
        std::mem::swap(&mut self.rest, &mut self.waiting);
        Ok(())
    }

    /// How many came too late for their place.
    pub fn late(&self) -> u64 {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gputap_ringbuf::event::KernelEvent;

    fn pass(starts: impl Iterator<Item = u64>) -> (Vec<u64>, u64) {
        let mut reorder = Reorder::default();
        let mut given = Vec::new();
        let mut take = |span: Span, _: &Event| -> Result<(), ()> {
            given.push(span.start_ns);
            Ok(())
        };
        for start_ns in starts {
            if reorder.is_full() {
                reorder.give(false, &mut take).unwrap();
            }
            reorder.push(Span { start_ns, end_ns: start_ns + 1 }, &Event::Kernel(KernelEvent::default()));
        }
        reorder.give(true, &mut take).unwrap();
        (given, reorder.late())
    }

    #[test]
    fn what_is_displaced_by_a_window_comes_out_in_order() {
        let events = 5 * WINDOW as u64;
        // Each window backwards.
        let starts =
            (0..events).map(|at| (at / WINDOW as u64) * WINDOW as u64 + (WINDOW as u64 - 1 - at % WINDOW as u64));
        let (given, late) = pass(starts);
        assert!(given.iter().copied().eq(0..events), "all of them, in order");
        assert_eq!(late, 0);
    }

    #[test]
    fn what_is_later_is_given_and_counted() {
        let events = 3 * WINDOW as u64;
        let (given, late) = pass((10..events).chain([1]));
        assert_eq!(given.len() as u64, events - 9);
        assert_eq!(late, 1);
        assert!(given.contains(&1));
    }
}
