//! Where a segment's memory comes from: a POSIX object or a memfd, and how pages are reserved before anyone writes.

pub mod create;
pub mod reserve;
pub mod room;
