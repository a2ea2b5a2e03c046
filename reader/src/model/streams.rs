//! How busy each stream was over the last minute, in memory that does not grow: what a timeline is drawn from.
//!
//! A stream has two rings of buckets, a fine one and a coarse one. A bucket says how long each sort of work ran in it;
//! single events are not kept. Sums are exact; where two kernels of one stream overlap (nodes of a graph may) a bucket
//! says no more than that it was busy all the time.

use super::steps;
use super::timeline::{Slice, Stretch, Timeline, TimelineRow, WORKS, Work, WorkShares};
use super::timing::Timing;
use crate::clock::Now;

/// Streams told apart. One that has been quiet for as long as the coarse ring reaches gives way to a new one; where
/// none has, the new one's work is counted and not shown.
pub const MAX_STREAMS: usize = 48;
/// A fine bucket is 2^20 ns, about a millisecond; all of them are 8.6 s.
const FINE_SHIFT: u32 = 20;
const FINE_BUCKETS: usize = 1 << 13;
/// A coarse bucket is 2^25 ns, 34 ms; all of them are 69 s.
const COARSE_SHIFT: u32 = 25;
const COARSE_BUCKETS: usize = 1 << 11;
/// A rhythm is looked for in samples of two buckets, over 8 s less what may be late.
const STEP_SHIFT: u32 = FINE_SHIFT + 1;
const STEP_SAMPLES: u64 = 3_500;
/// Records that end later than this ahead of the reader lie about the time.
const AHEAD_NS: u64 = 1_000_000_000;

/// CUPTI numbers streams within a context.
type Key = (u32, u32, u32);

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    /// The low bits of the bucket's number, which come round after 52 days: what lies here may be of a lap ago.
    index: u32,
    busy_ns: [u32; WORKS],
}

#[derive(Debug)]
struct Ring {
    shift: u32,
    buckets: Box<[Bucket]>,
}

#[derive(Debug)]
struct Stream {
    key: Key,
    last_ns: u64,
    fine: Ring,
    coarse: Ring,
}

#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: Vec<Stream>,
    /// Where the event before went: the next one mostly goes there too.
    latest: usize,
    not_shown: u64,
    /// Before this time nothing could be seen: it is in no share.
    since_ns: u64,
}

impl Ring {
    fn new(shift: u32, buckets: usize) -> Ring {
        Ring { shift, buckets: vec![Bucket { index: u32::MAX, ..Bucket::default() }; buckets].into() }
    }

    fn reach_ns(&self) -> u64 {
        (self.buckets.len() as u64) << self.shift
    }

    /// Adds `start_ns..end_ns`, of which the part from before `oldest_ns` has no bucket any more.
    #[inline]
    fn add(&mut self, work: Work, start_ns: u64, end_ns: u64, oldest_ns: u64) {
        let start_ns = start_ns.max(oldest_ns);
        let width_ns = 1u64 << self.shift;
        let mut from = start_ns;
        while from < end_ns {
            let index = from >> self.shift;
            let to = ((index + 1) << self.shift).min(end_ns);
            let place = index as usize & (self.buckets.len() - 1);
            let bucket = &mut self.buckets[place];
            if bucket.index != index as u32 {
                *bucket = Bucket { index: index as u32, ..Bucket::default() };
            }
            let busy_ns = &mut bucket.busy_ns[work as usize];
            // At most the width of a bucket, which fits.
            *busy_ns = (u64::from(*busy_ns) + (to - from)).min(width_ns) as u32;
            from = to;
        }
    }

    /// Busy time in `from_ns..to_ns`, which are multiples of a bucket's width.
    fn sum(&self, from_ns: u64, to_ns: u64) -> [u64; WORKS] {
        let mut sum = [0; WORKS];
        for index in (from_ns >> self.shift)..(to_ns >> self.shift) {
            let bucket = &self.buckets[index as usize & (self.buckets.len() - 1)];
            if bucket.index == index as u32 {
                sum.iter_mut().zip(bucket.busy_ns).for_each(|(sum, busy_ns)| *sum += u64::from(busy_ns));
            }
        }
        sum
    }
}

impl Stream {
    fn new(key: Key) -> Stream {
        let (fine, coarse) = (Ring::new(FINE_SHIFT, FINE_BUCKETS), Ring::new(COARSE_SHIFT, COARSE_BUCKETS));
        Stream { key, last_ns: 0, fine, coarse }
    }

    fn ring(&self, stretch: Stretch) -> &Ring {
        let is_fine = stretch.column_ns < 1 << COARSE_SHIFT && stretch.span_ns() <= self.fine.reach_ns();
        if is_fine { &self.fine } else { &self.coarse }
    }
}

impl Streams {
    pub(super) fn since(since_ns: u64) -> Streams {
        Streams { since_ns, ..Streams::default() }
    }

    pub(super) fn count(&mut self, work: Work, key: Key, timing: Timing, now: Now) {
        let Timing::Good { start_ns, end_ns } = timing else { return };
        let oldest_ns = |ring: &Ring| now.monotonic_ns.saturating_sub(ring.reach_ns() - (2 * AHEAD_NS));
        if end_ns > now.monotonic_ns.saturating_add(AHEAD_NS) {
            return;
        }
        let Some(stream) = self.stream(key, now) else { return };
        stream.last_ns = stream.last_ns.max(end_ns);
        let (fine_ns, coarse_ns) = (oldest_ns(&stream.fine), oldest_ns(&stream.coarse));
        stream.fine.add(work, start_ns, end_ns, fine_ns);
        stream.coarse.add(work, start_ns, end_ns, coarse_ns);
    }

    #[inline]
    fn stream(&mut self, key: Key, now: Now) -> Option<&mut Stream> {
        if self.streams.get(self.latest).is_none_or(|stream| stream.key != key) {
            self.latest = match self.streams.iter().position(|stream| stream.key == key) {
                Some(at) => at,
                None => self.make(key, now)?,
            };
        }
        self.streams.get_mut(self.latest)
    }

    #[cold]
    fn make(&mut self, key: Key, now: Now) -> Option<usize> {
        if self.streams.len() < MAX_STREAMS {
            self.streams.push(Stream::new(key));
            return Some(self.streams.len() - 1);
        }
        let (at, stalest) = self.streams.iter_mut().enumerate().min_by_key(|(_, stream)| stream.last_ns)?;
        if now.monotonic_ns.saturating_sub(stalest.last_ns) <= stalest.coarse.reach_ns() {
            self.not_shown = self.not_shown.saturating_add(1);
            return None;
        }
        *stalest = Stream::new(key);
        Some(at)
    }

    /// One row a stream that has not been quiet for longer than the rings reach, in the order of devices and streams.
    pub(super) fn timeline(&self, stretch: Stretch) -> Timeline {
        let stretch =
            stretch.kept_to_buckets(1 << FINE_SHIFT, 1 << COARSE_SHIFT, FINE_BUCKETS as u64, COARSE_BUCKETS as u64);
        let reach_ns = (COARSE_BUCKETS as u64) << COARSE_SHIFT;
        let is_recent = |stream: &&Stream| stretch.end_ns.saturating_sub(stream.last_ns) < reach_ns;
        let mut rows: Vec<TimelineRow> =
            self.streams.iter().filter(is_recent).map(|stream| row(stream, stretch, self.since_ns)).collect();
        rows.sort_unstable_by_key(|row| (row.device_id, row.context_id, row.stream_id));
        Timeline { stretch, rows, not_shown: self.not_shown }
    }

    /// How long a step takes, where there is a rhythm.
    pub(super) fn step_ns(&self, end_ns: u64) -> Option<u64> {
        let end = end_ns >> STEP_SHIFT;
        let first = end.saturating_sub(STEP_SAMPLES);
        let width_ns = 1u64 << STEP_SHIFT;
        let busy = |sample: u64| {
            let sum = |stream: &Stream| stream.fine.sum(sample << STEP_SHIFT, (sample + 1) << STEP_SHIFT);
            let busy_ns: u64 = self.streams.iter().map(|stream| sum(stream).iter().sum::<u64>()).sum();
            busy_ns as f32 / width_ns as f32
        };
        let samples: Vec<f32> = (first..end).map(busy).collect();
        steps::period(&samples).map(|samples| (f64::from(samples) * width_ns as f64) as u64)
    }

    /// Of `span_ns` up to `end_ns`, all streams added up.
    pub(super) fn shares(&self, end_ns: u64, span_ns: u64) -> WorkShares {
        let floor = |ns: u64| ns >> COARSE_SHIFT << COARSE_SHIFT;
        let (from_ns, to_ns) = (floor(end_ns.saturating_sub(span_ns).max(self.since_ns)), floor(end_ns));
        let mut busy_ns = [0u64; WORKS];
        for stream in &self.streams {
            let sum = stream.coarse.sum(from_ns, to_ns);
            busy_ns.iter_mut().zip(sum).for_each(|(all, one)| *all += one);
        }
        WorkShares::of(busy_ns, to_ns.saturating_sub(from_ns))
    }
}

fn row(stream: &Stream, stretch: Stretch, since_ns: u64) -> TimelineRow {
    let ring = stream.ring(stretch);
    let mut all = [0u64; WORKS];
    let slice = |column: u64| {
        let from_ns = stretch.from_ns() + column * stretch.column_ns;
        let sum = ring.sum(from_ns, from_ns + stretch.column_ns);
        all.iter_mut().zip(sum).for_each(|(all, one)| *all += one);
        Slice::of(sum, stretch.column_ns)
    };
    let slices: Vec<Slice> = (0..stretch.columns).map(slice).collect();
    let (device_id, context_id, stream_id) = stream.key;
    let seen_ns = stretch.end_ns.saturating_sub(stretch.from_ns().max(since_ns));
    TimelineRow { device_id, context_id, stream_id, slices, shares: WorkShares::of(all, seen_ns) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FINE_NS: u64 = 1 << FINE_SHIFT;
    const COARSE_NS: u64 = 1 << COARSE_SHIFT;
    /// A multiple of both widths.
    const BASE_NS: u64 = COARSE_NS * 100_000;

    fn now(monotonic_ns: u64) -> Now {
        Now { monotonic_ns, realtime_ns: 0 }
    }

    fn count(streams: &mut Streams, work: Work, stream: u32, start_ns: u64, end_ns: u64) {
        streams.count(work, (0, 1, stream), Timing::Good { start_ns, end_ns }, now(end_ns));
    }

    fn stretch(end_ns: u64, column_ns: u64, columns: u64) -> Stretch {
        Stretch { end_ns, column_ns, columns }
    }

    #[test]
    fn work_is_where_and_what_it_was() {
        let mut streams = Streams::default();
        count(&mut streams, Work::Compute, 7, BASE_NS, BASE_NS + FINE_NS / 2);
        count(&mut streams, Work::Copy, 7, BASE_NS + FINE_NS, BASE_NS + 3 * FINE_NS);
        let timeline = streams.timeline(stretch(BASE_NS + 4 * FINE_NS, FINE_NS, 4));
        assert_eq!(timeline.rows.len(), 1);
        let shares: Vec<_> = timeline.rows[0].slices.iter().map(|slice| slice.shares).collect();
        let [compute, copy] = [Work::Compute as usize, Work::Copy as usize];
        assert_eq!((shares[0][compute], shares[0][copy]), (0.5, 0.0));
        assert_eq!((shares[1][compute], shares[1][copy]), (0.0, 1.0));
        assert_eq!((shares[2][copy], shares[3][copy]), (1.0, 0.0));
        assert_eq!(timeline.rows[0].shares.copy, 0.5);
        assert_eq!(timeline.rows[0].shares.busy(), 0.625);
    }

    #[test]
    fn streams_have_rows_of_their_own_in_order() {
        let mut streams = Streams::default();
        for (device, stream) in [(1, 7), (0, 20), (0, 7)] {
            let timing = Timing::Good { start_ns: BASE_NS, end_ns: BASE_NS + 10 };
            streams.count(Work::Compute, (device, 1, stream), timing, now(BASE_NS));
        }
        let rows = streams.timeline(stretch(BASE_NS + FINE_NS, FINE_NS, 1)).rows;
        let order: Vec<_> = rows.iter().map(|row| (row.device_id, row.stream_id)).collect();
        assert_eq!(order, [(0, 7), (0, 20), (1, 7)]);
    }

    #[test]
    fn a_long_stretch_is_drawn_from_the_coarse_ring() {
        let mut streams = Streams::default();
        let end_ns = BASE_NS + 60 * COARSE_NS * 30;
        for column in 0..60 {
            let start_ns = BASE_NS + column * COARSE_NS * 30;
            count(&mut streams, Work::Collective, 7, start_ns, start_ns + COARSE_NS * 15);
        }
        let timeline = streams.timeline(stretch(end_ns, COARSE_NS * 30, 60));
        assert_eq!(timeline.rows[0].slices.len(), 60);
        assert!(timeline.rows[0].slices.iter().all(|slice| slice.shares[Work::Collective as usize] == 0.5));
    }

    #[test]
    fn what_a_ring_has_passed_is_gone() {
        let mut streams = Streams::default();
        count(&mut streams, Work::Compute, 7, BASE_NS, BASE_NS + FINE_NS);
        let later_ns = BASE_NS + ((COARSE_BUCKETS as u64) << COARSE_SHIFT);
        count(&mut streams, Work::Compute, 7, later_ns + FINE_NS, later_ns + 2 * FINE_NS);
        let fine = streams.timeline(stretch(later_ns + 2 * FINE_NS, FINE_NS, 2));
        assert_eq!(fine.rows[0].slices[0].shares, [0.0; WORKS], "not what was here a lap ago");
        assert_eq!(fine.rows[0].slices[1].shares[Work::Compute as usize], 1.0);
    }

    #[test]
    fn a_quiet_stream_gives_way_and_a_busy_one_does_not() {
        let mut streams = Streams::default();
        (0..MAX_STREAMS as u32 + 5).for_each(|stream| count(&mut streams, Work::Set, stream, BASE_NS, BASE_NS + 10));
        assert_eq!((streams.streams.len(), streams.not_shown), (MAX_STREAMS, 5));
        let later_ns = BASE_NS + ((COARSE_BUCKETS as u64 + 1) << COARSE_SHIFT);
        count(&mut streams, Work::Set, 1_000, later_ns, later_ns + 10);
        let rows = streams.timeline(stretch(later_ns + FINE_NS, FINE_NS, 4)).rows;
        assert_eq!(rows.iter().map(|row| row.stream_id).collect::<Vec<_>>(), [1_000]);
    }

    #[test]
    fn what_was_before_the_reader_is_in_no_share() {
        let mut streams = Streams::since(BASE_NS);
        count(&mut streams, Work::Compute, 7, BASE_NS, BASE_NS + 4 * COARSE_NS);
        let end_ns = BASE_NS + 4 * COARSE_NS;
        assert_eq!(streams.timeline(stretch(end_ns, COARSE_NS, 100)).rows[0].shares.compute, 1.0);
        assert_eq!(streams.shares(end_ns, 10_000_000_000).compute, 1.0);
    }

    #[test]
    fn a_rhythm_of_work_is_a_step() {
        let mut streams = Streams::default();
        let step_ns = 25_000_000;
        for step in 0..300 {
            let start_ns = BASE_NS + step * step_ns;
            count(&mut streams, Work::Compute, 7, start_ns, start_ns + 18_000_000);
        }
        let found = streams.step_ns(BASE_NS + 300 * step_ns).unwrap();
        assert!(found.abs_diff(step_ns) < step_ns / 50, "{found}");
        assert_eq!(Streams::default().step_ns(BASE_NS), None);
    }

    #[test]
    fn records_that_lie_about_the_time_cost_nothing() {
        let mut streams = Streams::default();
        let timing = |start_ns, end_ns| Timing::Good { start_ns, end_ns };
        for (start_ns, end_ns) in [(1, u64::MAX), (u64::MAX - 1, u64::MAX), (0, 1), (0, BASE_NS), (5, 5)] {
            streams.count(Work::Compute, (0, 0, 0), timing(start_ns, end_ns), now(BASE_NS));
            streams.count(Work::Compute, (0, 0, 0), timing(start_ns, end_ns), now(0));
        }
        streams.timeline(stretch(u64::MAX, u64::MAX, u64::MAX));
        streams.timeline(stretch(0, 0, 0));
        assert!(streams.shares(BASE_NS, 10_000_000_000).compute <= 1.0);
    }

    /// `cargo test -p gputap-reader --lib a_measurement -- --ignored --nocapture`
    #[test]
    #[ignore = "a measurement"]
    fn a_measurement_of_what_an_event_costs() {
        const EVENTS: u64 = 4_000_000;
        for streams in [1, 4, 48] {
            let mut kept = Streams::default();
            let began = std::time::Instant::now();
            for number in 0..EVENTS {
                let start_ns = BASE_NS + number * 2_500;
                count(&mut kept, Work::Compute, (number % streams) as u32, start_ns, start_ns + 2_000);
            }
            let each_ns = began.elapsed().as_nanos() as f64 / EVENTS as f64;
            println!("{streams} streams in turn: {each_ns:.1} ns an event");
        }
    }

    proptest! {
        /// Whatever came in whatever order: a column says what a model that keeps every event says.
        #[test]
        fn a_column_is_what_a_naive_model_says(events in proptest::collection::vec((0u64..40 * FINE_NS, 1u64..5 * FINE_NS), 1..40)) {
            let mut streams = Streams::default();
            // One after the other, as on a stream.
            let mut at = BASE_NS;
            let mut kept = Vec::new();
            for (gap, length) in events {
                at += gap % (3 * FINE_NS);
                kept.push((at, at + length));
                at += length;
            }
            let now = now(at);
            for &(start_ns, end_ns) in kept.iter().rev() {
                streams.count(Work::Compute, (0, 1, 7), Timing::Good { start_ns, end_ns }, now);
            }
            let end_ns = (at / FINE_NS + 1) * FINE_NS;
            let timeline = streams.timeline(stretch(end_ns, FINE_NS, 64));
            for (column, slice) in timeline.rows[0].slices.iter().enumerate() {
                let from = end_ns - 64 * FINE_NS + column as u64 * FINE_NS;
                let within = |(start, end): &(u64, u64)| (*end).min(from + FINE_NS).saturating_sub((*start).max(from));
                let expected = kept.iter().map(within).sum::<u64>() as f32 / FINE_NS as f32;
                prop_assert!((slice.shares[0] - expected).abs() < 1e-6);
            }
        }
    }
}
