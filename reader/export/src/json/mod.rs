//! JSON Lines: a file a table, an object a line, the same columns as in the other formats; `null` where a cell is empty.
//!
//! Numbers are whole and up to 64 bits: a reader that keeps them as floating point loses the last digits of large ones.

use crate::lines::{self, Lines};
use crate::table::{Content, Rows, Selection, Table, Texts, wall};
use crate::{ExportError, Exported, Options};
use gputap_recording::Recording;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes the `wanted` tables as `out/TABLE.jsonl`.
///
/// # Errors
/// `out` is there already and may not be written to, or a file could not be written.
pub fn to_folder(
    recording: &Recording,
    wanted: Selection,
    out: &Path,
    options: &Options,
) -> Result<Exported, ExportError> {
    lines::to_folder::<Json<_>>(recording, wanted, out, options)
}

/// Writes one table to `out`, which errors call `as_path`.
///
/// # Errors
/// There is no table of that name, or `out` takes no more.
pub fn to_stream(recording: &Recording, table: &str, out: impl Write, as_path: &Path) -> Result<Exported, ExportError> {
    lines::to_stream::<_, Json<_>>(recording, table, out, as_path)
}

struct Json<W: Write> {
    out: BufWriter<W>,
    /// What stands before the value of each column.
    keys: Vec<String>,
    number: itoa::Buffer,
}

impl<W: Write> Lines<W> for Json<W> {
    const EXTENSION: &'static str = "jsonl";

    fn begin(out: W, table: &Table) -> io::Result<Json<W>> {
        let before = |number: usize| if number == 0 { '{' } else { ',' };
        // Names of columns have nothing to escape.
        let keys =
            (0..).zip(&table.columns).map(|(at, column)| format!("{}\"{}\":", before(at), column.name)).collect();
        Ok(Json { out: BufWriter::with_capacity(256 << 10, out), keys, number: itoa::Buffer::new() })
    }

    fn row(&mut self, table: &Table, rows: &Rows, row: usize, texts: &Texts) -> io::Result<()> {
        for ((column, cells), key) in table.columns.iter().zip(&rows.columns).zip(&self.keys) {
            self.out.write_all(key.as_bytes())?;
            match (cells.get(row), column.content) {
                (None, _) => self.out.write_all(b"null")?,
                (Some(number), Content::Text) => serde_json::to_writer(&mut self.out, texts.get(number))?,
                (Some(number), Content::Wall) => write!(self.out, "\"{}\"", wall::iso8601(number))?,
                (Some(number), Content::Flag) => write!(self.out, "{}", number != 0)?,
                (Some(number), _) => self.out.write_all(self.number.format(number).as_bytes())?,
            }
        }
        self.out.write_all(b"}\n")
    }

    fn finish(self) -> io::Result<W> {
        self.out.into_inner().map_err(io::IntoInnerError::into_error)
    }
}
