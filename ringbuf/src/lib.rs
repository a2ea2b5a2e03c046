//! The shared memory between a process that is watched and those that watch it: a ring for each writing thread, a store
//! for what must not be lost, and an object through which readers say what they want. Made for gputap; nothing but the
//! names of the counters and of the kinds of events and entries is about GPUs.
//!
//! # Guarantees
//! - **The writer never waits.** Writing takes no lock, makes no system call, allocates nothing; every loop is bounded.
//!   It may be done in a signal handler, or under any lock of anybody's.
//! - **No reader can slow, block or corrupt the writer.** Readers map the segment read-only; the one place that they
//!   write, the [`control`] object, holds wishes that the writer checks and lets lapse.
//! - **Nobody's death matters.** A reader's wish lapses; a process that dies leaves what it wrote readable, and what it
//!   had begun is never taken for whole; a thread that ends inside a write leaves a lane that its heir mends.
//! - **Loss is exact.** For each reader, at any time: records attempted = delivered + overwritten + before it attached +
//!   abandoned by a thread that ended + refused (no lane, nested) + not yet read.
//! - **Nothing wrong is delivered.** Readers copy first and check the copy: a record or entry with a wrong byte, of an
//!   earlier lap or half written, is skipped and counted, whoever wrote it. Only bytes that were made to fit pass.
//! - **A write never touches a page that was not reserved**, so shared memory running out cannot raise SIGBUS in the
//!   writer.
//!
//! What it does not guarantee: that a reader sees everything (a lane overwrites its oldest records; the store refuses
//! when it is full), an order between lanes, or protection from a process of the same user that sets out to harm.
//!
//! # What a segment holds
//! ```text
//! identity │ status, clock │ counters │ lane headers │ store slots ║ lane 0 │ lane 1 │ ... │ cubins ... │ definitions ...
//!                                     (always reserved)            ║        (reserved ahead of the writers)
//!
//! lane:   intent ─────────────┐         a reader copies, then looks whether intent has come round to what it copied
//!         tail ────────┐      │
//!   ... │ record │ record │ (being written) │ oldest records that still stand │ ...
//! ```
//! - [`lane`]: a ring a thread; overwrites its oldest records; for events.
//! - [`store`]: never overwrites; for cubins and names, each in an area of its own.
//! - [`header`]: who writes ([`header::identity`]), how it does ([`header::status`]), what it counts
//!   ([`header::counters`]).
//! - [`control`]: leases and commands of readers, in an object of its own.
//!
//! # States
//! | what | states | who moves it |
//! |---|---|---|
//! | lane | unreserved → free → owned → free | housekeeping reserves and frees; a thread claims |
//! | lane, `busy` | idle ↔ id of the thread that writes; freeing | its owner, its heir, housekeeping |
//! | record | nothing → `intent` past it → bytes → `tail` past it → overwritten | its writer alone |
//! | store entry | empty → reserved → ready, for ever | its writer alone |
//! | reader's slot | free → a client's → free | the client takes it; the client or the writer's housekeeping frees it |
//! | command | sent → answered | the client; the writer's housekeeping |
//!
//! # Memory orders
//! Every pair has a test under loom (`tests/loom.rs`) that fails when either side is weakened.
//!
//! | released by | acquired by | what it carries |
//! |---|---|---|
//! | fence after the store of `intent` | fence before the second look at `intent` | a copied word that is new shows an `intent` that is new |
//! | store of `tail` | load of `tail` | the records before it are whole |
//! | store of `busy` = idle | exchange of `busy` | the next writer goes on where the last one ended |
//! | store of owner = free | exchange of owner | the lane's memory is there |
//! | store of `reserved_bytes` | load of it | the store's memory is there |
//! | store of ready | load of the slot's state | the entry's words and bytes are whole |
//! | store of the magic | load of the magic | the identity, or the control object's head, is whole |
//! | fence after the odd text number, store of the even one | load of it, fence after the copy | texts are not torn |
//! | fence before a clock point, store of its number | load of it, fence after the copy | clock points are not torn |
//! | store of the state | fence of the texts | a state's detail is not older than the state |
//! | exchange of a wish or command | load of it | the command comes after the wish that was told before it |
//! | store of the answer | load of it | what the command did |
//!
//! # How bytes are copied
//! Words of lanes and headers are only touched through atomic loads and stores ([`words`]): shared with a process that
//! may write at any time, they are never a data race, and no Rust reference but to atomics exists. An entry's bytes are
//! copied in bulk: by the writer into room that is its own until it is published, by a reader out of entries that are
//! ready, which the writer never writes again; a peer that breaks this rule can only make the copy wrong, which its
//! check shows. DECISIONS.md says why that is sound in practice where the language says nothing about other processes.
//!
//! # Using it
//! The writing process makes a segment, keeps room reserved from a thread of its own, and writes from any other:
//! ```
//! use gputap_ringbuf::{
//!     backing::create::{BackingChoice, create},
//!     header::identity::Backing,
//!     housekeeping::{Ahead, Housekeeper, Step},
//!     layout::Sizes,
//!     tap::TapWriter,
//! };
//!
//! let created = create(Sizes::DEFAULT, BackingChoice::Only(Backing::Memfd))?;
//! let tap = TapWriter::new(&created);
//! let mut housekeeper = Housekeeper::new(created.reserver, Ahead { lanes: 1, ..Ahead::DEFAULT });
//! // From a thread of the tap's own, again and again:
//! while let Step::Reserved = housekeeper.step(&tap) {}
//! tap.publish();
//!
//! // In any thread; its pointer and id are for the caller to know without a system call.
//! let (thread_pointer, thread_id) = (0x7f00_0000_1000, 4711);
//! match tap.enter_lane(thread_pointer, thread_id) {
//!     Ok(lane) => lane.write(1, &[10, 20, 30]).expect("shorter than a chunk"),
//!     Err(refused) => eprintln!("to be counted: {refused:?}"),
//! }
//!
//! // A reader, in this process or, through `discover::find(pid)` and `Attached::open`, in another.
//! let attached = tap.as_reader()?;
//! let mut lane = attached.lane(0);
//! let done = lane.drain(1_000, |record| {
//!     assert_eq!((record.seq, record.kind, record.words), (0, 1, &[10, 20, 30][..]));
//! });
//! assert_eq!((done.delivered, done.overwritten, done.more), (1, 0, false));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The protocols are generic over [`words::Words`], so that loom, and tests that end threads and processes at every
//! store, check the code that runs on mapped memory.

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
