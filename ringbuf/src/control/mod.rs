//! The control object: the one place that readers write. Each reader takes a slot, and through it holds a *lease*
//! (a wish that lapses when its beat stops) and sends commands, one at a time, that are acknowledged.
//!
//! ```text
//! head:  magic | abi | nonce of the segment | pid
//! slot:  owner | kinds | beat | command = seq << 8 | what | ack = seq << 8 | result
//!        owner: 0 free; the client's random id while held; the shim puts it back to 0 when the beat stops
//! ```
//! The shim trusts nothing here: each word is read once and checked, ages are taken on its own clock, and whatever the
//! slots say can at worst switch the known kinds on or off.

pub mod client;
pub mod server;

use crate::layout::LINE;

/// "gputapCT" as bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"gputapCT");
pub const SLOTS: usize = 16;
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
const _: () = assert!((LINE + SLOTS * LINE) * 8 <= CONTROL_BYTES);

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
