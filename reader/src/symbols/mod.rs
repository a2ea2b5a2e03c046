//! Names: from a cubin to its functions, from a mangled name to one that a person reads.

pub mod cubin;
pub mod demangle;
pub mod escape;

pub use cubin::{Cubin, CubinError};
pub use demangle::demangle;
