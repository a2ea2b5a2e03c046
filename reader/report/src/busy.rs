//! How long a device was busy: the union of what ran, read in nearly the order of time.
//!
//! The newest [`HELD_MAX`] spans are held; of them the older half is settled when there is no more room. A span that begins
//! before what was settled has come too late: it counts from there on, and what lies before is told as
//! [`Busied::late_ns`], the most by which the union may be too small. Streams of a recording are written in batches of 4,096
//! events a kind, so that takes a lane whose reader was far behind the others.

/// Spans held until they are settled.
pub const HELD_MAX: usize = 1 << 16;
/// Longest rests kept.
pub const GAPS_MAX: usize = 10;

/// What ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Ran {
    /// Number of the process, and of its kernel, say.
    pub process: u16,
    pub work: Work,
    pub index: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u16)]
pub enum Work {
    /// Nothing of what is reported: the edge of the time asked for.
    #[default]
    Edge,
    Kernel,
    Graph,
    Copy,
    Set,
}

impl Work {
    fn computes(self) -> bool {
        matches!(self, Work::Kernel | Work::Graph)
    }
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start_ns: u64,
    end_ns: u64,
    /// Began first, and ended last.
    first: Ran,
    last: Ran,
}

/// A rest of a device: nothing ran, neither kernel nor copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub start_ns: u64,
    pub end_ns: u64,
    pub before: Ran,
    pub after: Ran,
}

impl Gap {
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

/// The sum of a [`Busy`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busied {
    /// From the first start to the last end, or the time asked for.
    pub window_ns: [u64; 2],
    /// At least one kernel or graph ran.
    pub kernels_ns: u64,
    /// At least one kernel, graph, copy or set ran.
    pub any_ns: u64,
    /// Spans that came too late, and the time by which the two above may be too small.
    pub late: u64,
    pub late_ns: u64,
    /// The longest first.
    pub gaps: Vec<Gap>,
    /// Of all, with those that are not listed.
    pub gap_count: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Union {
    end_ns: u64,
    covered_ns: u64,
}

impl Union {
    fn cover(&mut self, start_ns: u64, end_ns: u64) {
        let from_ns = start_ns.max(self.end_ns);
        if end_ns > from_ns {
            self.covered_ns += end_ns - from_ns;
            self.end_ns = end_ns;
        }
    }
}

/// Adds up what ran on one device.
#[derive(Debug)]
pub struct Busy {
    /// Nothing outside counts.
    limits: Option<[u64; 2]>,
    held: Vec<Span>,
    held_max: usize,
    began_ns: Option<u64>,
    settled_ns: u64,
    kernels: Union,
    any: Union,
    last: Ran,
    late: u64,
    late_ns: u64,
    gaps: Vec<Gap>,
    gap_count: u64,
}

impl Busy {
    /// `limits`: the time asked for, or None for all.
    pub fn new(limits: Option<[u64; 2]>) -> Busy {
        Busy::with_room(limits, HELD_MAX)
    }

    fn with_room(limits: Option<[u64; 2]>, held_max: usize) -> Busy {
        let begin_ns = limits.map_or(0, |[begin, _]| begin);
        let none = Union { end_ns: begin_ns, covered_ns: 0 };
        Busy {
            limits,
            held: Vec::new(),
            held_max,
            began_ns: limits.map(|[begin, _]| begin),
            settled_ns: begin_ns,
            kernels: none,
            any: none,
            last: Ran::default(),
            late: 0,
            late_ns: 0,
            gaps: Vec::new(),
            gap_count: 0,
        }
    }

    /// `ran` from `start_ns` to `end_ns`.
    #[inline]
    pub fn add(&mut self, mut start_ns: u64, mut end_ns: u64, ran: Ran) {
        if let Some([begin, end]) = self.limits {
            (start_ns, end_ns) = (start_ns.max(begin), end_ns.min(end));
        }
        if start_ns >= end_ns {
            return;
        }
        if start_ns < self.settled_ns {
            self.late += 1;
            self.late_ns += end_ns.min(self.settled_ns) - start_ns;
            start_ns = self.settled_ns;
            if start_ns >= end_ns {
                return;
            }
        }
        // Mostly in order, and often back to back.
        if let Some(before) = self.held.last_mut()
            && before.start_ns <= start_ns
            && start_ns <= before.end_ns
            && before.last.work.computes() == ran.work.computes()
        {
            if end_ns > before.end_ns {
                (before.end_ns, before.last) = (end_ns, ran);
            }
            return;
        }
        if self.held.len() >= self.held_max {
            self.settle(self.held_max / 2);
        }
        self.held.push(Span { start_ns, end_ns, first: ran, last: ran });
    }

    /// The sum, up to `now_ns` where a time was asked for.
    pub fn finish(mut self, now_ns: u64) -> Busied {
        self.settle(self.held.len());
        let begin_ns = self.began_ns.unwrap_or(0);
        let end_ns = match self.limits {
            Some([_, end]) => end.min(now_ns).max(self.any.end_ns),
            None => self.any.end_ns.max(begin_ns),
        };
        if end_ns > self.any.end_ns {
            self.gap(end_ns, Ran::default());
        }
        Busied {
            window_ns: [begin_ns, end_ns],
            kernels_ns: self.kernels.covered_ns,
            any_ns: self.any.covered_ns,
            late: self.late,
            late_ns: self.late_ns,
            gaps: self.gaps,
            gap_count: self.gap_count,
        }
    }

    /// The `count` that began first.
    fn settle(&mut self, count: usize) {
        // Streams come as runs, each in order: what a stable sort merges.
        self.held.sort_by_key(|span| span.start_ns);
        let mut held = std::mem::take(&mut self.held);
        for span in held.drain(..count) {
            self.settled_ns = span.start_ns;
            self.cover(&span);
        }
        self.held = held;
    }

    fn cover(&mut self, span: &Span) {
        if self.began_ns.is_none() {
            self.began_ns = Some(span.start_ns);
        } else if span.start_ns > self.any.end_ns {
            self.gap(span.start_ns, span.first);
        }
        if span.end_ns > self.any.end_ns {
            self.last = span.last;
        }
        self.any.cover(span.start_ns, span.end_ns);
        if span.first.work.computes() {
            self.kernels.cover(span.start_ns, span.end_ns);
        }
    }

    fn gap(&mut self, end_ns: u64, after: Ran) {
        self.gap_count += 1;
        let gap = Gap { start_ns: self.any.end_ns, end_ns, before: self.last, after };
        let at = self.gaps.partition_point(|other| other.duration_ns() >= gap.duration_ns());
        if at < GAPS_MAX {
            self.gaps.truncate(GAPS_MAX - 1);
            self.gaps.insert(at, gap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ran(work: Work, index: u32) -> Ran {
        Ran { process: 0, work, index }
    }

    /// Second by second.
    fn naive(spans: &[(u64, u64, bool)], limits: [u64; 2]) -> (u64, u64) {
        let is_in = |at: u64, only_kernels: bool| {
            spans.iter().any(|&(start, end, kernel)| start <= at && at < end && (kernel || !only_kernels))
        };
        let count = |only| (limits[0]..limits[1]).filter(|&at| is_in(at, only)).count() as u64;
        (count(true), count(false))
    }

    proptest! {
        #[test]
        fn the_union_is_what_counting_gives(
            mut spans in prop::collection::vec((1u64..300, 0u64..40, any::<bool>()), 1..80),
            limits in prop::option::of((0u64..150, 150u64..400)),
        ) {
            spans.iter_mut().for_each(|span| span.1 += span.0);
            let limits = limits.map(|(begin, end)| [begin, end]);
            let mut busy = Busy::with_room(limits, 1000);
            spans.iter().for_each(|&(start, end, kernel)| busy.add(start, end, ran(if kernel { Work::Kernel } else { Work::Copy }, 0)));
            let busied = busy.finish(u64::MAX);
            let expected = naive(&spans, limits.unwrap_or([0, 400]));
            prop_assert_eq!((busied.kernels_ns, busied.any_ns, busied.late), (expected.0, expected.1, 0));
            let gaps: u64 = busied.gaps.iter().map(Gap::duration_ns).sum();
            if busied.gap_count as usize <= GAPS_MAX {
                prop_assert_eq!(gaps + busied.any_ns, busied.window_ns[1] - busied.window_ns[0]);
            }
        }

        /// In little room what is out of order by less than half of it is still exact.
        #[test]
        fn a_little_disorder_is_no_trouble(jumps in prop::collection::vec((0u64..30, 1u64..20, 0usize..4), 50..300)) {
            let mut at = 100;
            let mut spans: Vec<(u64, u64, bool)> = jumps.iter().map(|&(pause, length, _)| {
                at += pause;
                (at, at + length, true)
            }).collect();
            let expected = naive(&spans, [0, at + 100]).0;
            for (index, &(_, _, shift)) in jumps.iter().enumerate() {
                spans.swap(index, (index + shift).min(jumps.len() - 1));
            }
            let mut busy = Busy::with_room(None, 64);
            spans.iter().for_each(|&(start, end, _)| busy.add(start, end, ran(Work::Kernel, 0)));
            let busied = busy.finish(u64::MAX);
            prop_assert!(busied.kernels_ns + busied.late_ns >= expected && busied.kernels_ns <= expected);
            if busied.late == 0 {
                prop_assert_eq!(busied.kernels_ns, expected);
            }
        }
    }

    #[test]
    fn what_comes_too_late_is_told() {
        let mut busy = Busy::with_room(None, 8);
        (0..40).for_each(|i| busy.add(1000 + i * 10, 1005 + i * 10, ran(Work::Kernel, 0)));
        busy.add(500, 510, ran(Work::Kernel, 0));
        let busied = busy.finish(u64::MAX);
        assert_eq!((busied.kernels_ns, busied.late, busied.late_ns), (200, 1, 10));
    }

    #[test]
    fn gaps_say_what_came_before_and_after() {
        let mut busy = Busy::new(Some([100, 1000]));
        busy.add(150, 200, ran(Work::Kernel, 1));
        busy.add(160, 300, ran(Work::Copy, 2));
        busy.add(700, 800, ran(Work::Kernel, 3));
        let busied = busy.finish(950);
        let edge = Ran::default();
        let gap = |start_ns, end_ns, before, after| Gap { start_ns, end_ns, before, after };
        assert_eq!(
            busied.gaps,
            [
                gap(300, 700, ran(Work::Copy, 2), ran(Work::Kernel, 3)),
                gap(800, 950, ran(Work::Kernel, 3), edge),
                gap(100, 150, edge, ran(Work::Kernel, 1)),
            ]
        );
        assert_eq!((busied.kernels_ns, busied.any_ns, busied.window_ns), (150, 250, [100, 950]));
    }
}
