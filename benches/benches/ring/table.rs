//! Rounds of measurements, and how they are shown.

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
        match self.rows.iter_mut().find(|row| row.name == name) {
            Some(row) => row.rounds.push(value),
            None => self.rows.push(Row { name, unit, against, rounds: vec![value] }),
        }
    }

    pub fn print(&self) {
        println!("{:<58} {:>9} {:>9} {:>9}  unit        ratio", "subject", "median", "least", "greatest");
        for row in &self.rows {
            let sorted = row.sorted();
            let (median, least, greatest) = (row.median(), sorted[0], sorted[sorted.len() - 1]);
            print!("{:<58} {median:>9.2} {least:>9.2} {greatest:>9.2}  {:<10}", row.name, row.unit);
            match self.rows.iter().find(|other| other.name == row.against) {
                Some(other) if other.name != row.name => {
                    println!("  {:.2} of `{}`", median / other.median(), other.name)
                }
                _ => println!(),
            }
        }
    }
}

impl Row {
    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    fn median(&self) -> f64 {
        self.sorted()[self.rounds.len() / 2]
    }
}
