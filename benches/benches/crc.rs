//! How fast is the CRC-32 that names a cubin, beside the machine's memory?
//!
//! `cargo bench -p gputap-benches --bench crc`: by size, the CRC, a copy and a plain reading of the same bytes in turns,
//! eleven rounds. Median, least and greatest round in GB/s, and the CRC's median as a ratio to the other two.

use gputap_reader::crc::crc32;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A small cubin, one that a second-level cache holds, and one that no cache does.
const SIZES_BYTES: [usize; 3] = [16 << 10, 512 << 10, 256 << 20];
/// Odd, so that the median is a round.
const ROUNDS: usize = 11;
const ROUND_AT_LEAST: Duration = Duration::from_millis(100);

fn main() {
    println!("{:>10}  {:<8} {:>8} {:>8} {:>8}  GB/s", "size", "subject", "median", "least", "greatest");
    for size_bytes in SIZES_BYTES {
        let cubin: Vec<u8> = (0..size_bytes).map(|i| ((i * 7) >> 3) as u8).collect();
        let mut room = vec![1; size_bytes];
        let mut rounds = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            rounds[0].push(gb_per_s(size_bytes, || _ = black_box(crc32(black_box(&cubin)))));
            rounds[1].push(gb_per_s(size_bytes, || room.copy_from_slice(black_box(&cubin))));
            rounds[2].push(gb_per_s(size_bytes, || _ = black_box(sum(black_box(&cubin)))));
            black_box(&mut room);
        }
        let medians = rounds.map(print_of(size_bytes));
        println!(
            "{:>10}  CRC-32 is {:.2} of memcpy, {:.2} of read",
            "",
            medians[0] / medians[1],
            medians[0] / medians[2]
        );
    }
}

/// Prints a subject's rounds and gives their median.
fn print_of(size_bytes: usize) -> impl FnMut(Vec<f64>) -> f64 {
    let mut names = ["CRC-32", "memcpy", "read"].into_iter();
    move |mut rounds| {
        rounds.sort_by(f64::total_cmp);
        let (least, median, greatest) = (rounds[0], rounds[ROUNDS / 2], rounds[ROUNDS - 1]);
        let (name, size_kib) = (names.next().unwrap_or_default(), size_bytes >> 10);
        println!("{size_kib:>6} KiB  {name:<8} {median:>8.2} {least:>8.2} {greatest:>8.2}");
        median
    }
}

/// What reading costs at least, as wide as the compiler makes it.
fn sum(bytes: &[u8]) -> u64 {
    bytes.as_chunks::<8>().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

/// Of `work`, which goes through so many bytes, done again for as long as a round takes.
fn gb_per_s(size_bytes: usize, mut work: impl FnMut()) -> f64 {
    work();
    let (began, mut times) = (Instant::now(), 0);
    while began.elapsed() < ROUND_AT_LEAST {
        work();
        times += 1;
    }
    (times * size_bytes) as f64 / began.elapsed().as_secs_f64() / 1e9
}
