//! What does a record cost the tapped process, and how near is that to what the machine can do?
//!
//! `cargo bench -p gputap-benches --bench ring`: every subject in turns, several rounds, one run. For each: the median,
//! the least and the greatest round, and the ratio to what it is compared with.

mod lanes;
mod stores;
mod table;

use table::Table;

/// Odd, so that the median is a round.
const ROUNDS: usize = 11;

fn main() {
    let mut table = Table::default();
    for round in 0..ROUNDS {
        lanes::round(&mut table);
        stores::round(&mut table, round);
    }
    table.print();
}
