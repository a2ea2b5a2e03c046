//! A `libcupti.so.13` without a GPU, for x86_64: callbacks and activity records of the fake driver's work.
//!
//! What it reproduces, as measured on a real CUPTI:
//! - one subscriber; a second gets 39. Callbacks come only for the (domain, id) pairs that were enabled, and module
//!   loads are never replayed;
//! - `MODULE_LOADED` runs on the loading thread while the driver holds its lock;
//! - activity records are laid down in launch order, on the launching thread, in buffers that the client hands out;
//!   a full buffer without an unfinished record is completed by **CUPTI's worker thread**;
//! - to process anything the worker needs the driver lock for a moment, and `cuptiActivityFlushAll` waits for the
//!   worker. No other lock or order is scripted: who holds what a callback waits for across a flush, hangs;
//! - a plain flush keeps back a buffer that holds an unfinished record; a forced one delivers it with zero times, and
//!   never again;
//! - switching MEMCPY off in a process that has copied ends it: the real one's worker thread then frees a record's
//!   bookkeeping twice, sooner or later;
//! - after `cuptiFinalize` buffers still held are forgotten, never touched and never returned: flush first.
//!
//! Settings, read once from the environment:
//!
//! | variable | meaning |
//! |---|---|
//! | `FAKE_CUPTI_VERSION` | what `cuptiGetVersion` says and which record layouts are written: 130001 (default), 130301, 130500, 18…28 for 12.x, or `11.8` (says 18, writes its layouts) |
//! | `FAKE_CUPTI_FAULTS` | `name=code` or `name=code*N` (the first N calls only), comma separated; see below |
//! | `FAKE_CUPTI_DROP_EVERY` | drops every Nth record, and counts it as dropped |
//! | `FAKE_CUPTI_ZERO_TIMES_EVERY` | gives every Nth record zero times |
//!
//! A fault's name is the function's without `cupti` or `cuptiActivity`, in snake case: `subscribe`, `unsubscribe`,
//! `finalize`, `enable_callback`, `enable_domain`, `register_callbacks`, `enable`, `enable.MEMCPY`, `disable`, `flush`,
//! `get_next_record`, `dropped`, `set_attribute`, `get_attribute`, `timestamp_callback`, `timestamp`, `version`, `crc`,
//! `ids`. The call then returns the code and does nothing else. A flush that `flush_hang` hits never returns.
//!
//! [`counters`] says what really happened, for tests. A library in the process that exports `callback_watch_enter` and
//! `callback_watch_leave` is told, on the calling thread, when a callback of the client begins and ends.

mod activity;
mod buffers;
mod callbacks;
pub mod counters;
mod crc;
mod driver;
mod faults;
#[allow(clippy::duplicate_mod, reason = "the driver's half is in the driver's library")]
#[path = "../../fake-cuda/src/hook_abi.rs"]
mod hook_abi;
mod ids;
pub mod layout;
mod records;
mod result;
mod settings;
mod watch;
mod worker;
