//! A `libcupti.so.13` without a GPU, for x86_64: callbacks and activity records of the fake driver's work.
//!
//! What it reproduces, as measured on a real CUPTI:
//! - one subscriber; a second gets 39. Callbacks come only for the (domain, id) pairs that were enabled, and module
//!   loads are never replayed;
//! - `MODULE_LOADED` runs on the loading thread while the driver holds its lock; so do `MODULE_UNLOAD_STARTING`,
//!   `CONTEXT_CREATED`, `CONTEXT_DESTROY_STARTING`, the SYNCHRONIZE domain's callbacks, and the API callbacks of a launch
//!   that loads its module (of these the real one is known to do it only for the first; the others are the worst case);
//! - activity records are laid down in launch order, on the launching thread, in buffers that the client hands out;
//!   a full buffer without an unfinished record is completed by **CUPTI's worker thread**;
//! - to process anything the worker needs the driver lock for a moment, and `cuptiActivityFlushAll` waits for the
//!   worker. No other lock or order is scripted: who holds what a callback waits for across a flush, hangs;
//! - a plain flush keeps back a buffer that holds an unfinished record; a forced one delivers it with zero times, and
//!   never again;
//! - with GRAPH_TRACE on a graph's launch is one record; without, one for each kernel node;
//! - NVTX ranges become MARKER records, in an application whose `NVTX_INJECTION64_PATH` names this library;
//! - switching MEMCPY off in a process that has copied ends it: the real one's worker thread then frees a record's
//!   bookkeeping twice, sooner or later;
//! - after `cuptiFinalize` buffers still held are forgotten, never touched and never returned: flush first.
//!
//! Settings, read once from the environment:
//!
//! | variable | meaning |
//! |---|---|
//! | `FAKE_CUPTI_VERSION` | what `cuptiGetVersion` says and which record layouts are written: 130001 (default), 130100 to 130500, 18…28 for 12.x, or `11.8` (says 18, writes its layouts) |
//! | `FAKE_CUPTI_LAYOUTS` | writes another version's layouts than it says |
//! | `FAKE_CUPTI_FAULTS` | `name=code`, `name=code*N` (the first N calls only) or `name=code@N` (the Nth call only), comma separated; see below |
//! | `FAKE_CUPTI_DROP_EVERY` | drops every Nth record, and counts it as dropped |
//! | `FAKE_CUPTI_DUPLICATE_EVERY` | lays every Nth record down twice |
//! | `FAKE_CUPTI_SWAP_EVERY` | lays every Nth record down after the next one |
//! | `FAKE_CUPTI_ZERO_TIMES_EVERY` | gives every Nth record zero times |
//! | `FAKE_CUPTI_REVERSE_TIMES_EVERY` | gives every Nth record an end before its start |
//! | `FAKE_CUPTI_NULL_NAME_EVERY`, `FAKE_CUPTI_LONG_NAME_EVERY` | gives every Nth record, if it has a name, none or one of 512 KiB |
//! | `FAKE_CUPTI_ALIEN_KIND_EVERY` | makes every Nth record one of kind 999, which no client knows |
//! | `FAKE_CUPTI_KEEP_BUFFER_EVERY` | never gives every Nth buffer back |
//! | `FAKE_CUPTI_CLOCK_STEP_MS` | `MS@N`: from the Nth record on CUPTI's own clock, not that of a client, is so far off |
//! | `FAKE_CUPTI_FLUSH_MS` | a flush takes so much longer |
//! | `FAKE_CUPTI_COMPLETERS` | so many threads complete buffers, in turn, instead of the worker |
//! | `FAKE_CUPTI_SILENT` | 1: everything succeeds, and no record ever comes |
//!
//! A fault's name is the function's without `cupti` or `cuptiActivity`, in snake case: `subscribe`, `unsubscribe`,
//! `finalize`, `enable_callback`, `enable_domain`, `register_callbacks`, `enable`, `enable.MEMCPY`, `disable`, `flush`,
//! `get_next_record`, `dropped`, `set_attribute`, `get_attribute`, `timestamp_callback`, `timestamp`, `version`, `crc`,
//! `ids`, `result_string`, `nvtx`. The call then returns the code and does nothing else. A flush that `flush_hang` hits
//! never returns.
//!
//! [`counters`] says what really happened, for tests. A library in the process that exports `callback_watch_enter` and
//! `callback_watch_leave` is told, on the calling thread, when a callback of the client begins and ends; one that also
//! exports `callback_watch_held` and `callback_watch_wait`, under which locks, and when a thread waits for the worker.

mod activity;
mod buffers;
mod callbacks;
mod completers;
pub mod counters;
mod crc;
pub mod damage;
mod draft;
mod driver;
mod events;
mod faults;
#[allow(clippy::duplicate_mod, reason = "the driver's half is in the driver's library")]
#[path = "../../fake-cuda/src/hook_abi.rs"]
mod hook_abi;
mod ids;
pub mod layout;
pub mod layout_host;
mod nvtx;
mod records;
mod records_host;
mod result;
mod settings;
pub mod sizes;
mod watch;
mod worker;
