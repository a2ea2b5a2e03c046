//! Reads a folder of recordings.

mod folder;
mod names;
mod segment;
mod stream;

pub use folder::{Problem, Recorded, Recording};
pub use names::{Name, Names};
pub use stream::{Block, Stream};
