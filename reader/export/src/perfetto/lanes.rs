//! Tracks on which no two slices overlap: what would overlap goes to a further lane of the same group.
//!
//! Perfetto takes the slices of a track for a stack, and loses or garbles those that cross.

/// Slices that overlap so often are no timeline any more: beyond, a slice has no place and is counted.
pub const LANES_MAX: usize = 256;

/// Slices in one row. Ends are given out as soon as something comes after them.
#[derive(Debug, Default)]
struct Lane {
    /// Of the slices that have begun, the outer before the inner.
    ends_ns: Vec<u64>,
    /// Of the last begin or end that was given out.
    last_ns: u64,
}

/// One stream's, or one thread's.
#[derive(Debug)]
pub struct Lanes {
    nests: bool,
    lanes: Vec<Lane>,
}

impl Lanes {
    /// With `nests`, a slice may lie inside another one, as calls do.
    pub fn new(nests: bool) -> Lanes {
        Lanes { nests, lanes: Vec::new() }
    }

    /// A lane for a slice, which has begun when this returns; `end(lane, time)` is told what ended before. To be called in
    /// the order of starts: a late one gets a lane on which nothing came after it.
    pub fn begin(&mut self, start_ns: u64, end_ns: u64, mut end: impl FnMut(usize, u64)) -> Option<usize> {
        let nests = self.nests;
        let at = match self.lanes.iter().position(|lane| lane.fits(start_ns, end_ns, nests)) {
            Some(at) => at,
            None if self.lanes.len() < LANES_MAX => {
                self.lanes.push(Lane::default());
                self.lanes.len() - 1
            }
            None => return None,
        };
        let lane = &mut self.lanes[at];
        lane.close(start_ns, |time_ns| end(at, time_ns));
        lane.ends_ns.push(end_ns);
        lane.last_ns = start_ns;
        Some(at)
    }

    /// The end of a slice whose end nobody knew: it was begun with an end of `u64::MAX`. When it ends at the latest.
    pub fn end(&mut self, at: usize, time_ns: u64) -> u64 {
        let lane = &mut self.lanes[at];
        lane.ends_ns.pop();
        lane.last_ns = lane.last_ns.max(time_ns);
        lane.last_ns
    }

    /// Something without a length.
    pub fn instant(&mut self, time_ns: u64, mut end: impl FnMut(usize, u64)) -> Option<usize> {
        let at = self.begin(time_ns, time_ns, &mut end)?;
        self.lanes[at].ends_ns.pop();
        Some(at)
    }

    /// The lanes with a slice whose end is not known.
    pub fn endless(&self) -> Vec<usize> {
        (0..self.lanes.len()).filter(|&at| self.lanes[at].ends_ns.contains(&u64::MAX)).collect()
    }

    /// Ends all that is open; `latest_ns` for what has no end.
    pub fn finish(&mut self, latest_ns: u64, mut end: impl FnMut(usize, u64)) {
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            while let Some(end_ns) = lane.ends_ns.pop() {
                let end_ns = if end_ns == u64::MAX { latest_ns.max(lane.last_ns) } else { end_ns };
                end(at, end_ns);
                lane.last_ns = end_ns;
            }
        }
    }
}

impl Lane {
    fn fits(&self, start_ns: u64, end_ns: u64, nests: bool) -> bool {
        let around = self.ends_ns.iter().rev().find(|&&end| end > start_ns);
        self.last_ns <= start_ns && around.is_none_or(|&around_ns| nests && around_ns >= end_ns)
    }

    fn close(&mut self, time_ns: u64, mut end: impl FnMut(u64)) {
        while let Some(end_ns) = self.ends_ns.pop_if(|end_ns| *end_ns <= time_ns) {
            end(end_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(nests: bool, slices: &[(u64, u64)]) -> (Vec<Option<usize>>, Vec<(usize, u64)>) {
        let mut lanes = Lanes::new(nests);
        let mut ends = Vec::new();
        let places = slices.iter().map(|&(start, end)| lanes.begin(start, end, |at, ns| ends.push((at, ns)))).collect();
        lanes.finish(1000, |at, ns| ends.push((at, ns)));
        (places, ends)
    }

    #[test]
    fn what_overlaps_goes_to_another_lane() {
        let (places, ends) = draw(false, &[(1, 10), (5, 8), (7, 20), (8, 9), (10, 12), (12, 12), (12, 12)]);
        assert_eq!(places, [0, 1, 2, 1, 0, 0, 0].map(Some));
        assert_eq!(ends, [(1, 8), (0, 10), (0, 12), (0, 12), (0, 12), (1, 9), (2, 20)]);
    }

    #[test]
    fn calls_nest_and_those_that_cross_do_not() {
        let (places, ends) = draw(true, &[(1, 10), (2, 5), (3, 5), (6, 11), (7, 10)]);
        assert_eq!(places, [0, 0, 0, 1, 0].map(Some));
        assert_eq!(ends, [(0, 5), (0, 5), (0, 10), (0, 10), (1, 11)]);
    }

    #[test]
    fn a_late_slice_never_goes_before_what_was_given_out() {
        let (places, _) = draw(false, &[(100, 110), (120, 130), (50, 60), (55, 58)]);
        assert_eq!(places, [0, 0, 1, 2].map(Some));
    }

    #[test]
    fn there_is_an_end_of_lanes() {
        let slices = vec![(1, 100); LANES_MAX + 1];
        let (places, _) = draw(false, &slices);
        assert_eq!(places.iter().flatten().count(), LANES_MAX);
        assert_eq!(places.last(), Some(&None));
    }
}
