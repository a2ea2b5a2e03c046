//! CSV as RFC 4180 has it, but with plain newlines: a file a table, the first line names the columns.
//!
//! An empty cell is one that has nothing; an empty text looks the same. No cell has a control character
//! ([`crate::table::exact`]), so that a line of the file is a row.

use crate::lines::{self, Lines};
use crate::table::{Content, Rows, Selection, Table, Texts, wall};
use crate::{ExportError, Exported, Options};
use gputap_recording::Recording;
use std::io::{self, Write};
use std::path::Path;

/// Writes the `wanted` tables as `out/TABLE.csv`.
///
/// # Errors
/// `out` is there already and may not be written to, or a file could not be written.
pub fn to_folder(
    recording: &Recording,
    wanted: Selection,
    out: &Path,
    options: &Options,
) -> Result<Exported, ExportError> {
    lines::to_folder::<Csv<_>>(recording, wanted, out, options)
}

/// Writes one table to `out`, which errors call `as_path`.
///
/// # Errors
/// There is no table of that name, or `out` takes no more.
pub fn to_stream(recording: &Recording, table: &str, out: impl Write, as_path: &Path) -> Result<Exported, ExportError> {
    lines::to_stream::<_, Csv<_>>(recording, table, out, as_path)
}

struct Csv<W: Write> {
    writer: ::csv::Writer<W>,
    number: itoa::Buffer,
}

impl<W: Write> Lines<W> for Csv<W> {
    const EXTENSION: &'static str = "csv";

    fn begin(out: W, table: &Table) -> io::Result<Csv<W>> {
        let mut writer = ::csv::WriterBuilder::new().buffer_capacity(256 << 10).from_writer(out);
        writer.write_record(table.columns.iter().map(|column| &column.name)).map_err(of_csv)?;
        Ok(Csv { writer, number: itoa::Buffer::new() })
    }

    fn row(&mut self, table: &Table, rows: &Rows, row: usize, texts: &Texts) -> io::Result<()> {
        for (column, cells) in table.columns.iter().zip(&rows.columns) {
            let written = match (cells.get(row), column.content) {
                (None, _) => self.writer.write_field(b""),
                (Some(number), Content::Text) => self.writer.write_field(texts.get(number)),
                (Some(number), Content::Wall) => self.writer.write_field(wall::iso8601(number)),
                (Some(number), Content::Flag) => self.writer.write_field(if number == 0 { "false" } else { "true" }),
                (Some(number), _) => self.writer.write_field(self.number.format(number)),
            };
            written.map_err(of_csv)?;
        }
        self.writer.write_record(None::<&[u8]>).map_err(of_csv)
    }

    fn finish(self) -> io::Result<W> {
        self.writer.into_inner().map_err(::csv::IntoInnerError::into_error)
    }
}

/// The error of the output itself, where it is one: a closed pipe has to be known as such.
fn of_csv(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}
