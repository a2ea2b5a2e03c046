//! Rounds of measurements, and how they are shown.

use super::batches::median;

/// One subject.
struct Row {
    name: &'static str,
    unit: &'static str,
    /// The row that this one is measured against.
    against: &'static str,
    rounds: Vec<f64>,
}

/// All subjects, in the order in which they first came.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds a round's `value` of a subject.
    pub fn add(&mut self, name: &'static str, unit: &'static str, against: &'static str, value: f64) {
        match self.rows.iter_mut().find(|row| row.name == name && row.against == against) {
            Some(row) => row.rounds.push(value),
            None => self.rows.push(Row { name, unit, against, rounds: vec![value] }),
        }
    }

    /// The median of a subject's rounds, if there was one.
    pub fn median(&self, name: &str) -> Option<f64> {
        self.rows.iter().find(|row| row.name == name).map(|row| median(row.rounds.clone()))
    }

    pub fn print(&self) {
        println!("{:<57} {:>9} {:>9} {:>9}  unit        ratio", "subject", "median", "least", "greatest");
        for row in &self.rows {
            let least = row.rounds.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = row.rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let middle = median(row.rounds.clone());
            print!("{:<57} {middle:>9.2} {least:>9.2} {greatest:>9.2}  {:<10}", row.name, row.unit);
            match self.median(row.against) {
                Some(other) => println!("  {:.2} of `{}`", middle / other, row.against),
                None => println!(),
            }
        }
    }
}
