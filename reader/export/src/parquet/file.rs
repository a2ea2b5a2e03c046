//! One file: rows are gathered, typed, until they fill a row group.

use crate::table::{Cells, Column, Content, Rows, Table, Texts};
use crate::{ExportError, Output};
use ::parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{ColumnPath, Type, TypePtr};
use gputap_recording::Process;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A row group ends with the block of rows that reaches this.
const ROW_GROUP_ROWS: usize = 128 << 10;
/// A dictionary of names may grow so far; beyond it each row would carry its name in full, which may have 500 KB.
const NAMES_MAX_BYTES: usize = 512 << 20;

pub struct TableFile {
    writer: SerializedFileWriter<Output>,
    path: PathBuf,
    columns: Vec<Gathered>,
    rows: usize,
    texts: Vec<ByteArray>,
}

/// A column's values of the row group to come.
struct Gathered {
    values: Values,
    /// 1 for each row that has a value, 0 for others; nothing where all have one.
    levels: Vec<i16>,
    nullable: bool,
}

enum Values {
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
}

impl TableFile {
    pub fn create(output: Output, table: &Table, process: &Process) -> Result<TableFile, ExportError> {
        let path = output.path().to_owned();
        let schema = schema(table).map_err(of_parquet(&path))?;
        let properties = Arc::new(properties(table, process));
        let writer = SerializedFileWriter::new(output, schema, properties).map_err(of_parquet(&path))?;
        let columns = table.columns.iter().map(Gathered::new).collect();
        Ok(TableFile { writer, path, columns, rows: 0, texts: Vec::new() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn take(&mut self, rows: &Rows, texts: &Texts) -> Result<(), ExportError> {
        let known = self.texts.len() as u64;
        self.texts.extend((known..texts.len() as u64).map(|text| ByteArray::from(texts.get(text).as_bytes().to_vec())));
        for (column, cells) in self.columns.iter_mut().zip(&rows.columns) {
            column.take(cells, &self.texts);
        }
        self.rows += rows.len();
        if self.rows >= ROW_GROUP_ROWS { self.write_row_group() } else { Ok(()) }
    }

    /// How many bytes the file has.
    pub fn finish(mut self) -> Result<u64, ExportError> {
        if self.rows > 0 {
            self.write_row_group()?;
        }
        let output = self.writer.into_inner().map_err(of_parquet(&self.path))?;
        output.finish()
    }

    fn write_row_group(&mut self) -> Result<(), ExportError> {
        self.rows = 0;
        write_row_group(&mut self.writer, &mut self.columns).map_err(of_parquet(&self.path))
    }
}

fn write_row_group(writer: &mut SerializedFileWriter<Output>, columns: &mut [Gathered]) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        let Some(mut writer) = group.next_column()? else { break };
        column.write(writer.untyped())?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

impl Gathered {
    fn new(column: &Column) -> Gathered {
        let values = match physical(column.content) {
            Physical::INT64 => Values::Int64(Vec::new()),
            Physical::INT32 => Values::Int32(Vec::new()),
            Physical::BOOLEAN => Values::Bool(Vec::new()),
            _ => Values::Text(Vec::new()),
        };
        Gathered { values, levels: Vec::new(), nullable: column.nullable }
    }

    fn take(&mut self, cells: &Cells, texts: &[ByteArray]) {
        if self.nullable {
            self.levels.extend(cells.present.iter().map(|present| i16::from(*present)));
        }
        // Unsigned numbers keep their bits.
        match &mut self.values {
            Values::Int64(values) => extend(values, cells, |number| number as i64),
            Values::Int32(values) => extend(values, cells, |number| number as i32),
            Values::Bool(values) => extend(values, cells, |number| number != 0),
            Values::Text(values) => extend(values, cells, |number| texts[number as usize].clone()),
        }
    }

    fn write(&mut self, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = self.nullable.then_some(self.levels.as_slice());
        match (&mut self.values, writer) {
            (Values::Int64(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)
            }
            (Values::Int32(values), ColumnWriter::Int32ColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)
            }
            (Values::Bool(values), ColumnWriter::BoolColumnWriter(writer)) => writer.write_batch(values, levels, None),
            (Values::Text(values), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)
            }
            _ => Err(ParquetError::General("a column is of another type than its schema says".to_owned())),
        }?;
        self.levels.clear();
        self.values.clear();
        Ok(())
    }
}

impl Values {
    fn clear(&mut self) {
        match self {
            Values::Int64(values) => values.clear(),
            Values::Int32(values) => values.clear(),
            Values::Bool(values) => values.clear(),
            Values::Text(values) => values.clear(),
        }
    }
}

/// Only cells that are not empty have a value.
fn extend<T>(values: &mut Vec<T>, cells: &Cells, of: impl Fn(u64) -> T) {
    if cells.present.is_empty() {
        values.extend(cells.numbers.iter().map(|number| of(*number)));
    } else {
        let present = cells.numbers.iter().zip(&cells.present).filter(|(_, present)| **present);
        values.extend(present.map(|(number, _)| of(*number)));
    }
}

fn physical(content: Content) -> Physical {
    match content {
        Content::Time | Content::Wall | Content::Quantity | Content::Wide => Physical::INT64,
        Content::Id => Physical::INT32,
        Content::Flag => Physical::BOOLEAN,
        Content::Text => Physical::BYTE_ARRAY,
    }
}

fn logical(content: Content) -> Option<LogicalType> {
    match content {
        Content::Time | Content::Quantity | Content::Flag => None,
        Content::Wall => Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
        Content::Wide => Some(LogicalType::integer(64, false)),
        Content::Id => Some(LogicalType::integer(32, false)),
        Content::Text => Some(LogicalType::String),
    }
}

fn schema(table: &Table) -> Result<TypePtr, ParquetError> {
    let field = |column: &Column| {
        Type::primitive_type_builder(&column.name, physical(column.content))
            .with_repetition(if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED })
            .with_logical_type(logical(column.content))
            .build()
            .map(Arc::new)
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder(table.name).with_fields(fields).build().map(Arc::new)
}

fn properties(table: &Table, process: &Process) -> WriterProperties {
    // Plain data of ours always serializes.
    let json = serde_json::to_string(process).unwrap_or_default();
    let mut builder = WriterProperties::builder()
        .set_created_by(format!("gputap {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![KeyValue::new("gputap.process".to_owned(), json)]))
        .set_compression(Compression::SNAPPY);
    for column in &table.columns {
        let path = ColumnPath::from(column.name.as_str());
        builder = match column.content {
            // Each value is another one, near the one before.
            Content::Time | Content::Wall | Content::Wide => builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Content::Quantity if column.name == "correlation" => builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Content::Text => builder.set_column_dictionary_page_size_limit(path, NAMES_MAX_BYTES),
            Content::Quantity | Content::Id | Content::Flag => builder,
        };
    }
    builder.build()
}

/// The error of the file below, where it is one.
fn of_parquet(path: &Path) -> impl FnOnce(ParquetError) -> ExportError {
    let to_io = |error| match error {
        ParquetError::External(source) => source.downcast::<io::Error>().map_or_else(io::Error::other, |error| *error),
        error => io::Error::other(error),
    };
    move |error| ExportError::file("write", path)(to_io(error))
}
