//! Parquet: a folder for each table, which DuckDB, Spark, pandas and others read as one dataset.
//!
//! ```text
//! OUT/kernels/node-a.rank-3.pid-4003-NONCE-BEGAN.parquet
//! ```
//! A file's name says which process it is of and when its recording began: exports of several machines, or of one process at
//! several times, can be copied into one folder. Host and rank are columns: as partitions in the names of folders their types
//! are guessed, and pyarrow and pandas refuse a dataset in which nobody has a rank.

mod file;
mod names;

use crate::folder::Folder;
use crate::table::{Rows, Selection, Table, Texts, walk};
use crate::{ExportError, Exported, Options, Output};
use file::TableFile;
use gputap_recording::{Process, Recording};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Writes the `wanted` tables into the folder `out`.
///
/// # Errors
/// `out` is there already and may not be written to, or a file could not be written.
pub fn to_folder(
    recording: &Recording,
    wanted: Selection,
    out: &Path,
    options: &Options,
) -> Result<Exported, ExportError> {
    let folder = Folder::create(out, options.overwrite)?;
    let mut exported = Exported::of(recording);
    for recorded in recording.processes() {
        let mut files: BTreeMap<&str, TableFile> = BTreeMap::new();
        let place = Place { root: folder.root(), process: &recorded.process, options, written: &exported.files };
        let walked = walk(recorded, wanted, |table, rows, texts| take(&mut files, &place, table, rows, texts))?;
        for file in files.into_values() {
            exported.files.push(file.path().to_owned());
            exported.bytes += file.finish()?;
        }
        exported.add(&walked);
    }
    exported.files = folder.finish(&exported.files)?;
    Ok(exported)
}

fn take(
    files: &mut BTreeMap<&'static str, TableFile>,
    place: &Place<'_>,
    table: &Table,
    rows: &Rows,
    texts: &Texts,
) -> Result<(), ExportError> {
    if let Some(file) = files.get_mut(table.name) {
        return file.take(rows, texts);
    }
    if rows.is_empty() && table.kind.is_none() {
        return Ok(());
    }
    let mut file = TableFile::create(place.output(table)?, table, place.process)?;
    file.take(rows, texts)?;
    files.insert(table.name, file);
    Ok(())
}

/// Where the files of a process go.
struct Place<'a> {
    root: &'a Path,
    process: &'a Process,
    options: &'a Options,
    /// By the processes before.
    written: &'a [PathBuf],
}

impl Place<'_> {
    fn output(&self, table: &Table) -> Result<Output, ExportError> {
        let folder = self.root.join(table.name);
        std::fs::create_dir_all(&folder).map_err(ExportError::file("make", &folder))?;
        let name = names::file_name(self.process);
        // Two processes whose recordings say that they are the same one each get a file.
        let path = (1..)
            .map(|copy: u32| if copy == 1 { name.clone() } else { format!("{name}-{copy}") })
            .map(|name| folder.join(format!("{name}.parquet")))
            .find(|path| !self.written.contains(path));
        Output::create(&path.unwrap_or_else(|| folder.join(name)), self.options.overwrite)
    }
}
