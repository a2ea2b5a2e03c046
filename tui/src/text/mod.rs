//! Words and numbers as people read them, in a width that does not jump.

pub mod loss;
mod name;
pub mod table;
mod units;
pub mod work;

pub use name::{broken, clean, clip, kernel_name, pad, width};
pub use units::{
    age, bytes, bytes_per_s, count, cupti_version, dense_duration_ns, duration_ns, grouped, per_s, percent, shape,
};
