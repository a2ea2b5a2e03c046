//! CUPTI as facts: its C types, its numbers, where the fields of its records lie, and which CUDA and GPUs a version
//! goes with, for 11.8 to 13.5.
//!
//! Nothing here loads or calls CUPTI. `.ci/layouts` compares all of it with NVIDIA's headers.

pub mod abi;
pub mod constants;
pub mod layout;
pub mod version;
