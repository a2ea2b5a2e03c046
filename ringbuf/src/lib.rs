//! The shared memory between a tapped process and its readers.
//!
//! # Guarantees
//! - **The writer never waits.** Writing takes no lock, makes no system call, allocates nothing; every loop is bounded.
//! - **No reader can slow, block or corrupt the writer.** Readers map the segment read-only; the one place that they
//!   write, the [`control`] object, holds wishes that the writer checks and lets lapse.
//! - **Nobody's death matters.** A reader's wish lapses; a writer that dies leaves what it wrote readable, and a record
//!   that it had begun is never taken for a whole one.
//! - **Loss is exact.** For each reader: records = delivered + overwritten + before it attached.
//! - **A write never touches a page that was not reserved**, so shared memory running out cannot raise SIGBUS.
//!
//! # What a segment holds
//! ```text
//! identity │ status, clock │ counters │ lane headers │ store slots ║ lanes ... │ cubins ... │ definitions ...
//!                                     (always reserved)            ║        (reserved ahead of the writers)
//! ```
//! - [`lane`]: a ring a thread; overwrites its oldest records; for events.
//! - [`store`]: never overwrites; for cubins and names, each in an area of its own.
//! - [`control`]: leases and commands of readers, in an object of its own.
//!
//! The writer's process uses [`tap::TapWriter`] in callbacks and [`housekeeping::Housekeeper`] on its timer thread; a
//! reader uses [`discover`] and [`attach::Attached`].
//!
//! The protocols are generic over [`words::Words`], so that loom checks the code that runs on mapped memory.

#[cfg(not(loom))]
pub mod attach;
#[cfg(not(loom))]
pub mod backing;
pub mod control;
#[cfg(not(loom))]
pub mod discover;
pub mod event;
pub mod header;
#[cfg(not(loom))]
pub mod housekeeping;
pub mod lane;
pub mod layout;
pub mod process;
pub mod store;
pub mod sync;
#[cfg(not(loom))]
pub mod tap;
pub mod words;
