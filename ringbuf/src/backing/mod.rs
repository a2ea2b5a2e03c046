//! Where a segment's memory comes from: a POSIX object or a memfd, how its descriptors are kept whatever the job does
//! with its own, and how pages are reserved before anyone writes.

pub mod create;
pub mod keeper;
pub mod kept;
pub mod reserve;
pub mod room;
