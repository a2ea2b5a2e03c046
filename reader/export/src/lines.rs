//! Tables as files of lines: one file a table, all processes in it, or one table to a stream.

use crate::folder::Folder;
use crate::table::{Rows, Selection, Table, Texts, walk};
use crate::{ExportError, Exported, Options, Output};
use gputap_recording::Recording;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// A way of writing rows as lines.
pub(crate) trait Lines<W: Write>: Sized {
    const EXTENSION: &'static str;

    fn begin(out: W, table: &Table) -> io::Result<Self>;
    fn row(&mut self, table: &Table, rows: &Rows, row: usize, texts: &Texts) -> io::Result<()>;
    fn finish(self) -> io::Result<W>;
}

/// Writes the `wanted` tables into the folder `out`, those that have rows and the three that are always there.
pub(crate) fn to_folder<L: Lines<Output>>(
    recording: &Recording,
    wanted: Selection,
    out: &Path,
    options: &Options,
) -> Result<Exported, ExportError> {
    let folder = Folder::create(out, options.overwrite)?;
    let mut exported = Exported::of(recording);
    let mut files: BTreeMap<&str, (L, std::path::PathBuf)> = BTreeMap::new();
    for recorded in recording.processes() {
        let walked = walk(recorded, wanted, |table, rows, texts| {
            if !files.contains_key(table.name) {
                let path = folder.root().join(format!("{}.{}", table.name, L::EXTENSION));
                let output = Output::create(&path, options.overwrite)?;
                let lines = L::begin(output, table).map_err(ExportError::file("write", &path))?;
                files.insert(table.name, (lines, path));
            }
            let Some((lines, path)) = files.get_mut(table.name) else { return Ok(()) };
            (0..rows.len())
                .try_for_each(|row| lines.row(table, rows, row, texts))
                .map_err(ExportError::file("write", path))
        })?;
        exported.add(&walked);
    }
    for (lines, path) in files.into_values() {
        exported.bytes += lines.finish().map_err(ExportError::file("write", &path))?.finish()?;
        exported.files.push(path);
    }
    exported.files = folder.finish(&exported.files)?;
    Ok(exported)
}

/// Writes one table, that called `name`, to `out`; `as_path` is what an error calls it.
pub(crate) fn to_stream<W: Write, L: Lines<W>>(
    recording: &Recording,
    name: &str,
    out: W,
    as_path: &Path,
) -> Result<Exported, ExportError> {
    let wanted = Selection::only(name).ok_or_else(|| ExportError::UnknownTable { name: name.to_owned() })?;
    let mut exported = Exported::of(recording);
    let (mut out, mut lines) = (Some(out), None);
    for recorded in recording.processes() {
        let walked = walk(recorded, wanted, |table, rows, texts| {
            write_rows::<W, L>(&mut out, &mut lines, table, rows, texts).map_err(ExportError::file("write", as_path))
        })?;
        exported.add(&walked);
    }
    if let Some(lines) = lines {
        let flushed = lines.finish().and_then(|mut out| out.flush());
        flushed.map_err(ExportError::file("write", as_path))?;
    }
    Ok(exported)
}

fn write_rows<W: Write, L: Lines<W>>(
    out: &mut Option<W>,
    lines: &mut Option<L>,
    table: &Table,
    rows: &Rows,
    texts: &Texts,
) -> io::Result<()> {
    if let Some(out) = out.take() {
        *lines = Some(L::begin(out, table)?);
    }
    let Some(lines) = lines else { return Ok(()) };
    (0..rows.len()).try_for_each(|row| lines.row(table, rows, row, texts))
}
