//! What is to be reached, and whether this run did. Other machines, and neighbours on this one, change the answers.

use super::{
    lanes::{DRAIN, OVER_CLOCK, WRITE, WRITE_CLOCK, WRITE_TWICE},
    peers::{LTTNG_DISCARD, LTTNG_OVERWRITE},
    readers::{FOLLOWED_RATIO, IDLE, WAITING},
    stores::STORE_RATIO,
    table::Table,
};

enum Bound {
    AtMost(f64),
    Below(f64),
    AtLeast(f64),
}
use Bound::{AtLeast, AtMost, Below};

pub fn print(table: &Table) {
    let ratio = |of, to| Some(table.median(of)? / table.median(to)?);
    let targets = [
        ("64-byte record, one writer", AtMost(6.0), "ns", table.median(WRITE)),
        ("64-byte record, two writers, the slower one", AtMost(6.0), "ns", table.median(WRITE_TWICE)),
        ("with a timestamp, above clock_gettime", AtMost(8.0), "ns", table.median(OVER_CLOCK)),
        ("with a timestamp, of LTTng in discard mode", Below(0.5), "times", ratio(WRITE_CLOCK, LTTNG_DISCARD)),
        ("with a timestamp, of LTTng in overwrite mode", Below(0.5), "times", ratio(WRITE_CLOCK, LTTNG_OVERWRITE)),
        ("a live reader as gputap is one, of without", AtMost(2.0), "times", table.median(FOLLOWED_RATIO)),
        ("an attached idle reader", AtMost(1.0), "ns", table.median(IDLE)),
        ("drain with validation, in cache", AtMost(5.0), "ns", table.median(DRAIN)),
        ("64 MiB cubin into the store, of memcpy", AtLeast(0.85), "times", table.median(STORE_RATIO)),
        ("a session waiting for data", Below(0.5), "% of core", table.median(WAITING)),
    ];
    println!("\n{:<46} {:>15}  {:>17}  ", "target", "", "median");
    for (what, bound, unit, value) in targets {
        let (sign, limit) = match bound {
            AtMost(limit) => ("<=", limit),
            Below(limit) => ("<", limit),
            AtLeast(limit) => (">=", limit),
        };
        let wanted = format!("{sign} {limit} {unit}");
        match value {
            Some(value) => println!("{what:<46} {wanted:>15}  {value:>7.2} {unit:<9}  {}", verdict(&bound, value)),
            None => println!("{what:<46} {wanted:>15}  {:>7} {:<9}  not measured", "-", ""),
        }
    }
    println!("no loss at 10 M events/s: `cargo bench -p gputap-benches --bench ring -- sustained`");
}

fn verdict(bound: &Bound, value: f64) -> &'static str {
    let met = match *bound {
        AtMost(limit) => value <= limit,
        Below(limit) => value < limit,
        AtLeast(limit) => value >= limit,
    };
    if met { "met" } else { "not met" }
}
