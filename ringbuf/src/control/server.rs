//! The shim's side of the control object: what the live leases want, and which commands wait for an answer.

use super::{ACK, Answer, BEAT, COMMAND, Command, KINDS, LEASE_NS, OWNER, SLOTS, head, slot_word};
use crate::{
    event::ALL_KINDS,
    layout::{ABI_MAJOR, ABI_MINOR},
    sync::Ordering,
    words::Words,
};

/// Reads the slots on behalf of the shim. Used by one thread.
pub struct ControlServer<W: Words> {
    words: W,
    seen: [Seen; SLOTS],
}

#[derive(Clone, Copy, Default)]
struct Seen {
    owner: u64,
    beat: u64,
    since_ns: u64,
}

/// A command that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    slot: usize,
    seq: u64,
    /// `None` for a number that no command has.
    pub command: Option<Command>,
}

/// What the slots say at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Union of the kinds that live leases ask for.
    pub kinds: u64,
    pub leases: usize,
    pub commands: Vec<Waiting>,
}

impl<W: Words> ControlServer<W> {
    /// Writes the head of a fresh control object.
    pub fn new(words: W, nonce: u64, pid: u32) -> Self {
        words.store(head::ABI, u64::from(ABI_MINOR) | u64::from(ABI_MAJOR) << 32, Ordering::Relaxed);
        words.store(head::NONCE, nonce, Ordering::Relaxed);
        words.store(head::PID, u64::from(pid), Ordering::Relaxed);
        // SYNC: pairs with the Acquire load of MAGIC by clients.
        words.store(head::MAGIC, super::MAGIC, Ordering::Release);
        ControlServer { words, seen: [Seen::default(); SLOTS] }
    }

    /// Looks at every slot once; ends leases whose beat has stopped.
    pub fn poll(&mut self, now_ns: u64) -> Wishes {
        let mut wishes = Wishes::default();
        for slot in 0..SLOTS {
            // SYNC: pairs with the Release store of OWNER's claim: the slot is the new owner's.
            let owner = self.words.load(slot_word(slot, OWNER), Ordering::Acquire);
            if owner == 0 || self.lapsed(slot, owner, now_ns) {
                continue;
            }
            wishes.leases += 1;
            wishes.kinds |= self.words.load(slot_word(slot, KINDS), Ordering::Relaxed) & ALL_KINDS;
            wishes.commands.extend(self.waiting(slot));
        }
        wishes
    }

    fn lapsed(&mut self, slot: usize, owner: u64, now_ns: u64) -> bool {
        let beat = self.words.load(slot_word(slot, BEAT), Ordering::Relaxed);
        let seen = &mut self.seen[slot];
        if (seen.owner, seen.beat) != (owner, beat) {
            *seen = Seen { owner, beat, since_ns: now_ns };
        }
        if now_ns.saturating_sub(seen.since_ns) < LEASE_NS {
            return false;
        }
        self.void_command(slot, owner);
        // If the slot has changed hands meanwhile, the new owner keeps it, with what it asks for: nothing else of the
        // slot is touched here. Whoever takes it next begins by asking for nothing.
        let _ = self.words.compare_exchange(slot_word(slot, OWNER), owner, 0, Ordering::AcqRel);
        true
    }

    /// A command that a dead client left must not be carried out when somebody else takes the slot, hours later.
    fn void_command(&self, slot: usize, owner: u64) {
        let Some(waiting) = self.waiting(slot) else { return };
        // SYNC: `waiting` loaded COMMAND with Acquire; were it a new owner's, this load would see that owner.
        if self.words.load(slot_word(slot, OWNER), Ordering::Relaxed) == owner {
            self.answer(waiting, Answer::Refused);
        }
    }

    fn waiting(&self, slot: usize) -> Option<Waiting> {
        // SYNC: pairs with the Release store of COMMAND by the client.
        let command = self.words.load(slot_word(slot, COMMAND), Ordering::Acquire);
        let ack = self.words.load(slot_word(slot, ACK), Ordering::Relaxed);
        let (seq, number) = (command >> 8, command as u8);
        (number != 0 && seq != ack >> 8).then_some(Waiting { slot, seq, command: Command::from_number(number) })
    }

    pub fn answer(&self, waiting: Waiting, answer: Answer) {
        // SYNC: pairs with the Acquire load of ACK by the client: what the command did is visible.
        self.words.store(slot_word(waiting.slot, ACK), waiting.seq << 8 | answer as u64, Ordering::Release);
    }
}
