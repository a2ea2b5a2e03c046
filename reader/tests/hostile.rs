//! A segment whose bytes change at random under a session: nothing panics, hangs or grows without bound, and the books
//! balance whatever they say.

#[allow(dead_code, reason = "each file of tests uses its part")]
mod support;

use gputap_reader::clock::Now;
use gputap_reader::session::{NoSink, Session};
use gputap_ringbuf::header::identity::Backing;
use gputap_ringbuf::layout::{CHUNK_WORDS, LANE_HEADERS, LINE, SLOT_WORDS, STATUS, STORE_CONTROL_WORDS};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use support::{SIZES, Tap, kernel};

/// xorshift64*: the seed is in the name of the round, so that a failure can be had again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Values that break arithmetic more often than uniform ones do.
    fn nasty(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => u64::MAX - self.below(64),
            3 => self.below(1 << 16),
            4 => 1 << self.below(64),
            5 => (1 << self.below(64)) - 1,
            _ => self.next(),
        }
    }
}

/// The word to change: mostly those that say where and how much.
fn word(random: &mut Random, tap: &Tap) -> u64 {
    let layout = tap.writer.layout();
    let head = layout.fixed_words as u64;
    let at = |base: usize, span: usize, random: &mut Random| base as u64 + random.below(span as u64);
    match random.below(8) {
        0 => at(STATUS, LANE_HEADERS - STATUS, random),
        1 | 2 => at(LANE_HEADERS, SIZES.lanes * 2 * LINE, random),
        3 => at(layout.cubin_control, STORE_CONTROL_WORDS + 8 * SLOT_WORDS, random),
        4 => at(layout.definition_control, STORE_CONTROL_WORDS + 8 * SLOT_WORDS, random),
        // The chunks' headers: number, first sequence number, first record.
        5 | 6 => head + random.below(24) * CHUNK_WORDS as u64 + random.below(6),
        _ => head + random.below(layout.total_words as u64 - head),
    }
}

#[test]
fn a_segment_that_changes_at_random_costs_its_own_figures_only() {
    for seed in 1..=seeds() {
        let tap = Tap::new(Backing::Shm);
        let file = OpenOptions::new().write(true).open(&tap.found.segment).expect("our own segment");
        let names: Vec<u32> = (0..8).map(|i| tap.name(format!("_Z1f{i}").as_bytes())).collect();
        // Written once: our own writer trusts its memory. From here on the segment is a hostile one's.
        for i in 0..3_000u64 {
            tap.write(100 + i % 3, &kernel(names[i as usize % names.len()], i + 1, i + 5));
        }
        (0..8u64).for_each(|i| tap.cubin(&i.to_le_bytes().repeat(50)));
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut session = tap.session();
        let began = Instant::now();
        for step in 0..120u64 {
            if step % 8 == 0 {
                // Late readers meet the damage from the start, if they are let in at all.
                session = Session::open(&tap.found, support::options(), Now::read()).unwrap_or(session);
            }
            for _ in 0..random.below(20) {
                let (at, value) = (word(&mut random, &tap), random.nasty());
                file.write_all_at(&value.to_le_bytes(), at * 8).expect("inside the segment");
            }
            session.step(Now::read(), &mut NoSink).expect("no sink");
            let counts = session.snapshot(Now::read()).counts;
            let lost = counts.lost.iter().fold(0u64, |sum, lost| sum.saturating_add(lost.count));
            let all = counts.delivered.saturating_add(lost).saturating_add(counts.pending);
            assert_eq!(counts.attempted, all, "seed {seed}, step {step}: {counts:?}");
        }
        assert!(began.elapsed() < Duration::from_secs(60), "seed {seed} took {:?}", began.elapsed());
    }
}

/// GPUTAP_TEST_SEEDS asks for more rounds than a test run takes.
fn seeds() -> u64 {
    std::env::var("GPUTAP_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(40)
}
