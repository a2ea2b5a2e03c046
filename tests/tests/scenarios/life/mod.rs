//! How processes begin children, take signals, meet limits and end: each with a tap in them, as if it were not there.

mod children;
mod contexts;
mod daemon;
mod distant;
mod ends;
mod exit_time;
mod identity;
pub mod inside;
mod limits;
mod signals;
