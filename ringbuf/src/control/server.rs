//! The shim's side of the control object: what the live leases want, and which commands wait for an answer.

use super::{ACK, Answer, BEAT, COMMAND, Command, KINDS, LEASE_NS, OWNER, SLOTS, has_tag, head, line, slot_word};
use crate::{
    event::{ALL_KINDS, EventKind},
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
    /// The word that the client wrote.
    word: u64,
    /// `None` for a number that no command has.
    pub command: Option<Command>,
}

/// What the slots say at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Union of the kinds that live leases ask for; [`EventKind::Graph`], which hides the kernels of graphs, only where
    /// every lease that asks for kernels asks for it.
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

    /// Looks at every slot once; ends leases whose beat has stopped. Each command is to be answered before the next
    /// look, which would give it again.
    pub fn poll(&mut self, now_ns: u64) -> Wishes {
        let mut wishes = Wishes::default();
        let mut every_kernel = false;
        for slot in 0..SLOTS {
            // Relaxed: what the owner says in the slot is told from what others said there by its tag.
            let owner = self.words.load(slot_word(slot, OWNER), Ordering::Relaxed);
            if owner == 0 || self.lapsed(slot, owner, now_ns) {
                continue;
            }
            wishes.leases += 1;
            // Before the wish, which thus is at least as new: a command is carried out under the wish told before it.
            wishes.commands.extend(self.waiting(slot, owner));
            let wish = self.wish(slot, owner);
            every_kernel |= wish & EventKind::Kernel.bit() != 0 && wish & EventKind::Graph.bit() == 0;
            wishes.kinds |= wish;
        }
        if every_kernel {
            wishes.kinds &= !EventKind::Graph.bit();
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
        // If the slot has changed hands meanwhile, the new owner keeps it. What the old one said in it stays, and has
        // a tag that nobody heeds any more.
        let _ = self.words.compare_exchange(slot_word(slot, OWNER), owner, 0, Ordering::Relaxed);
        true
    }

    fn wish(&self, slot: usize, owner: u64) -> u64 {
        let word = self.words.load(slot_word(slot, KINDS), Ordering::Relaxed);
        if has_tag(word, owner) { word & ALL_KINDS } else { 0 }
    }

    fn waiting(&self, slot: usize, owner: u64) -> Option<Waiting> {
        // SYNC: pairs with the Release half of the client's write in `put`: the wish told before it is seen.
        let word = self.words.load(slot_word(slot, COMMAND), Ordering::Acquire);
        let number = word as u8;
        if number == 0 || !has_tag(word, owner) {
            return None;
        }
        let ack = self.words.load(slot_word(slot, ACK), Ordering::Relaxed);
        (line(word) != line(ack)).then_some(Waiting { slot, word, command: Command::from_number(number) })
    }

    pub fn answer(&self, waiting: Waiting, answer: Answer) {
        // SYNC: pairs with the Acquire load of ACK by the client: what the command did is visible.
        self.words.store(slot_word(waiting.slot, ACK), line(waiting.word) << 8 | answer as u64, Ordering::Release);
    }
}
