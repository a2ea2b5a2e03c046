//! A recording as tables: one for each kind of event, and those of the processes, what they lost, their devices and modules.
//!
//! Parquet, CSV and JSON are three ways of writing the same tables, with the same names of columns (`docs/export.md`).
//! [`walk`] reads one process, once, in constant memory, and gives its rows a block at a time.

mod facts;
mod rows;
mod schema;
mod texts;
mod walk;
pub mod wall;

pub use rows::{Cells, Rows};
pub use schema::{Column, Content, NAMES, Table};
pub use texts::{Texts, exact};
pub(crate) use walk::duration_ns;
pub use walk::{ALL_TABLES, Selection, Walked, walk};
