//! Rows of one table of one process, as columns of numbers.

use super::schema::Column;

/// One column's cells.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// What the number means is the column's [`super::Content`]; 0 where the cell is empty.
    pub numbers: Vec<u64>,
    /// Which cells are not empty; no items at all where the column is not nullable.
    pub present: Vec<bool>,
    nullable: bool,
}

impl Cells {
    pub fn get(&self, row: usize) -> Option<u64> {
        let present = !self.nullable || self.present[row];
        present.then(|| self.numbers[row])
    }

    /// An empty cell of a column that has none becomes 0.
    #[inline]
    pub(super) fn push(&mut self, number: Option<u64>) {
        self.numbers.push(number.unwrap_or(0));
        if self.nullable {
            self.present.push(number.is_some());
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub columns: Vec<Cells>,
}

impl Rows {
    pub(super) fn of(columns: &[Column]) -> Rows {
        let cells = |column: &Column| Cells { nullable: column.nullable, ..Cells::default() };
        Rows { columns: columns.iter().map(cells).collect() }
    }

    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |cells| cells.numbers.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn clear(&mut self) {
        for cells in &mut self.columns {
            cells.numbers.clear();
            cells.present.clear();
        }
    }

    pub(super) fn push(&mut self, row: &[Option<u64>]) {
        self.columns.iter_mut().zip(row).for_each(|(cells, number)| cells.push(*number));
    }
}
