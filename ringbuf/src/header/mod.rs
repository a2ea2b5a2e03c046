//! The head of a segment: who writes it, how it does, what it has counted.

pub mod counters;
pub mod identity;
pub mod status;
