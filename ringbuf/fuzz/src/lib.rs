//! What the fuzz targets share: a valid small segment, the lies that an input tells in it, and a reader that believes
//! nothing and checks what it is given.
//!
//! An input is a list of [`lies::Lie`]s of 12 bytes each, so that a mutation of one leaves the others as they are.

pub mod lies;
pub mod reading;
pub mod segment;
