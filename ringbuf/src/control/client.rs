//! A reader's side of the control object: the protocol. It does no I/O and does not wait.

use super::{ACK, Answer, BEAT, COMMAND, Command, KINDS, OWNER, SLOTS, head, line, slot_word, tagged};
#[cfg(not(loom))]
use crate::attach::AttachError;
use crate::{
    layout::ABI_MAJOR,
    sync::{AtomicU64, Ordering},
    words::{MappedWords, Words},
};

/// Why a wish or command did not reach the shim.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[cfg(not(loom))]
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error("the control object is not gputap's (magic {found:#x})")]
    NotControl { found: u64 },
    #[error(
        "the tap speaks ABI {found_major}, this gputap speaks {ABI_MAJOR}: use the gputap that the job was started with"
    )]
    OtherAbi { found_major: u32 },
    #[error(
        "all {SLOTS} places for readers of this process are taken; end one of them, or wait two seconds after one died"
    )]
    NoSlot,
    #[error(
        "`{command}` was not acknowledged within {waited_ms} ms: the process may be stopped, ending, or its tap off"
    )]
    NoAnswer { command: &'static str, waited_ms: u128 },
    #[error(
        "the lease of this reader, which was stopped for too long, ended before `{command}` was acknowledged: try again"
    )]
    Lapsed { command: &'static str },
    #[error("the shim answered with the number {number}, which this version does not know")]
    UnknownAnswer { number: u8 },
}

/// How often a client tries to write over what a woken one wrote.
const MAX_ROUNDS: u32 = 16;

/// A held slot: a lease while it beats, and a line for commands. Dropping it ends the lease at once.
pub struct ControlClient<W: Words = MappedWords> {
    words: W,
    slot: usize,
    owner: u64,
    /// What this client wants, told again at each beat: whoever can write to the object can write over it.
    kinds: AtomicU64,
    /// Commands sent.
    sent: AtomicU64,
}

/// A command that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// As it stands in the slot.
    word: u64,
    command: Command,
}

impl<W: Words> ControlClient<W> {
    /// Takes a slot; asks for nothing yet. `random` tells this client from all others.
    pub fn take_slot(words: W, random: u64) -> Result<Self, ControlError> {
        // SYNC: pairs with the Release store of MAGIC by the shim.
        let found = words.load(head::MAGIC, Ordering::Acquire);
        if found != super::MAGIC {
            return Err(ControlError::NotControl { found });
        }
        let found_major = (words.load(head::ABI, Ordering::Relaxed) >> 32) as u32;
        if found_major != ABI_MAJOR {
            return Err(ControlError::OtherAbi { found_major });
        }
        let owner = random | 1;
        // Relaxed, as all changes of owner are: only one client's exchange finds the slot free, and what earlier
        // owners left in it has their tags.
        let slot = (0..SLOTS)
            .find(|&s| words.compare_exchange(slot_word(s, OWNER), 0, owner, Ordering::Relaxed).is_ok())
            .ok_or(ControlError::NoSlot)?;
        Ok(ControlClient { words, slot, owner, kinds: AtomicU64::new(0), sent: AtomicU64::new(0) })
    }

    /// Asks for these kinds (a mask of `EventKind::bit`s) to be recorded for as long as the lease lives.
    pub fn want(&self, kinds: u64) {
        self.kinds.store(kinds & u64::from(u32::MAX), Ordering::Relaxed);
        self.renew();
    }

    /// Keeps the lease alive; due at least every second. Gives false if the shim has ended the lease meanwhile (this
    /// reader was stopped for too long): open a new one. A lease that ends at this instant is told of at the next beat.
    pub fn renew(&self) -> bool {
        let ours = self.put(KINDS, tagged(self.owner, self.kinds.load(Ordering::Relaxed)));
        if ours {
            self.words.fetch_add(slot_word(self.slot, BEAT), 1, Ordering::Relaxed);
        }
        ours
    }

    /// Sends a command; one at a time: another one takes the place of the one before, if that still waits.
    pub fn send(&self, command: Command) -> Result<Ticket, ControlError> {
        let seq = (self.sent.fetch_add(1, Ordering::Relaxed) + 1) & (u64::from(u32::MAX) >> 8);
        let word = tagged(self.owner, seq << 8 | command as u64);
        match self.put(COMMAND, word) {
            true => Ok(Ticket { word, command }),
            false => Err(ControlError::Lapsed { command: command.name() }),
        }
    }

    /// The answer, once there is one. What the command did is then visible.
    pub fn answer(&self, ticket: Ticket) -> Result<Option<Answer>, ControlError> {
        // SYNC: pairs with the Release store of ACK by the shim.
        let ack = self.words.load(slot_word(self.slot, ACK), Ordering::Acquire);
        if line(ack) == line(ticket.word) {
            let number = ack as u8;
            return Answer::from_number(number).map(Some).ok_or(ControlError::UnknownAnswer { number });
        }
        match self.is_ours() {
            true => Ok(None),
            false => Err(ControlError::Lapsed { command: ticket.command.name() }),
        }
    }

    fn is_ours(&self) -> bool {
        self.words.load(slot_word(self.slot, OWNER), Ordering::Relaxed) == self.owner
    }

    /// Writes a word of our slot, if it still is ours. A round fails only if a client that lost this slot has just
    /// woken and written its last word there: one round each. Should a peer keep at it, we give up until the next beat,
    /// and a command gets no answer.
    fn put(&self, word: usize, value: u64) -> bool {
        let at = slot_word(self.slot, word);
        for _ in 0..MAX_ROUNDS {
            // SYNC: pairs with the Release exchange below, by an heir: who has seen an heir's word sees that the slot
            // is the heir's.
            let found = self.words.load(at, Ordering::Acquire);
            if !self.is_ours() {
                return false;
            }
            // SYNC: pairs with the Acquire load above, and that of COMMAND by the shim.
            if found == value || self.words.compare_exchange(at, found, value, Ordering::Release).is_ok() {
                return true;
            }
        }
        true
    }
}

impl<W: Words> Drop for ControlClient<W> {
    fn drop(&mut self) {
        // What we said stays, and nobody heeds it: it has our tag.
        let _ = self.words.compare_exchange(slot_word(self.slot, OWNER), self.owner, 0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{LEASE_NS, server::ControlServer};
    use super::*;
    use crate::{control::CONTROL_BYTES, event::EventKind, words::heap_words};
    use std::{thread, time::Duration};

    fn pair() -> (MappedWords, ControlServer<MappedWords>) {
        let words = heap_words(CONTROL_BYTES / 8);
        (words.clone(), ControlServer::new(words, 1, 2))
    }

    #[test]
    fn the_union_of_live_leases_is_wanted_and_a_dropped_one_is_not() {
        let (words, mut server) = pair();
        let a = ControlClient::take_slot(words.clone(), 10).unwrap();
        let b = ControlClient::take_slot(words.clone(), 20).unwrap();
        a.want(EventKind::Kernel.bit());
        b.want(EventKind::Memcpy.bit() | 1 << 60);
        let wishes = server.poll(0);
        assert_eq!((wishes.kinds, wishes.leases), (EventKind::Kernel.bit() | EventKind::Memcpy.bit(), 2));
        drop(a);
        assert_eq!(server.poll(1).kinds, EventKind::Memcpy.bit());
    }

    #[test]
    fn graphs_stand_for_their_kernels_only_where_nobody_wants_every_kernel() {
        let (words, mut server) = pair();
        let (kernel, graph) = (EventKind::Kernel.bit(), EventKind::Graph.bit());
        let cheap = ControlClient::take_slot(words.clone(), 10).unwrap();
        cheap.want(kernel | graph);
        assert_eq!(server.poll(0).kinds, kernel | graph);
        let whole = ControlClient::take_slot(words.clone(), 20).unwrap();
        whole.want(kernel);
        assert_eq!(server.poll(0).kinds, kernel);
        let copies = ControlClient::take_slot(words, 30).unwrap();
        copies.want(EventKind::Memcpy.bit());
        drop(whole);
        assert_eq!(server.poll(0).kinds, kernel | graph | EventKind::Memcpy.bit());
    }

    #[test]
    fn the_wish_of_a_dead_reader_lapses_and_its_slot_comes_free() {
        let (words, mut server) = pair();
        let dead = ControlClient::take_slot(words.clone(), 10).unwrap();
        dead.want(EventKind::Kernel.bit());
        assert_eq!(server.poll(0).leases, 1);
        assert_eq!(server.poll(LEASE_NS - 1).leases, 1);
        assert_eq!(server.poll(LEASE_NS).leases, 0);
        assert!(!dead.renew());
        let heir = ControlClient::take_slot(words, 30).unwrap();
        drop(dead);
        assert_eq!(server.poll(LEASE_NS + 1).leases, 1);
        assert!(heir.renew());
    }

    #[test]
    fn a_command_that_nobody_waits_for_any_more_is_not_carried_out_for_the_next_client() {
        let (words, mut server) = pair();
        let gone = ControlClient::take_slot(words.clone(), 10).unwrap();
        gone.command(Command::Yield, Duration::ZERO).unwrap_err();
        let slot = gone.slot;
        drop(gone);
        // Another client takes the slot, and with it what stands in it.
        words.store(slot_word(slot, OWNER), 99, Ordering::Relaxed);
        assert_eq!(server.poll(0).commands, []);
        words.store(slot_word(slot, OWNER), 0, Ordering::Relaxed);
        let dead = ControlClient::take_slot(words.clone(), 20).unwrap();
        assert_eq!(server.poll(0).commands, []);
        dead.command(Command::Stop, Duration::ZERO).unwrap_err();
        let seen = server.poll(0).commands.len();
        assert_eq!((seen, server.poll(LEASE_NS).leases), (1, 0));
        words.store(slot_word(slot, OWNER), 98, Ordering::Relaxed);
        assert_eq!(server.poll(LEASE_NS).commands, []);
        words.store(slot_word(slot, OWNER), 0, Ordering::Relaxed);
        drop(dead);
        let _next = ControlClient::take_slot(words, 30).unwrap();
        assert_eq!(server.poll(LEASE_NS + 1).commands, []);
    }

    #[test]
    fn a_wish_written_over_by_a_stale_client_is_told_again_with_the_next_beat() {
        let (words, mut server) = pair();
        let client = ControlClient::take_slot(words.clone(), 10).unwrap();
        client.want(EventKind::Kernel.bit());
        words.store(slot_word(client.slot, KINDS), 0, Ordering::Relaxed);
        client.renew();
        assert_eq!(server.poll(0).kinds, EventKind::Kernel.bit());
    }

    #[test]
    fn slots_run_out_with_a_word() {
        let (words, _server) = pair();
        let all: Vec<_> = (0..SLOTS as u64).map(|i| ControlClient::take_slot(words.clone(), i * 2).unwrap()).collect();
        assert!(matches!(ControlClient::take_slot(words, 99), Err(ControlError::NoSlot)));
        drop(all);
    }

    #[test]
    fn a_command_waits_for_its_own_answer() {
        let (words, mut server) = pair();
        let client = ControlClient::take_slot(words, 10).unwrap();
        let asked = thread::spawn(move || {
            let timeout = Duration::from_secs(20);
            let first = client.command(Command::Yield, timeout).unwrap();
            (first, client.command(Command::Resume, timeout).unwrap())
        });
        let mut answers = [Answer::Done, Answer::Refused].into_iter();
        let mut commands = Vec::new();
        while commands.len() < 2 {
            for waiting in server.poll(0).commands {
                commands.push(waiting.command.unwrap());
                server.answer(waiting, answers.next().unwrap());
            }
            thread::yield_now();
        }
        assert_eq!(commands, [Command::Yield, Command::Resume]);
        assert_eq!(asked.join().unwrap(), (Answer::Done, Answer::Refused));
    }

    #[test]
    fn a_reader_that_lost_its_lease_is_told_so_and_its_command_is_not_carried_out() {
        let (words, mut server) = pair();
        let stopped = ControlClient::take_slot(words.clone(), 10).unwrap();
        let ticket = stopped.send(Command::Stop).unwrap();
        assert_eq!((server.poll(0).commands.len(), server.poll(LEASE_NS).leases), (1, 0));
        let heir = ControlClient::take_slot(words, 20).unwrap();
        assert!(matches!(stopped.answer(ticket), Err(ControlError::Lapsed { command: "stop" })));
        let error = stopped.command(Command::Yield, Duration::from_secs(20)).unwrap_err();
        assert!(error.to_string().contains("`yield`"), "{error}");
        assert_eq!(server.poll(LEASE_NS).commands, []);
        drop(heir);
    }

    #[test]
    fn a_control_object_of_another_version_is_refused() {
        let (words, _server) = pair();
        words.store(head::ABI, u64::from(ABI_MAJOR + 1) << 32, Ordering::Relaxed);
        let refused = ControlClient::take_slot(words, 10);
        assert!(matches!(refused, Err(ControlError::OtherAbi { found_major }) if found_major == ABI_MAJOR + 1));
    }

    #[test]
    fn silence_is_an_error_that_names_the_command() {
        let (words, _server) = pair();
        let client = ControlClient::take_slot(words, 10).unwrap();
        let error = client.command(Command::Stop, Duration::from_millis(5)).unwrap_err();
        assert!(error.to_string().contains("`stop`"), "{error}");
    }
}
