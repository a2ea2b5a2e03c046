//! The control object: the one place that readers write. Each reader takes a slot, and through it holds a *lease*
//! (a wish that lapses when its beat stops) and sends commands, one at a time, that are acknowledged.
//!
//! ```text
//! head:  magic | abi | nonce of the segment | pid
//! slot:  owner | kinds = tag, mask | beat | command = tag, seq, what | ack = tag, seq, result
//!        owner: 0 free; the client's random id while held; the shim puts it back to 0 when the beat stops
//!        tag:   the low half of that id, in the high half of the word; a seq has 24 bits, what it is about has 8
//! ```
//! A client that was stopped for so long that it lost its slot may, on waking, write one word of it once more, under an
//! heir's feet. Hence the tags: the shim heeds a wish or command only if it has the tag of the slot's owner, and a
//! client only an answer with its own. And a client writes a word only over the one that it saw while the slot was its
//! own, so that it never takes away what an heir has said.
//!
//! The shim trusts nothing here: each word is read once and checked, ages are taken on its own clock, and whatever the
//! slots say can at worst switch the known kinds on or off.

pub mod client;
#[cfg(not(loom))]
mod open;
pub mod server;

use crate::{event::ALL_KINDS, layout::LINE};

/// "gputapCT" as bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"gputapCT");
#[cfg(not(loom))]
pub const SLOTS: usize = 16;
/// Few enough for loom to try what clients do to each other.
#[cfg(loom)]
pub const SLOTS: usize = 2;
pub const CONTROL_BYTES: usize = 4096;
/// A lease lapses when its beat has not changed for this long on the shim's clock.
pub const LEASE_NS: u64 = 2_000_000_000;

/// Head words.
pub mod head {
    pub const MAGIC: usize = 0;
    pub const ABI: usize = 1;
    pub const NONCE: usize = 2;
    pub const PID: usize = 3;
}

const OWNER: usize = 0;
const KINDS: usize = 1;
const BEAT: usize = 2;
const COMMAND: usize = 3;
const ACK: usize = 4;

fn slot_word(slot: usize, word: usize) -> usize {
    LINE + slot * LINE + word
}

/// A word of `owner`'s that says `low`, which has 32 bits.
fn tagged(owner: u64, low: u64) -> u64 {
    owner << 32 | low
}

fn has_tag(word: u64, owner: u64) -> bool {
    word >> 32 == owner & u64::from(u32::MAX)
}

/// What a command and its answer have in common: the tag and the seq.
fn line(word: u64) -> u64 {
    word >> 8
}

const _: () = assert!((LINE + SLOTS * LINE) * 8 <= CONTROL_BYTES);
const _: () = assert!(ALL_KINDS <= u32::MAX as u64, "a wish has 32 bits");

/// What a reader can ask of the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Command {
    /// Record without a reader (black box); also ends `Stop`.
    Start = 1,
    /// Record nothing, whatever leases ask for, until `Start`.
    Stop = 2,
    /// Unsubscribe and finalize, so that another tool can have CUPTI.
    Yield = 3,
    /// Come back after `Yield`.
    Resume = 4,
    /// Flush CUPTI's buffers now.
    Flush = 5,
}

impl Command {
    pub const ALL: [Command; 5] = [Command::Start, Command::Stop, Command::Yield, Command::Resume, Command::Flush];

    pub fn name(self) -> &'static str {
        match self {
            Command::Start => "start",
            Command::Stop => "stop",
            Command::Yield => "yield",
            Command::Resume => "resume",
            Command::Flush => "flush",
        }
    }

    fn from_number(number: u8) -> Option<Command> {
        Command::ALL.into_iter().find(|c| *c as u8 == number)
    }
}

/// How the shim answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Answer {
    Done = 1,
    /// Not possible in the present state; the status says why.
    Refused = 2,
    /// Tried and failed; the status says why.
    Failed = 3,
}

impl Answer {
    fn from_number(number: u8) -> Option<Answer> {
        [Answer::Done, Answer::Refused, Answer::Failed].into_iter().find(|a| *a as u8 == number)
    }
}
