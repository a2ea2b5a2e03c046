//! A reader's side of the control object.

use super::{ACK, Answer, BEAT, COMMAND, CONTROL_BYTES, Command, KINDS, OWNER, SLOTS, head, slot_word};
use crate::{
    attach::{AttachError, MappedFile},
    discover::Found,
    process,
    sync::{AtomicU64, Ordering},
    words::{MappedWords, ReadWords, Words},
};
use std::{
    thread,
    time::{Duration, Instant},
};

/// Why a wish or command did not reach the shim.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(
        "all {SLOTS} places for readers of this process are taken; end one of them, or wait two seconds after one died"
    )]
    NoSlot,
    #[error(
        "`{command}` was not acknowledged within {waited_ms} ms: the process may be stopped, ending, or its tap off"
    )]
    NoAnswer { command: &'static str, waited_ms: u128 },
    #[error("the shim answered with the number {number}, which this version does not know")]
    UnknownAnswer { number: u8 },
}

/// A held slot: a lease while it beats, and a line for commands. Dropping it ends the lease at once.
pub struct ControlClient {
    words: MappedWords,
    slot: usize,
    owner: u64,
    /// What this client wants, told again at each beat: a client that was stopped for long enough to lose this slot
    /// may, on waking, have written its own wish over ours.
    kinds: AtomicU64,
}

impl ControlClient {
    /// Takes a slot of the tap's control object; asks for nothing yet.
    pub fn open(found: &Found) -> Result<ControlClient, ControlError> {
        let file = MappedFile::open_writable(&found.control, CONTROL_BYTES)?;
        Self::take_slot(file, process::random())
    }

    fn take_slot(words: MappedWords, random: u64) -> Result<ControlClient, ControlError> {
        // SYNC: pairs with the Release store of MAGIC by the shim.
        let found = words.load(head::MAGIC, Ordering::Acquire);
        if found != super::MAGIC {
            return Err(AttachError::NotControl { found }.into());
        }
        let owner = random | 1;
        let slot = (0..SLOTS)
            .find(|&s| words.compare_exchange(slot_word(s, OWNER), 0, owner, Ordering::AcqRel).is_ok())
            .ok_or(ControlError::NoSlot)?;
        let client = ControlClient { words, slot, owner, kinds: AtomicU64::new(0) };
        client.forget_command();
        client.renew();
        Ok(client)
    }

    /// Asks for these kinds (a mask of `EventKind::bit`s) to be recorded for as long as the lease lives.
    pub fn want(&self, kinds: u64) {
        self.kinds.store(kinds, Ordering::Relaxed);
        self.renew();
    }

    /// Keeps the lease alive; due at least every second. Gives false if the shim has ended the lease meanwhile (this
    /// reader was stopped for too long): open a new one.
    pub fn renew(&self) -> bool {
        let ours = self.is_ours();
        if ours {
            let kinds = self.kinds.load(Ordering::Relaxed);
            self.words.store(slot_word(self.slot, KINDS), kinds, Ordering::Relaxed);
            self.words.fetch_add(slot_word(self.slot, BEAT), 1, Ordering::Relaxed);
        }
        ours
    }

    /// Leaves no command that the shim could still carry out: neither the last owner's for us, nor ours for the next.
    fn forget_command(&self) {
        let at = slot_word(self.slot, COMMAND);
        let seq = self.words.load(at, Ordering::Relaxed) >> 8;
        self.words.store(at, seq << 8, Ordering::Release);
    }

    fn is_ours(&self) -> bool {
        self.words.load(slot_word(self.slot, OWNER), Ordering::Relaxed) == self.owner
    }

    /// Sends a command and waits for the answer for at most `timeout`.
    pub fn command(&self, command: Command, timeout: Duration) -> Result<Answer, ControlError> {
        let (at, ack_at) = (slot_word(self.slot, COMMAND), slot_word(self.slot, ACK));
        let last = (self.words.load(at, Ordering::Relaxed) >> 8).max(self.words.load(ack_at, Ordering::Relaxed) >> 8);
        let seq = (last + 1) & (u64::MAX >> 8);
        // SYNC: pairs with the Acquire load of COMMAND by the shim.
        self.words.store(at, seq << 8 | command as u64, Ordering::Release);
        let start = Instant::now();
        loop {
            self.renew();
            // SYNC: pairs with the Release store of ACK by the shim.
            let ack = self.words.load(ack_at, Ordering::Acquire);
            if ack >> 8 == seq {
                let number = ack as u8;
                return Answer::from_number(number).ok_or(ControlError::UnknownAnswer { number });
            }
            if start.elapsed() >= timeout {
                return Err(ControlError::NoAnswer { command: command.name(), waited_ms: timeout.as_millis() });
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for ControlClient {
    fn drop(&mut self) {
        if self.is_ours() {
            self.words.store(slot_word(self.slot, KINDS), 0, Ordering::Relaxed);
            self.forget_command();
            let _ = self.words.compare_exchange(slot_word(self.slot, OWNER), self.owner, 0, Ordering::AcqRel);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::{LEASE_NS, server::ControlServer};
    use super::*;
    use crate::{event::EventKind, words::heap_words};

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
        // Another client, in the instant before it clears the line itself.
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
    fn silence_is_an_error_that_names_the_command() {
        let (words, _server) = pair();
        let client = ControlClient::take_slot(words, 10).unwrap();
        let error = client.command(Command::Stop, Duration::from_millis(5)).unwrap_err();
        assert!(error.to_string().contains("`stop`"), "{error}");
    }
}
